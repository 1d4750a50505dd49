//! Decisions, by tables and at random. Whatever the schedule, the policies and the clock do: nothing is early, nothing is
//! decided twice, and every occurrence is decided.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use segno_testkit::seeded::Random;
use serde_json::json;

use super::decide::{Moment, Step, before, decide};
use super::history::SkipReason;
use super::{
    MissedPolicy, OverlapPolicy, Progress, RecurringAction, RecurringActionTemplate, RecurringPolicy,
};
use crate::functions::{HumanDuration, Scope};
use crate::schedule::{Schedule, ScheduleSpec, Zones};

fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-02-10T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

fn action(schedule: ScheduleSpec, policy: RecurringPolicy) -> (RecurringAction, Schedule) {
    let compiled = schedule.compile(&Zones::bundled()).unwrap();
    let scope = Scope::default();
    let mut action = RecurringAction {
        id: "0198c0de-0000-7000-8000-000000000001".to_owned(),
        namespace: scope.namespace,
        tenant: scope.tenant,
        name: None,
        schedule,
        enabled: true,
        action_template: RecurringActionTemplate {
            provider: "note".to_owned(),
            orchestration: None,
            action_type: "test".to_owned(),
            payload: segno::Payload::encode(&json!({})).unwrap(),
            metadata: BTreeMap::new(),
            dedup_key: None,
        },
        policy,
        created_at: at(0),
        updated_at: at(0),
        last_executed_at: None,
        next_execution_at: None,
        execution_count: 0,
        failure_count: 0,
        consecutive_failures: 0,
        last_error: None,
        last_execution_id: None,
        paused_at: None,
        pause_note: None,
        resumes_at: None,
        disabled_reason: None,
        description: None,
        labels: BTreeMap::new(),
        progress: Progress::default(),
    };
    action.arm(&compiled, at(0));
    (action, compiled)
}

fn every(seconds: u64) -> ScheduleSpec {
    ScheduleSpec { anchor: Some(at(0)), ..ScheduleSpec::every(HumanDuration::from_secs(seconds)) }
}

fn moment(now: Timestamp) -> Moment {
    Moment { now, missed_after: Duration::from_secs(60) }
}

/// Takes all steps at a time, and writes them as short texts.
fn steps(action: &mut RecurringAction, schedule: &Schedule, now: Timestamp) -> Vec<String> {
    let mut taken = Vec::new();
    let short = |time: &Timestamp| time.duration_since(at(0)).as_secs();
    while let Some(step) = decide(action, schedule, moment(now)) {
        action.advance(&step, schedule, now);
        taken.push(match &step {
            Step::Resume => "resume".to_owned(),
            Step::Fire { time, is_late, cancels, .. } => {
                action.started(*time, &time.to_string(), now);
                let (late, cancels) =
                    (if *is_late { " late" } else { "" }, if *cancels { " cancels" } else { "" });
                format!("fire {}{late}{cancels}", short(time))
            }
            Step::Buffer { time } => format!("buffer {}", short(time)),
            Step::Skip { time, reason } => format!("skip {} {}", short(time), reason.as_str()),
            Step::LeaveOut { from, until } => format!("leave out {}..{}", short(from), short(until)),
            Step::SkipRange { from, in_time_from, until } => {
                let count = schedule.between(before(*from), before(*until)).take(1_000).count();
                let coalesced = in_time_from.map_or(String::new(), |at| format!(" coalesced {}", short(&at)));
                format!("skip {}..{} {count}{coalesced}", short(from), short(until))
            }
            Step::Disable { reason } => format!("disable {reason}"),
        });
        assert!(taken.len() < 1_000, "{taken:?}");
    }
    taken
}

