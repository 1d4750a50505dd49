//! What is written down about occurrences stays true, whatever happens to the action afterwards.

use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use segno_actions::Listed;
use segno_actions::recurring::{
    Backfill, BackfillOutcome, Decision, HistoryEntry, MissedPolicy, Outcome, OverlapPolicy, Pause,
    RecurringAction, SkipReason,
};
use serde_json::json;

use crate::recurring::every;
use crate::support::World;

/// Time, decision, reason and count of each entry, in order.
fn short(world: &World, entries: &[HistoryEntry]) -> Vec<(i64, Decision, Option<SkipReason>, Option<u64>)> {
    let seconds = |entry: &HistoryEntry| entry.time.duration_since(world.at(0)).as_secs();
    entries.iter().map(|entry| (seconds(entry), entry.decision, entry.reason, entry.count)).collect()
}

async fn backfill(world: &World, action: &RecurringAction, from: i64, to: i64) -> usize {
    let range = Backfill { start: world.at(from), end: world.at(to), limit: 100, dry_run: false };
    let lines = world.recurring().backfill(&world.scope(), &action.id, range).await.unwrap();
    lines.iter().filter(|line| line.outcome == BackfillOutcome::Started).count()
}

async fn explain(world: &World, action: &RecurringAction, seconds: i64) -> (bool, String) {
    let told = world.recurring().explain(&world.scope(), &action.id, world.at(seconds)).await.unwrap();
    (told.runs, told.text)
}

#[test]
fn pausing_skips_the_occurrence_that_waits_and_says_so() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "hang", json!({}));
        new.policy.overlap_policy = OverlapPolicy::BufferOne;
        let action = world.create(new).await;
        world.pass(125).await;
        assert_eq!(world.read(&action).await.progress.buffered, Some(world.at(120)));
        let pause = Pause { note: Some("maintenance".to_owned()), resumes_at: None };
        let paused = world.recurring().pause(&world.scope(), &action.id, pause).await.unwrap();
        assert_eq!(paused.updated_at, world.at(125), "a pause is a change");
        let told = world.told(&action).await;
        assert_eq!(short(&world, &told)[1], (120, Decision::Skipped, Some(SkipReason::Paused), None));
        let (runs, text) = explain(&world, &action, 120).await;
        assert!(!runs && text.contains("it waited for the end of the run before it"), "{text}");
        world.pass(10).await;
        let resumed = world.recurring().resume(&world.scope(), &action.id).await.unwrap();
        assert_eq!(resumed.updated_at, world.at(135), "and so is its end");
        assert_eq!(resumed.progress.buffered, None);
    });
}

#[test]
fn an_explanation_knows_until_when_a_pause_lasts_and_what_comes_after_it() {
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "note", json!({}))).await;
        let explain = async |seconds: i64| {
            world.recurring().explain(&world.scope(), &action.id, world.at(seconds)).await.unwrap()
        };
        let between = explain(90).await;
        assert_eq!((between.runs, between.text.as_str()), (false, "the schedule has no occurrence then"));
        assert_eq!(between.next, Some(world.at(120)));
        let early = explain(-60).await;
        assert_eq!((early.runs, early.created_at), (false, Some(action.created_at)), "{early:?}");
        assert!(early.text.starts_with("it did not exist then"), "{early:?}");
        world.pass(10).await;
        let pause = Pause { note: Some("maintenance".to_owned()), resumes_at: Some(world.at(300)) };
        world.recurring().pause(&world.scope(), &action.id, pause).await.unwrap();
        for seconds in [60, 240, 300] {
            let paused = explain(seconds).await;
            assert_eq!(
                (paused.runs, paused.text.as_str()),
                (false, "it is paused then: maintenance"),
                "{seconds}"
            );
            assert_eq!((paused.paused_at, paused.resumes_at), (Some(world.at(10)), Some(world.at(300))));
            assert_eq!(paused.next, Some(world.at(360)), "{seconds}");
        }
        let after = explain(360).await;
        assert!(after.runs && after.text.contains("goes on by itself before"), "{after:?}");
        assert_eq!(after.next, Some(world.at(420)));
        world.pass(355).await;
        let fired: Vec<i64> = (world.told(&action).await.iter())
            .filter(|entry| entry.decision == Decision::Fired)
            .map(|entry| entry.time.duration_since(world.at(0)).as_secs())
            .collect();
        assert_eq!(fired, [360], "what was said is what happens");
        world.recurring().pause(&world.scope(), &action.id, Pause::default()).await.unwrap();
        let open = explain(900).await;
        assert_eq!((open.runs, open.text.as_str(), open.next), (false, "it is paused then", None));
    });
}

