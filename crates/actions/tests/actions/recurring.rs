//! Recurring actions on a node and schedulers.

use std::collections::BTreeMap;

use segno::Payload;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use segno_actions::Listed;
use segno_actions::action::ActionStatus;
use segno_actions::functions::{Executor, Function, FunctionName, HumanDuration, RemoteSettings};
use segno_actions::recurring::{
    Backfill, BackfillOutcome, Decision, HistoryEntry, MissedPolicy, NewRecurringAction, Outcome,
    OverlapPolicy, Pause, RecurringAction, RecurringActionTemplate, SkipReason,
};
use segno_actions::schedule::ScheduleSpec;
use serde_json::{Value, json};

use crate::support::World;

pub fn every(seconds: u64, function: &str, payload: Value) -> NewRecurringAction {
    let template = RecurringActionTemplate {
        provider: function.to_owned(),
        orchestration: None,
        action_type: "test".to_owned(),
        payload: Payload::encode(&payload).unwrap(),
        metadata: BTreeMap::new(),
        dedup_key: None,
    };
    NewRecurringAction::new(ScheduleSpec::every(HumanDuration::from_secs(seconds)), template)
}

impl World {
    pub async fn create(&self, new: NewRecurringAction) -> RecurringAction {
        self.recurring().create(&self.scope(), new).await.unwrap()
    }

    pub async fn read(&self, action: &RecurringAction) -> RecurringAction {
        self.recurring().get(&self.scope(), &action.id).await.unwrap()
    }

    pub async fn told(&self, action: &RecurringAction) -> Vec<HistoryEntry> {
        let entries = self.recurring().history(&self.scope(), &action.id, None, 100).await.unwrap();
        let (mut entries, unreadable) = Listed::split(entries);
        assert!(unreadable.is_empty(), "{unreadable:?}");
        entries.reverse();
        entries
    }
}

#[test]
fn it_fires_at_its_times_with_all_that_the_function_should_know() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "note", json!({"to": "team"}));
        new.action_template.metadata.insert("team".to_owned(), "eu".to_owned());
        new.action_template.dedup_key = Some("{{recurring_id}}/{{execution_time}}".to_owned());
        let action = world.create(new).await;
        assert_eq!(action.next_execution_at, Some(world.at(60)));
        world.pass(185).await;
        assert_eq!(world.calls.seconds(), [60, 120, 180]);
        let expected = json!({
            "action_type": "test",
            "payload": {"to": "team"},
            "metadata": {
                "team": "eu",
                "_recurring_dispatch": "true",
                "_recurring_id": action.id,
                "_scheduled_time": world.at(60).to_string(),
            },
            "dedup_key": format!("{}/{}", action.id, world.at(60)),
        });
        assert_eq!(world.calls.inputs()[0], expected);
        let now = world.read(&action).await;
        assert_eq!((now.execution_count, now.last_executed_at), (3, Some(world.at(180))));
        assert_eq!(now.next_execution_at, Some(world.at(240)));
        assert!(now.progress.running.is_empty());
        let told = world.told(&action).await;
        assert_eq!(
            told.iter().map(|entry| entry.time).collect::<Vec<_>>(),
            [60, 120, 180].map(|s| world.at(s))
        );
        assert!(
            told.iter()
                .all(|entry| entry.decision == Decision::Fired && entry.outcome == Some(Outcome::Completed))
        );
    });
}

#[test]
fn without_an_action_type_the_function_gets_the_payload_as_it_is() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "note", json!("Ada"));
        new.action_template.action_type = String::new();
        world.create(new).await;
        world.pass(61).await;
        assert_eq!(world.calls.inputs(), [json!("Ada")]);
    });
}

#[test]
fn many_schedulers_fire_each_occurrence_once() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        for number in 0..20 {
            world.create(every(10, "note", json!({ "number": number }))).await;
        }
        for _ in 0..3 {
            world.schedule();
        }
        world.pass(35).await;
        let mut seen: Vec<(u64, String)> = world
            .calls
            .inputs()
            .iter()
            .map(|input| {
                let time = input["metadata"]["_scheduled_time"].as_str().unwrap().to_owned();
                (input["payload"]["number"].as_u64().unwrap(), time)
            })
            .collect();
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), all), (60, 60));
    });
}