#[test]
fn lateness_is_judged_by_policy() {
    let policy =
        |missed, limit| RecurringPolicy { missed, catch_up_limit: limit, ..RecurringPolicy::default() };
    for (seconds, missed, limit, now, expected) in [
        (100, MissedPolicy::None, 9, 99, vec![]),
        (100, MissedPolicy::None, 9, 100, vec!["fire 100"]),
        (100, MissedPolicy::None, 9, 160, vec!["fire 100"]),
        (100, MissedPolicy::None, 9, 161, vec!["skip 100 missed"]),
        (100, MissedPolicy::None, 9, 530, vec!["skip 100..500 4", "fire 500"]),
        (100, MissedPolicy::None, 9, 590, vec!["skip 100..600 5"]),
        (100, MissedPolicy::Latest, 9, 590, vec!["skip 100..500 4", "fire 500 late"]),
        (100, MissedPolicy::All, 9, 390, vec!["fire 100 late", "fire 200 late", "fire 300 late"]),
        (100, MissedPolicy::All, 2, 390, vec!["fire 100 late", "fire 200 late", "skip 300 missed"]),
        (3_000, MissedPolicy::All, 9, 9_900, vec!["skip 3000..9000 2", "fire 9000 late"]),
        // Of several that are due, the last is fired if it is not too late, and the others are one entry.
        (4, MissedPolicy::None, 9, 33, vec!["skip 4..32 7 coalesced 4", "fire 32"]),
        (1, MissedPolicy::None, 9, 15, vec!["skip 1..15 14 coalesced 1", "fire 15"]),
        (50, MissedPolicy::None, 9, 101, vec!["skip 50 coalesced", "fire 100"]),
        (4, MissedPolicy::All, 9, 13, vec!["fire 4 late", "fire 8 late", "fire 12"]),
        (4, MissedPolicy::All, 1, 21, vec!["fire 4 late", "skip 8..20 3 coalesced 8", "fire 20"]),
        // What is too late was missed, whatever is due after it.
        (30, MissedPolicy::None, 9, 151, vec!["skip 30..150 4 coalesced 120", "fire 150"]),
        (30, MissedPolicy::None, 9, 150, vec!["skip 30..150 4 coalesced 90", "fire 150"]),
        (50, MissedPolicy::Latest, 9, 101, vec!["skip 50 coalesced", "fire 100"]),
    ] {
        let (mut action, schedule) = action(every(seconds), policy(missed, limit));
        assert_eq!(steps(&mut action, &schedule, at(now)), expected, "every {seconds}, {missed:?}, at {now}");
        assert!(action.next_execution_at.unwrap() > at(now));
    }
}

#[test]
fn a_thousand_years_of_seconds_are_skipped_at_once() {
    let (mut action, schedule) = action(every(1), RecurringPolicy::default());
    let now = at(1_000 * 365 * 24 * 60 * 60);
    let taken = steps(&mut action, &schedule, now);
    assert!(taken.len() < 20 && taken[0].contains(" 1000 coalesced "), "{taken:?}");
}

#[test]
fn what_the_calendar_leaves_out_is_one_step() {
    const DAY: i64 = 24 * 60 * 60;
    // Every minute, but not on the five days from the 11th to the 15th.
    let spec = every(60).exclude(["2026-02-11..2026-02-15"]);
    let (mut action, schedule) = action(spec, RecurringPolicy::default());
    assert_eq!(action.next_execution_at, Some(at(60)));
    assert_eq!(steps(&mut action, &schedule, at(DAY - 1)).last().unwrap(), "fire 86340");
    assert_eq!((action.next_execution_at, action.progress.excluded), (Some(at(6 * DAY)), Some(at(DAY))));
    assert_eq!(action.due_at_ms(), Some(crate::moment::due_ms(at(DAY))));
    assert_eq!(steps(&mut action, &schedule, at(DAY)), ["leave out 86400..518400"]);
    // Nobody has to look at it before the next one that runs, and that is the one that is shown.
    assert_eq!(action.next_execution_at, Some(at(6 * DAY)));
    let runs = std::mem::take(&mut action.progress.running);
    assert_eq!(action.due_at_ms(), Some(crate::moment::due_ms(at(6 * DAY))));
    action.progress.running = runs;
    assert!(steps(&mut action, &schedule, at(6 * DAY - 1)).is_empty());
    assert_eq!(steps(&mut action, &schedule, at(6 * DAY)), ["fire 518400"]);
}