#[test]
fn a_change_of_enabled_writes_down_what_a_pause_and_its_end_do() {
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "note", json!({}))).await;
        let set = |enabled: bool| {
            move |action: &mut RecurringAction| {
                action.enabled = enabled;
                Ok(())
            }
        };
        world.recurring().update(&world.scope(), &action.id, set(false)).await.unwrap();
        world.pass(190).await;
        world.recurring().update(&world.scope(), &action.id, set(true)).await.unwrap();
        let told = world.told(&action).await;
        assert_eq!(short(&world, &told), [(60, Decision::Skipped, Some(SkipReason::Paused), Some(3))]);
    });
}

#[test]
fn a_backfill_leaves_the_record_of_what_it_did_not_run() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let action = world.create(every(600, "note", json!({}))).await;
        world.pass(6_100).await;
        world.schedule();
        world.pass(1).await;
        // 600 to 5,400 were missed; 6,000 is late by 100 s.
        let missed = Some(SkipReason::Missed);
        let told = world.told(&action).await;
        assert_eq!(short(&world, &told), [(600, Decision::Skipped, missed, Some(10))]);
        // The first, one in the middle, and the last.
        assert_eq!(backfill(&world, &action, 600, 600).await, 1);
        assert_eq!(backfill(&world, &action, 2_400, 3_000).await, 2);
        assert_eq!(backfill(&world, &action, 6_000, 6_000).await, 1);
        world.pass(1).await;
        let told = world.told(&action).await;
        let fired = |seconds| (seconds, Decision::Fired, None, None);
        assert_eq!(
            short(&world, &told),
            [
                fired(600),
                (1_200, Decision::Skipped, missed, Some(2)),
                fired(2_400),
                fired(3_000),
                (3_600, Decision::Skipped, missed, Some(4)),
                fired(6_000),
            ]
        );
        for (seconds, runs, words) in [
            (600, true, "it was fired"),
            (1_200, false, "no node fired it in time"),
            (1_800, false, "no node fired it in time"),
            (2_400, true, "it was fired"),
            (3_600, false, "no node fired it in time"),
            (5_400, false, "no node fired it in time"),
            (6_000, true, "it was fired"),
            (6_600, true, "it will run then"),
        ] {
            let (does, text) = explain(&world, &action, seconds).await;
            assert!(does == runs && text.contains(words), "{seconds}: {text}");
        }
        // Running all of it leaves nothing that was skipped.
        assert_eq!(backfill(&world, &action, 1, 6_000).await, 6);
        let told = world.told(&action).await;
        assert!(told.len() == 10 && told.iter().all(|entry| entry.decision == Decision::Fired), "{told:?}");
    });
}

#[test]
fn a_pause_does_not_take_the_place_of_what_was_run_during_it() {
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "note", json!({}))).await;
        world.recurring().pause(&world.scope(), &action.id, Pause::default()).await.unwrap();
        world.pass(310).await;
        assert_eq!(backfill(&world, &action, 60, 60).await, 1);
        assert_eq!(backfill(&world, &action, 180, 180).await, 1);
        world.recurring().resume(&world.scope(), &action.id).await.unwrap();
        let (told, paused) = (world.told(&action).await, Some(SkipReason::Paused));
        assert_eq!(
            short(&world, &told),
            [
                (60, Decision::Fired, None, None),
                (120, Decision::Skipped, paused, Some(1)),
                (180, Decision::Fired, None, None),
                (240, Decision::Skipped, paused, Some(2)),
            ]
        );
    });
}

#[test]
fn a_run_that_is_cancelled_for_the_next_one_has_not_failed() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "hang", json!({}));
        new.policy.overlap_policy = OverlapPolicy::CancelOther;
        new.policy.pause_after_failures = Some(2);
        let action = world.create(new).await;
        world.pass(365).await;
        let now = world.read(&action).await;
        assert!(now.enabled, "{:?}", now.disabled_reason);
        assert_eq!((now.execution_count, now.failure_count, now.consecutive_failures), (6, 0, 0));
        assert_eq!(now.last_error, None);
        let told = world.told(&action).await;
        assert!(told[..5].iter().all(|entry| entry.outcome == Some(Outcome::Cancelled)), "{told:?}");
        assert_eq!(told[5].outcome, None);
        let (runs, text) = explain(&world, &action, 60).await;
        assert!(runs && text.contains("was cancelled: the next occurrence is due"), "{text}");
        // A cancellation by a user is one.
        let client = segno::Client::new(world.store.clone());
        client.cancel(told[5].instance.as_deref().unwrap(), "enough").await.unwrap();
        world.pass(1).await;
        assert_eq!(world.read(&action).await.failure_count, 1);
    });
}