#[test]
fn what_was_missed_is_told_and_caught_up_with_as_the_policy_says() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let mut ids = Vec::new();
        for missed in [MissedPolicy::None, MissedPolicy::Latest, MissedPolicy::All] {
            let mut new = every(600, "note", json!({ "missed": missed }));
            new.policy.missed = missed;
            ids.push(world.create(new).await);
        }
        world.pass(2_000).await;
        world.schedule();
        world.pass(10).await;
        let fired = |entries: &[HistoryEntry]| {
            entries.iter().filter(|entry| entry.decision == Decision::Fired).count()
        };
        let [none, latest, all] = [&ids[0], &ids[1], &ids[2]];
        let none = world.told(none).await;
        assert_eq!((fired(&none), none[0].reason, none[0].count), (0, Some(SkipReason::Missed), Some(3)));
        assert_eq!(fired(&world.told(latest).await), 1);
        assert_eq!(fired(&world.told(all).await), 3);
        let explained = world.recurring().explain(&world.scope(), &ids[0].id, world.at(1_200)).await.unwrap();
        assert!(!explained.runs && explained.text.contains("no node fired it in time"), "{explained:?}");
    });
}

#[test]
fn overlapping_runs_are_skipped_buffered_or_cancelled() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut ids = Vec::new();
        for policy in [OverlapPolicy::Skip, OverlapPolicy::BufferOne, OverlapPolicy::CancelOther] {
            let mut new = every(60, "slow", json!({"seconds": 150}));
            new.policy.overlap_policy = policy;
            ids.push(world.create(new).await);
        }
        world.pass(245).await;
        let mut shapes = Vec::new();
        for action in &ids {
            let told = world.told(action).await;
            shapes.push(
                told.iter().map(|entry| (entry.decision, entry.reason, entry.outcome)).collect::<Vec<_>>(),
            );
        }
        let done = Some(Outcome::Completed);
        let overlap = (Decision::Skipped, Some(SkipReason::Overlap), None);
        assert_eq!(
            shapes[0],
            [(Decision::Fired, None, done), overlap, overlap, (Decision::Fired, None, None)]
        );
        let runs = (Decision::Fired, None, None);
        assert_eq!(
            shapes[1],
            [(Decision::Fired, None, done), runs, overlap, (Decision::Buffered, None, None)]
        );
        let cancelled = (Decision::Fired, None, Some(Outcome::Cancelled));
        assert_eq!(shapes[2], [cancelled, cancelled, cancelled, runs]);
    });
}

#[test]
fn a_dedup_key_that_was_seen_suppresses_the_call() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "note", json!({}));
        new.action_template.dedup_key = Some("the same".to_owned());
        new.policy.dedup_window = HumanDuration::from_secs(150);
        let action = world.create(new).await;
        world.pass(250).await;
        assert_eq!(world.calls.seconds(), [60, 240]);
        let reasons: Vec<_> = world.told(&action).await.iter().map(|entry| entry.reason).collect();
        assert_eq!(reasons, [None, Some(SkipReason::Dedup), Some(SkipReason::Dedup), None]);
    });
}

#[test]
fn a_failed_run_does_not_end_it_but_many_pause_it() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "fail", json!({}));
        new.policy.pause_after_failures = Some(3);
        let action = world.create(new).await;
        world.pass(130).await;
        let now = world.read(&action).await;
        assert!(now.enabled && now.consecutive_failures == 2, "{now:?}");
        world.pass(300).await;
        let now = world.read(&action).await;
        assert_eq!((now.enabled, now.failure_count, now.execution_count), (false, 3, 3));
        assert!(now.disabled_reason.unwrap().contains("3 failures"));
        let resumed = world.recurring().resume(&world.scope(), &action.id).await.unwrap();
        assert!(resumed.enabled && resumed.consecutive_failures == 0);
    });
}

#[test]
fn a_pause_is_told_and_repeating_it_changes_nothing() {
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "note", json!({}))).await;
        world.pass(70).await;
        let (book, scope) = (world.recurring(), world.scope());
        let pause = Pause { note: Some("holiday".to_owned()), resumes_at: Some(world.at(300)) };
        let paused = book.pause(&scope, &action.id, pause.clone()).await.unwrap();
        assert_eq!((paused.enabled, paused.next_execution_at), (false, None));
        assert_eq!(book.pause(&scope, &action.id, pause).await.unwrap(), paused);
        let explained = book.explain(&scope, &action.id, world.at(120)).await.unwrap();
        assert!(!explained.runs && explained.text.contains("holiday"), "{explained:?}");
        world.pass(300).await;
        assert_eq!(world.calls.seconds(), [60, 360], "it went on by itself");
        let told = world.told(&action).await;
        assert_eq!((told[1].reason, told[1].count), (Some(SkipReason::Paused), Some(4)));
        let resumed = world.read(&action).await;
        assert_eq!(book.resume(&scope, &action.id).await.unwrap(), resumed);
    });
}