#[test]
fn a_calendar_that_is_changed_counts_from_then_on() {
    const DAY: i64 = 24 * 60 * 60;
    let (mut action, schedule) =
        action(every(3_600).exclude(["2026-02-10..2026-02-15"]), RecurringPolicy::default());
    assert_eq!(steps(&mut action, &schedule, at(DAY)), ["leave out 3600..518400"]);
    action.schedule.exclude.clear();
    let schedule = action.schedule.compile(&Zones::bundled()).unwrap();
    action.arm(&schedule, at(DAY + 1));
    assert_eq!(action.next_execution_at, Some(at(DAY + 3_600)));
}

#[test]
fn a_node_that_comes_back_late_tells_missed_from_left_out() {
    const DAY: i64 = 24 * 60 * 60;
    for (missed, now, expected) in [
        (MissedPolicy::None, 4 * DAY, vec!["leave out 86400..345600", "fire 345600"]),
        (
            MissedPolicy::None,
            6 * DAY,
            vec!["leave out 86400..345600", "skip 345600..518400 2", "fire 518400"],
        ),
        (
            MissedPolicy::Latest,
            6 * DAY - 1,
            vec!["leave out 86400..345600", "skip 345600 missed", "fire 432000 late"],
        ),
        // In a stretch of missed ones, what is left out is not told apart.
        (
            MissedPolicy::None,
            11 * DAY,
            vec!["leave out 86400..345600", "skip 345600..950400 5", "fire 950400"],
        ),
    ] {
        // The 11th to the 13th, and the 17th and 18th.
        let spec = every(86_400).exclude(["2026-02-11..2026-02-13", "2026-02-17..2026-02-18"]);
        let (mut action, schedule) = action(spec, RecurringPolicy { missed, ..RecurringPolicy::default() });
        assert_eq!(steps(&mut action, &schedule, at(now)), expected, "{missed:?} at {now}");
    }
}

#[test]
fn a_calendar_that_leaves_nothing_ends_it() {
    for spec in [
        every(60).exclude(["MON..SUN"]),
        ScheduleSpec::cron("0 9 25 12 *").exclude(["12-25"]),
        ScheduleSpec::cron("* * * * MON").exclude(["MON"]),
        ScheduleSpec::at(at(50)).exclude(["2026-02-10"]),
        ScheduleSpec { ends_at: Some(at(600)), ..every(60) }.exclude(["2026-02-10"]),
    ] {
        let (action, _) = action(spec.clone(), RecurringPolicy::default());
        assert!(!action.enabled && action.due_at_ms().is_none(), "{spec:?}");
        assert_eq!(
            action.disabled_reason.as_deref(),
            Some("exclude leaves no further occurrence"),
            "{spec:?}"
        );
    }
    let ending =
        ScheduleSpec { ends_at: Some(at(2 * 86_400)), ..every(43_200) }.exclude(["2026-02-11", "2026-02-12"]);
    let (mut ending, schedule) = action(ending, RecurringPolicy::default());
    assert_eq!(
        steps(&mut ending, &schedule, at(43_200)),
        ["fire 43200", "disable exclude leaves no further occurrence"]
    );
}