#[test]
fn after_a_short_outage_one_of_many_late_occurrences_is_fired() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        let action = world.create(every(1, "note", json!({}))).await;
        world.pass(3).await;
        world.kill();
        world.pass(15).await;
        let before = world.calls.seconds().len();
        world.schedule();
        world.pass(1).await;
        let told = world.told(&action).await;
        let skipped: Vec<&HistoryEntry> = told.iter().filter(|entry| entry.reason.is_some()).collect();
        assert_eq!(skipped.len(), 1, "the others are one entry: {skipped:?}");
        assert_eq!(skipped[0].reason, Some(SkipReason::Coalesced), "none of them was too late");
        assert!(skipped[0].count.unwrap() >= 13, "{skipped:?}");
        let (runs, text) = explain(&world, &action, 10).await;
        assert!(!runs && text.contains("of several that are due at once only the last is run"), "{text}");
        assert_eq!(
            world.calls.seconds().len(),
            before + 2,
            "the last of them, and the one after: {:?}",
            world.calls.seconds()
        );
    });
}

#[test]
fn what_was_too_late_is_told_from_what_a_later_occurrence_stands_for() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let action = world.create(every(30, "note", json!({}))).await;
        world.pass(200).await;
        world.schedule();
        world.pass(1).await;
        let told = world.told(&action).await;
        assert_eq!(
            short(&world, &told),
            [
                (30, Decision::Skipped, Some(SkipReason::Missed), Some(4)),
                (150, Decision::Skipped, Some(SkipReason::Coalesced), Some(1)),
                (180, Decision::Fired, None, None),
            ]
        );
        assert!(explain(&world, &action, 120).await.1.contains("no node fired it in time"));
        assert!(explain(&world, &action, 150).await.1.contains("a later occurrence was due as well"));
    });
}

#[test]
fn a_pause_after_failures_is_written_down_and_takes_what_waits_along() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "fail", json!({}));
        new.policy.pause_after_failures = Some(2);
        let action = world.create(new).await;
        let mut waiting = every(60, "slow_failure", json!({"seconds": 70}));
        waiting.policy.overlap_policy = OverlapPolicy::BufferOne;
        waiting.policy.pause_after_failures = Some(1);
        let waiting = world.create(waiting).await;
        world.pass(200).await;
        let told = world.told(&action).await;
        let ends: Vec<&HistoryEntry> =
            told.iter().filter(|entry| entry.decision == Decision::Disabled).collect();
        assert_eq!(ends.len(), 1, "{told:?}");
        assert_eq!(ends[0].detail.as_deref(), Some("paused after 2 failures in a row"));
        assert_eq!(told.iter().filter(|entry| entry.outcome == Some(Outcome::Failed)).count(), 2);
        let told = world.told(&waiting).await;
        let decisions: Vec<Decision> = told.iter().map(|entry| entry.decision).collect();
        assert_eq!(decisions, [Decision::Fired, Decision::Skipped, Decision::Disabled], "{told:?}");
        let detail = told[1].detail.as_deref().unwrap();
        assert!(detail.contains("paused after 1 failures in a row"), "{detail}");
    });
}

#[test]
fn missed_all_runs_what_is_in_its_window_as_before() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        let mut new = every(10, "note", json!({}));
        new.policy.missed = MissedPolicy::All;
        world.create(new).await;
        world.kill();
        world.pass(45).await;
        world.schedule();
        world.pass(1).await;
        assert_eq!(world.calls.inputs().len(), 4);
    });
}

#[test]
fn an_entry_that_cannot_be_read_hides_no_other_and_is_named_by_its_time() {
    const KIND: &str = "segno.recurring-history";
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "note", json!({}))).await;
        world.pass(185).await;
        let store = world.env.store();
        let all = ListRecords { kind: KIND, limit: 100, ..ListRecords::default() };
        // Newest first: the occurrence of 120 seconds is the second.
        let entry = store.list_records(all).await.unwrap().remove(1);
        let write = RecordWrite::Put {
            kind: KIND.to_owned(),
            id: entry.id,
            expect: Expect::Version(entry.version),
            due_at_ms: None,
            time_to_live: None,
            body: "no entry".into(),
        };
        store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.unwrap();
        let listed = world.recurring().history(&world.scope(), &action.id, None, 100).await.unwrap();
        let (readable, unreadable) = Listed::split(listed);
        let times: Vec<_> = readable.iter().map(|entry| entry.time).collect();
        assert_eq!(times, [world.at(180), world.at(60)]);
        assert_eq!(unreadable.len(), 1);
        assert_eq!(unreadable[0].id, world.at(120).to_string());
        let (runs, text) = explain(&world, &action, 120).await;
        assert!(!runs && text.contains("whether it ran is not known"), "{text}");
        let (runs, text) = explain(&world, &action, 180).await;
        assert!(runs, "{text}");
    });
}