#[test]
fn a_backfill_runs_what_was_not_run_and_nothing_twice() {
    segno_testkit::run(async {
        let world = World::start().await;
        let (book, scope) = (world.recurring(), world.scope());
        let action = world.create(every(60, "note", json!({}))).await;
        world.pass(70).await;
        let past = Backfill { start: world.at(-120), end: world.at(60), limit: 100, dry_run: true };
        let outcomes = |lines: Vec<segno_actions::recurring::BackfillLine>| {
            lines.iter().map(|line| line.outcome).collect::<Vec<_>>()
        };
        let lines = book.backfill(&scope, &action.id, past).await.unwrap();
        let mut expected = vec![BackfillOutcome::WouldStart; 3];
        expected.push(BackfillOutcome::AlreadyRun);
        assert_eq!(outcomes(lines), expected);
        for outcome in [BackfillOutcome::Started, BackfillOutcome::AlreadyRun] {
            let lines = book.backfill(&scope, &action.id, Backfill { dry_run: false, ..past }).await.unwrap();
            assert_eq!(outcomes(lines)[..3], vec![outcome; 3]);
            world.pass(5).await;
        }
        assert_eq!(world.calls.inputs().len(), 4);
        let ahead = Backfill { end: world.at(10_000), ..past };
        assert_eq!(book.backfill(&scope, &action.id, ahead).await.unwrap_err().code(), "invalid-action");
    });
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    segno_testkit::run(async {
        let world = World::start().await;
        type Change = Box<dyn Fn(&mut NewRecurringAction)>;
        let cases: Vec<(&str, Change)> = vec![
            ("cron_expr", Box::new(|new| new.schedule = ScheduleSpec::cron("0 0 30 2 *"))),
            ("cron_expr", Box::new(|new| new.schedule = ScheduleSpec::cron("not cron"))),
            (
                "timezone",
                Box::new(|new| new.schedule = ScheduleSpec::cron("0 9 * * *").timezone("Mars/Base")),
            ),
            ("ends_at", Box::new(|new| new.schedule.ends_at = Some("2001-01-01T00:00:00Z".parse().unwrap()))),
            ("provider", Box::new(|new| new.action_template.provider = String::new())),
            ("provider", Box::new(|new| new.action_template.provider = "a/b:c".to_owned())),
            ("payload", Box::new(|new| new.action_template.payload = Payload::encode(&[1]).unwrap())),
            ("dedup_key", Box::new(|new| new.action_template.dedup_key = Some("{{other}}".to_owned()))),
            ("jitter", Box::new(|new| new.policy.jitter = Some(HumanDuration::from_secs(60)))),
            ("catch_up_limit", Box::new(|new| new.policy.catch_up_limit = 0)),
            ("at", Box::new(|new| new.schedule = ScheduleSpec::at("2001-01-01T00:00:00Z".parse().unwrap()))),
        ];
        for (field, change) in cases {
            let mut new = every(60, "note", json!({}));
            change(&mut new);
            let error = world.recurring().create(&world.scope(), new).await.unwrap_err();
            assert!(error.to_string().starts_with(&format!("{field}: ")), "{field}: {error}");
        }
        let unknown = world.recurring().create(&world.scope(), every(60, "missing", json!({}))).await;
        assert!(unknown.unwrap_err().to_string().starts_with("provider: there is no function"));
        assert!(world.recurring().page(&world.scope(), None, 10).await.unwrap().is_empty());
    });
}

#[test]
fn a_tenant_has_so_many_and_no_more() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        world.options.max_recurring_per_tenant = 2;
        let first = world.create(every(60, "note", json!({}))).await;
        world.create(every(60, "note", json!({}))).await;
        let error = world.recurring().create(&world.scope(), every(60, "note", json!({}))).await.unwrap_err();
        assert_eq!(error.code(), "too-many-recurring");
        world.recurring().delete(&world.scope(), &first.id).await.unwrap();
        world.create(every(60, "note", json!({}))).await;
        assert_eq!(
            world.recurring().delete(&world.scope(), &first.id).await.unwrap_err().code(),
            "unknown-action"
        );
    });
}