#[test]
fn overlaps_are_judged_by_policy() {
    for (policy, expected) in [
        (OverlapPolicy::Allow, ["fire 100", "fire 200", "fire 300"]),
        (OverlapPolicy::Skip, ["fire 100", "skip 200 overlap", "skip 300 overlap"]),
        (OverlapPolicy::BufferOne, ["fire 100", "buffer 200", "skip 300 overlap"]),
        (OverlapPolicy::CancelOther, ["fire 100", "fire 200 cancels", "fire 300 cancels"]),
    ] {
        let policy = RecurringPolicy { overlap_policy: policy, ..RecurringPolicy::default() };
        let (mut action, schedule) = action(every(100), policy);
        let taken: Vec<String> =
            [100, 200, 300].iter().flat_map(|now| steps(&mut action, &schedule, at(*now))).collect();
        assert_eq!(taken, expected);
        if action.policy.overlap_policy == OverlapPolicy::BufferOne {
            action.succeeded(&at(100).to_string());
            assert_eq!(action.due_at_ms(), Some(crate::moment::due_ms(at(200))));
            assert_eq!(steps(&mut action, &schedule, at(310)), ["fire 200"]);
        }
    }
}

#[test]
fn what_is_over_says_why() {
    let policy = RecurringPolicy { max_executions: Some(2), ..RecurringPolicy::default() };
    let (mut limited, schedule) = action(every(100), policy);
    for now in [100, 200, 300] {
        steps(&mut limited, &schedule, at(now));
    }
    assert_eq!((limited.execution_count, limited.enabled), (2, false));
    assert_eq!(limited.disabled_reason.as_deref(), Some("max_executions is reached"));
    assert_eq!((limited.next_execution_at, limited.progress.buffered), (None, None));
    let (mut once, schedule) = action(ScheduleSpec::at(at(50)), RecurringPolicy::default());
    assert_eq!(steps(&mut once, &schedule, at(50)), ["fire 50", "disable its one time has passed"]);
    let ending = ScheduleSpec { ends_at: Some(at(250)), ..every(100) };
    let (mut ending, schedule) = action(ending, RecurringPolicy::default());
    assert_eq!(
        steps(&mut ending, &schedule, at(210)),
        ["skip 100 missed", "fire 200", "disable ends_at is reached"]
    );
}

#[test]
fn failures_in_a_row_pause_it_and_a_pause_ends_by_itself() {
    let policy = RecurringPolicy { pause_after_failures: Some(2), ..RecurringPolicy::default() };
    let (mut action, schedule) = action(every(100), policy);
    action.failed(None, "no", at(1));
    action.succeeded("x");
    action.failed(None, "no", at(1));
    assert!(action.enabled);
    action.failed(None, "no", at(1));
    assert!(!action.enabled && action.disabled_reason.as_ref().unwrap().contains("2 failures"));
    assert!(steps(&mut action, &schedule, at(500)).is_empty());
    action.resumes_at = Some(at(600));
    assert_eq!(action.due_at_ms(), Some(crate::moment::due_ms(at(600))));
    assert_eq!(steps(&mut action, &schedule, at(610)), ["resume"]);
    assert_eq!(action.next_execution_at, Some(at(700)));
}

/// What was decided about each occurrence, and whether that is allowed.
#[derive(Default)]
struct Ledger {
    decided: BTreeSet<Timestamp>,
    fired: BTreeSet<Timestamp>,
}

impl Ledger {
    fn decide(&mut self, time: Timestamp) {
        assert!(self.decided.insert(time), "{time} was decided twice");
    }
}

/// The occurrences from one up to another that does not count.
fn all_of(schedule: &Schedule, from: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
    let nanosecond = SignedDuration::from_nanos(1);
    schedule.between(from - nanosecond, until - nanosecond).map(|occurrence| occurrence.time)
}

