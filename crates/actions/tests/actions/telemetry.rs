//! Every metric and every event in the log of actions and recurring actions, against a story with known counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use segno_actions::action::{Action, OnRestart};
use segno_actions::recurring::{MissedPolicy, OverlapPolicy, Pause};
use segno_actions::schedule::ScheduleSpec;
use segno_actions::telemetry;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::recurring::every;
use crate::support::World;

/// What was logged: levels and messages.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<BTreeSet<String>>>);

/// The message of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().insert(format!("{} {}", event.metadata().level(), message.0));
    }
}

/// Counters, gauges and the values of histograms, each under its name and labels.
struct Numbers(BTreeMap<String, Vec<f64>>);

impl Numbers {
    fn of(snapshotter: &Snapshotter) -> Self {
        let mut numbers = BTreeMap::new();
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
            let values = match value {
                #[expect(clippy::cast_precision_loss, reason = "counts of a short story")]
                DebugValue::Counter(count) => vec![count as f64],
                DebugValue::Gauge(value) => vec![value.into_inner()],
                DebugValue::Histogram(values) => values.into_iter().map(|value| value.into_inner()).collect(),
            };
            numbers.insert([&[key.key().name()], &labels[..]].concat().join(" "), values);
        }
        Numbers(numbers)
    }

    fn check(&self, name: &str, labels: &str, expected: &[f64]) {
        let key = format!("{name} {labels}");
        assert_eq!(self.0.get(key.trim_end()).map(Vec::as_slice), Some(expected), "{key} of {:#?}", self.0);
    }
}

#[test]
fn numbers_and_events_tell_what_happened() {
    let (recorder, events) = (DebuggingRecorder::new(), Events::default());
    let snapshotter = recorder.snapshotter();
    let _numbers = metrics::set_default_local_recorder(&recorder);
    let _events = tracing_subscriber::registry().with(events.clone()).set_default();
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let (book, scope) = (world.recurring(), world.scope());
        // Nobody is there for half an hour: two occurrences are missed, and an action is late.
        let mut missed = every(600, "note", json!({}));
        missed.policy.missed = MissedPolicy::None;
        let missed = book.create(&scope, missed).await.unwrap();
        world.add(1, "note", json!(1), 1_795).await;
        world.pass(1_800).await;
        world.schedule();
        world.pass(1).await;
        // The third one is on time, and looked at as late as the scheduler was started.
        let first = Numbers::of(&snapshotter);
        first.check(telemetry::RECURRING_SKIPPED, "missed", &[2.0]);
        first.check(telemetry::RECURRING_DISPATCHED, "", &[1.0]);
        first.check(telemetry::LATENESS_SECONDS, "recurring", &[0.0]);
        first.check(telemetry::LATENESS_SECONDS, "action", &[5.0]);
        first.check(telemetry::OVERDUE, "action", &[0.0]);
        first.check(telemetry::RECURRING_ACTIVE, "", &[1.0]);
        book.delete(&scope, &missed.id).await.unwrap();

        let mut overlapping = every(60, "hang", json!({}));
        overlapping.policy.overlap_policy = OverlapPolicy::Skip;
        let overlapping = book.create(&scope, overlapping).await.unwrap();
        let mut same = every(60, "note", json!({}));
        same.action_template.dedup_key = Some("the same".to_owned());
        let same = book.create(&scope, same).await.unwrap();
        let mut left_out = every(60, "note", json!({}));
        left_out.schedule = left_out.schedule.exclude(["2026-02-10"]);
        book.create(&scope, left_out).await.unwrap();
        book.create(&scope, every(60, "fail", json!({}))).await.unwrap();
        let once = every(60, "note", json!({}));
        let once = segno_actions::recurring::NewRecurringAction {
            schedule: ScheduleSpec::at(world.at(1_830)),
            ..once
        };
        book.create(&scope, once).await.unwrap();
        let mut ending = every(60, "note", json!({}));
        ending.schedule.ends_at = Some(world.at(1_900));
        book.create(&scope, ending).await.unwrap();
        let failing = world.action(2, "fail", json!(1), 1_810);
        world.db.insert(&Action { on_restart: OnRestart::Resume, ..failing }).await.unwrap();
        world.add(3, "missing", json!(1), 1_810).await;
        // Two more nodes race for what is due at 1,860 and 1,920.
        world.schedule();
        world.schedule();
        world.pass(125).await;
        book.pause(&scope, &same.id, Pause::default()).await.unwrap();
        world.pass(60).await;
        book.resume(&scope, &same.id).await.unwrap();
        book.update(&scope, &overlapping.id, |action| {
            action.description = Some("changed".to_owned());
            Ok(())
        })
        .await
        .unwrap();
        world.pass(60).await;

        let numbers = Numbers::of(&snapshotter);
        // A snapshot takes what has been counted since the one before.
        numbers.check(telemetry::RECURRING_SKIPPED, "overlap", &[3.0]);
        numbers.check(telemetry::RECURRING_SKIPPED, "dedup", &[2.0]);
        numbers.check(telemetry::RECURRING_SKIPPED, "paused", &[1.0]);
        // Every minute from 14:31 to the end of the day.
        numbers.check(telemetry::RECURRING_SKIPPED, "calendar", &[569.0]);
        numbers.check(telemetry::RECURRING_ERRORS, "", &[4.0]);
        // One of each of those that overlap, are the same, happen once or end, and four that fail.
        numbers.check(telemetry::RECURRING_DISPATCHED, "", &[8.0]);
        numbers.check(telemetry::LATENESS_SECONDS, "recurring", &[0.0; 8]);
        numbers.check(telemetry::ACTIONS_DISPATCHED, "", &[1.0]);
        numbers.check(telemetry::ACTIONS_ENDED, "failed", &[2.0]);
        for kind in ["action", "check", "recurring", "recurring_end"] {
            numbers.check(telemetry::OVERDUE, kind, &[0.0]);
        }
        // Those that overlap, are the same, are left out and fail; the others have ended.
        numbers.check(telemetry::RECURRING_ACTIVE, "", &[4.0]);
    });
    let events = events.0.lock().unwrap();
    for expected in [
        "INFO recurring.create",
        "INFO recurring.update",
        "INFO recurring.delete",
        "INFO recurring.pause",
        "INFO recurring.resume",
        "INFO recurring.dispatch",
        "INFO recurring.skip",
        "WARN recurring.expired",
        "WARN recurring.no_next",
        "ERROR recurring.dispatch_error",
        "DEBUG action.dispatch",
        "WARN action.dispatch_error",
    ] {
        assert!(events.contains(expected), "{expected} is not among {events:#?}");
    }
}

#[test]
fn what_is_due_and_not_fired_is_seen() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _numbers = metrics::set_default_local_recorder(&recorder);
    segno_testkit::run(async {
        let mut world = World::idle().await;
        world.add(1, "note", json!(1), 1).await;
        world.pass(30).await;
        // A scheduler that finds it has it overdue as long as it has not fired it.
        world.schedule();
        while !Numbers::of(&snapshotter)
            .0
            .get("segno_actions_overdue action")
            .is_some_and(|value| value[0] > 0.0)
        {
            tokio::task::yield_now().await;
        }
        world.pass(10).await;
        Numbers::of(&snapshotter).check(telemetry::OVERDUE, "action", &[0.0]);
    });
}