#[test]
fn a_change_of_the_schedule_sets_the_next_time_anew() {
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "note", json!({}))).await;
        world.pass(61).await;
        let change = |action: &mut RecurringAction| {
            action.schedule.every = Some(HumanDuration::from_secs(30));
            Ok(())
        };
        let updated = world.recurring().update(&world.scope(), &action.id, change).await.unwrap();
        assert_eq!(updated.next_execution_at, Some(world.at(90)));
        world.pass(61).await;
        assert_eq!(world.calls.seconds(), [60, 90, 120]);
    });
}

#[test]
fn one_time_is_fired_and_its_end_is_told_beside_it() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every(60, "note", json!({}));
        new.schedule = ScheduleSpec::at(world.at(30));
        let action = world.create(new).await;
        world.pass(40).await;
        let now = world.read(&action).await;
        assert_eq!((now.enabled, now.execution_count), (false, 1));
        assert_eq!(now.disabled_reason.as_deref(), Some("its one time has passed"));
        let decisions: Vec<_> = world.told(&action).await.iter().map(|entry| entry.decision).collect();
        assert_eq!(decisions, [Decision::Fired, Decision::Disabled]);
    });
}

#[test]
fn a_new_zone_database_sets_the_next_times_anew() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let action = world.create(every(600, "note", json!({}))).await;
        // As a node with another database would have left it.
        let mut old = world.read(&action).await;
        old.progress.zones = "1999a (system)".to_owned();
        old.next_execution_at = Some(world.at(90_000));
        let write = old.write(segno::store::Expect::Anything).unwrap();
        let batch = segno::store::RecordBatch { writes: vec![write], ..Default::default() };
        world.store.commit_records(batch).await.unwrap();
        world.schedule();
        world.pass(5).await;
        let now = world.read(&action).await;
        assert_eq!(now.next_execution_at, Some(world.at(600)));
        assert_eq!(now.progress.zones, world.zones.version());
    });
}

#[test]
fn what_the_calendar_leaves_out_is_told_explained_and_not_backfilled() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        // It is the 10th, 14:00.
        let mut new = every(1_800, "note", json!({}));
        new.schedule = new.schedule.exclude(["2026-02-11..2026-02-12"]);
        let action = world.create(new).await;
        let midnight = 10 * 3_600;
        world.pass(midnight as u64 - 1).await;
        assert_eq!(world.calls.inputs().len(), 19);
        let explain = async |world: &World, seconds: i64| {
            let explained = world.recurring().explain(&world.scope(), &action.id, world.at(seconds)).await;
            let explained = explained.unwrap();
            (explained.runs, explained.text)
        };
        let excluded = "the calendar leaves out its day: 2026-02-11..2026-02-12 (exclude)".to_owned();
        assert_eq!(explain(&world, midnight + 1_800).await, (false, excluded));
        world.pass(2).await;
        let entry = world.told(&action).await.pop().unwrap();
        assert_eq!((entry.decision, entry.reason), (Decision::Skipped, Some(SkipReason::Calendar)));
        let open = midnight + 2 * 86_400;
        assert_eq!(
            (entry.time, entry.until, entry.count),
            (world.at(midnight), Some(world.at(open)), Some(96))
        );
        assert_eq!(entry.detail.as_deref(), Some("2026-02-11..2026-02-12"));
        assert!(
            explain(&world, midnight).await.1.starts_with("it was skipped: the calendar leaves out its day")
        );
        let between = explain(&world, midnight + 60).await.1;
        assert!(between.starts_with("the schedule has no occurrence then"), "{between}");
        assert_eq!(explain(&world, open).await, (true, "it will run then".to_owned()));
        world.pass(2 * 86_400).await;
        assert_eq!(world.calls.inputs().len(), 20);
        assert_eq!(world.told(&action).await.len(), 21, "one entry for all that was left out");

        // Nobody is there, and then somebody wants what was missed.
        world.kill();
        world.pass(86_400).await;
        let dry = |start: i64, end: i64| Backfill {
            start: world.at(start),
            end: world.at(end),
            limit: 500,
            dry_run: true,
        };
        let book = world.recurring();
        let lines =
            book.backfill(&world.scope(), &action.id, dry(midnight - 1_800, open + 1_800)).await.unwrap();
        let lines: Vec<_> = lines.into_iter().map(|line| (line.time, line.outcome)).collect();
        assert_eq!(
            lines,
            [
                (world.at(midnight - 1_800), BackfillOutcome::AlreadyRun),
                (world.at(midnight), BackfillOutcome::Excluded),
                (world.at(open), BackfillOutcome::AlreadyRun),
                (world.at(open + 1_800), BackfillOutcome::WouldStart),
            ]
        );
        // What is left out does not count.
        let small = Backfill { limit: 2, ..dry(midnight - 1_800, open) };
        assert_eq!(book.backfill(&world.scope(), &action.id, small).await.unwrap().len(), 3);
        let small = Backfill { limit: 1, ..small };
        let error = book.backfill(&world.scope(), &action.id, small).await.unwrap_err();
        assert!(error.to_string().contains("more than 1 occurrences"), "{error}");
    });
}