#[test]
fn whatever_happens_each_occurrence_is_decided_once_and_none_early() {
    for seed in 0..80 {
        let mut random = Random::new(seed);
        let pick = |random: &mut Random, count: u64| usize::try_from(random.below(count)).unwrap();
        let spec = [
            every(1 + random.below(90)),
            ScheduleSpec::cron("*/7 * * * *"),
            ScheduleSpec::cron("15,45 2 * * *").timezone("Europe/Berlin"),
            ScheduleSpec::cron("*/20 * * * * *"),
        ][pick(&mut random, 4)]
        .clone();
        let days =
            [&[][..], &["2026-02-11"], &["SAT..SUN", "02-12..02-13"], &["2026-02-10..2026-02-11", "MON"]];
        let everything = spec.compile(&Zones::bundled()).unwrap();
        let spec = spec.exclude(days[pick(&mut random, 4)].iter().copied());
        let policy = RecurringPolicy {
            missed: [MissedPolicy::None, MissedPolicy::Latest, MissedPolicy::All][pick(&mut random, 3)],
            overlap_policy: [OverlapPolicy::Allow, OverlapPolicy::Skip, OverlapPolicy::BufferOne]
                [pick(&mut random, 3)],
            catch_up_limit: 1 + u32::try_from(random.below(20)).unwrap(),
            ..RecurringPolicy::default()
        };
        let (mut action, schedule) = action(spec, policy);
        let (mut ledger, mut now, mut latest) = (Ledger::default(), at(0), at(0));
        for _ in 0..60 {
            // Time passes, the clock jumps forward or back, a node was away for hours.
            let jump = match random.below(10) {
                0 => 3_600 * i64::try_from(random.below(30)).unwrap(),
                1 => -i64::try_from(random.below(600)).unwrap(),
                _ => i64::try_from(random.below(120)).unwrap(),
            };
            now += SignedDuration::from_secs(jump);
            latest = latest.max(now);
            if random.below(3) == 0 {
                for running in action.progress.running.clone() {
                    action.succeeded(&running.instance);
                }
            }
            // A node that loses the race has decided on the same state, and changes nothing.
            let lost = decide(&action, &schedule, moment(now));
            assert_eq!(lost, decide(&action, &schedule, moment(now)), "a decision follows from its input");
            let mut taken = 0;
            while let Some(step) = decide(&action, &schedule, moment(now)) {
                action.advance(&step, &schedule, now);
                match step {
                    Step::Fire { time, .. } => {
                        assert_eq!(schedule.exclusion_of(time), None, "seed {seed}: {time} is left out");
                        assert!(time <= now, "seed {seed}: {time} was fired early, at {now}");
                        assert!(ledger.fired.insert(time), "seed {seed}: {time} was fired twice");
                        ledger.decided.insert(time);
                        action.started(time, &time.to_string(), now);
                    }
                    Step::Buffer { time } => ledger.decide(time),
                    Step::Skip { time, reason } => {
                        assert!(reason != SkipReason::Overlap || !action.progress.running.is_empty());
                        ledger.decide(time);
                    }
                    Step::LeaveOut { from, until } => {
                        assert!(from <= now, "seed {seed}: {from} was not due");
                        for time in all_of(&everything, from, until) {
                            assert!(
                                schedule.exclusion_of(time).is_some(),
                                "seed {seed}: {time} is not left out"
                            );
                            ledger.decide(time);
                        }
                    }
                    Step::SkipRange { from, until, .. } => {
                        let mut times = all_of(&schedule, from, until);
                        assert!(times.all(|time| time <= now), "seed {seed}: {from}..{until} was not due");
                        all_of(&everything, from, until).for_each(|time| ledger.decide(time));
                    }
                    other => panic!("seed {seed}: {other:?}"),
                }
                taken += 1;
                assert!(taken < 10_000, "seed {seed}: it does not end");
            }
            let waits = action.progress.buffered.is_some();
            assert!(waits || action.next_execution_at.is_some_and(|next| next > now), "seed {seed}");
        }
        let due: BTreeSet<Timestamp> =
            everything.between(at(0), latest).map(|occurrence| occurrence.time).collect();
        // A stretch that is left out can reach into the future.
        let decided: BTreeSet<Timestamp> = ledger.decided.range(..=latest).copied().collect();
        assert_eq!(decided, due, "seed {seed}: something was left out");
    }
}
