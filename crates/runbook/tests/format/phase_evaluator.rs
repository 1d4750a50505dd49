//! Suite `PhaseEvaluatorTests`: offsets, due times, durations and the start of batches.

use segno_runbook::blackout::Blackouts;
use segno_runbook::members::{immediate_start, parse_batch_time};
use segno_runbook::plan::due_at;

use crate::{definition, problems, step_with, with};

/// The offset of the only phase in minutes.
fn offset_minutes(offset: &str) -> u64 {
    definition(&with("offset: T-0", &format!("offset: {offset}"))).phases[0].offset_minutes
}

#[test]
fn an_offset_of_zero_is_the_start() {
    assert_eq!(offset_minutes("T-0"), 0);
}

#[test]
fn offsets_in_days_hours_and_minutes_are_minutes() {
    assert_eq!(["T-1d", "T-5d", "T-3h", "T-30m"].map(offset_minutes), [1_440, 7_200, 180, 30]);
}

#[test]
fn seconds_of_an_offset_are_rounded_up() {
    assert_eq!(["T-1s", "T-59s", "T-60s", "T-61s", "T-120s", "T-0s"].map(offset_minutes), [1, 1, 1, 2, 2, 0]);
}

#[test]
fn units_of_an_offset_can_be_combined() {
    assert_eq!(["T-1d12h", "'T-1d 1h 1m 1s'"].map(offset_minutes), [2_160, 1_502]);
}

#[test]
fn a_phase_is_due_its_offset_before_the_start() {
    let start = "2025-03-15T00:00:00Z".parse().unwrap();
    for (offset_minutes, due) in [
        (7_200, "2025-03-10T00:00:00Z"),
        (180, "2025-03-14T21:00:00Z"),
        (1, "2025-03-14T23:59:00Z"),
        (0, "2025-03-15T00:00:00Z"),
    ] {
        assert_eq!(due_at(start, offset_minutes).to_string(), due);
    }
}

#[test]
fn due_times_keep_the_seconds_of_the_start() {
    let start = "2025-03-15T00:00:37.25Z".parse().unwrap();
    assert_eq!(due_at(start, 60).to_string(), "2025-03-14T23:00:37.25Z");
}

#[test]
fn an_offset_beyond_all_time_is_the_beginning_of_time() {
    let start = "2025-03-15T00:00:00Z".parse().unwrap();
    assert_eq!(due_at(start, u64::MAX), jiff::Timestamp::MIN);
}

#[test]
fn phases_are_in_due_order_and_equal_offsets_as_written() {
    let steps = "steps: [{name: s, worker_id: p, function: F}]";
    let phases: String = [("c", "T-0"), ("a", "T-1d"), ("d", "T-0s"), ("b", "T-24h"), ("e", "T-1m")]
        .map(|(name, offset)| format!("  - {{name: {name}, offset: {offset}, {steps}}}\n"))
        .concat();
    let yaml = format!("name: x\ndata_source: {{type: manual, primary_key: Id}}\nphases:\n{phases}");
    let names: Vec<String> = definition(&yaml).phases.into_iter().map(|phase| phase.name).collect();
    assert_eq!(names.concat(), "abecd");
}

#[test]
fn durations_of_polls_are_seconds() {
    for (text, seconds) in [("30s", 30), ("15m", 900), ("24h", 86_400), ("1d", 86_400), ("1h30m", 5_400)] {
        let runbook = definition(&step_with(&format!("poll: {{interval: 1s, timeout: {text}}}")));
        assert_eq!(runbook.phases[0].steps[0].poll.unwrap().timeout_sec, seconds, "{text}");
    }
}

#[test]
fn durations_without_a_unit_or_number_are_refused() {
    for text in ["5", "m", "5x", "-5m", "5.5m", "''", "1y", "99999999999d"] {
        let found = problems(step_with(&format!("poll: {{interval: {text}, timeout: 1h}}")));
        assert!(found.contains("phases[0].steps[0].poll.interval: "), "{text}: {found}");
    }
}

#[test]
fn an_immediate_batch_starts_at_a_multiple_of_five_minutes() {
    let start = |now: &str| immediate_start(now.parse().unwrap()).to_string();
    assert_eq!(start("2025-03-15T10:07:31Z"), "2025-03-15T10:05:00Z");
    assert_eq!(start("2025-03-15T10:05:00Z"), "2025-03-15T10:05:00Z");
    assert_eq!(start("2025-03-15T10:04:59.999Z"), "2025-03-15T10:00:00Z");
}

#[test]
fn batch_times_are_utc_unless_they_say_otherwise() {
    let time = |text: &str| parse_batch_time(text).unwrap().to_string();
    assert_eq!(time("2025-03-15T08:00:00+02:00"), "2025-03-15T06:00:00Z");
    assert_eq!(time("2025-03-15 08:00:00"), "2025-03-15T08:00:00Z");
    assert!(parse_batch_time("15.03.2025").is_err());
}

#[test]
fn a_blackout_delays_until_its_end() {
    let yaml =
        format!("{}blackout: [{{from: '08:00', to: '18:00', timezone: Europe/Berlin}}]\n", crate::SMALLEST);
    let zones = segno_actions::schedule::Zones::bundled();
    let blackouts = Blackouts::compile(&definition(&yaml).blackout, &zones).unwrap();
    let next = |now: &str| blackouts.next_allowed(now.parse().unwrap()).to_string();
    assert_eq!(next("2025-03-15T12:00:00Z"), "2025-03-15T17:00:00Z");
    assert_eq!(next("2025-07-15T12:00:00Z"), "2025-07-15T16:00:00Z");
    assert_eq!(next("2025-03-15T06:59:59Z"), "2025-03-15T06:59:59Z");
}