impl World {
    /// Writes junk over a record, as a defect of a program or a disk would.
    async fn spoil(&self, kind: &str, id: &str) {
        let record = self.store.get_record(kind, id).await.unwrap().unwrap();
        let junk = RecordWrite::Put {
            kind: kind.to_owned(),
            id: id.to_owned(),
            expect: Expect::Version(record.version),
            due_at_ms: record.due_at_ms,
            time_to_live: None,
            body: "junk".into(),
        };
        let batch = RecordBatch { writes: vec![junk], ..RecordBatch::default() };
        self.store.commit_records(batch).await.unwrap();
    }
}

#[test]
fn an_entry_of_the_history_that_cannot_be_read_keeps_nothing_from_firing() {
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "slow", json!({ "seconds": 30 }))).await;
        world.pass(65).await;
        let (kind, prefix) = ("segno.recurring-history", format!("default/default/{}", action.id));
        let request = ListRecords { kind, id_prefix: &prefix, after_id: None, limit: 9 };
        let entries = world.store.list_records(request).await.unwrap();
        assert_eq!(entries.len(), 1);
        world.spoil(kind, &entries[0].id).await;
        world.pass(180).await;
        assert_eq!(world.calls.seconds(), [60, 120, 180, 240]);
        assert_eq!(world.read(&action).await.execution_count, 4);
    });
}

#[test]
fn a_run_that_was_lost_with_its_entry_is_settled_by_a_look() {
    segno_testkit::run(async {
        let world = World::start().await;
        let action = world.create(every(60, "hang", json!({}))).await;
        world.pass(65).await;
        let running = world.read(&action).await.progress.running;
        let (kind, prefix) = ("segno.recurring-history", format!("default/default/{}", action.id));
        let request = ListRecords { kind, id_prefix: &prefix, after_id: None, limit: 9 };
        let entry = world.store.list_records(request).await.unwrap().remove(0);
        world.spoil(kind, &entry.id).await;
        // Its instance is gone, so only a look at it can tell.
        world.env.client().delete(&running[0].instance, true).await.unwrap();
        world.pass(7_200).await;
        let now = world.read(&action).await;
        assert!(now.progress.running.iter().all(|run| run.instance != running[0].instance));
        assert!(now.execution_count > 1, "it fires again: {now:?}");
    });
}

#[test]
fn an_occurrence_whose_function_cannot_be_read_is_refused_and_the_schedule_goes_on() {
    segno_testkit::run(async {
        let world = World::start().await;
        let name = FunctionName::new("render").unwrap();
        let remote = Function::new(Executor::Remote(RemoteSettings::default()));
        world.functions.create(&world.scope(), &name, &remote).await.unwrap();
        let action = world.create(every(60, "render", json!({}))).await;
        world.add(1, "render", json!({}), 70).await;
        world.spoil("segno.function", "default/default/render").await;
        world.pass(130).await;
        let told = world.told(&action).await;
        assert_eq!(told.iter().map(|entry| entry.decision).collect::<Vec<_>>(), [Decision::Refused; 2]);
        assert!(told[0].detail.as_ref().unwrap().contains("cannot be read"), "{told:?}");
        let ActionStatus::Failed { reason } = world.status(1).await else { panic!("it has failed") };
        assert!(reason.contains("cannot be read"), "{reason}");
    });
}
