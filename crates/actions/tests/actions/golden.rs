//! Records and histories that were written once and must be readable for ever: `tests/golden`.
//!
//! `UPDATE_GOLDEN=1` records them anew. Look at the difference before committing it: stores out there hold records like
//! these. A field may come; none may go, or change its meaning.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite, Store};
use segno_actions::Listed;
use segno_actions::action::{Action, ActionDb, OnRestart};
use segno_actions::functions::{HumanDuration, Scope};
use segno_actions::hooks::{Headers, Hook, HookSettings, Hooks, Incoming, ListEvents, ListPayloads};
use segno_actions::recurring::{
    HistoryEntry, NewRecurringAction, OverlapPolicy, Pause, RecurringAction, RecurringActions, Run,
};
use segno_actions::schedule::{Gap, Overlap, ScheduleSpec, Zones};
use segno_testkit::histories::{self, History};
use segno_testkit::seeded::SeededIds;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::recurring::every;
use crate::support::World;

/// Every kind of record of this crate but those of functions.
const KINDS: [&str; 13] = [
    "segno.action",
    "segno.action-dedup",
    "segno.action-run",
    "segno.hook",
    "segno.hook-body",
    "segno.hook-event",
    "segno.hook-key",
    "segno.hook-payload",
    "segno.recurring",
    "segno.recurring-count",
    "segno.recurring-end",
    "segno.recurring-history",
    "segno.recurring-run",
];

/// Stands for the version of the zone database, which changes.
const ANY_ZONES: &str = "ZONES";

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A recurring action with everything that can be said of one.
fn everything(world: &World) -> NewRecurringAction {
    let mut new = every(1_800, "note", json!({"to": "team"}));
    new.id = Some(Uuid::from_u128(1));
    new.name = Some("digest".to_owned());
    new.description = Some("half-hourly".to_owned());
    new.labels.insert("team".to_owned(), "eu".to_owned());
    new.schedule.timezone = "Europe/Berlin".to_owned();
    new.schedule.anchor = Some(world.at(0));
    new.schedule.starts_at = Some(world.at(60));
    new.schedule.ends_at = Some(world.at(1_000_000));
    new.schedule = new.schedule.exclude(["SAT..SUN", "12-25", "2026-12-31"]);
    new.action_template.metadata.insert("a".to_owned(), "b".to_owned());
    new.action_template.dedup_key = Some("{{recurring_id}}".to_owned());
    new.policy.jitter = Some(HumanDuration::from_secs(2));
    new.policy.max_executions = Some(100);
    new.policy.pause_after_failures = Some(5);
    new
}

async fn recurring_actions(world: &World) {
    let (book, scope) = (world.recurring(), world.scope());
    book.create(&scope, everything(world)).await.unwrap();
    let numbered = |number: u128, new: NewRecurringAction| NewRecurringAction {
        id: Some(Uuid::from_u128(number)),
        ..new
    };
    let mut failing = every(1_800, "fail", json!({}));
    failing.policy.pause_after_failures = Some(1);
    book.create(&scope, numbered(2, failing)).await.unwrap();
    let mut overlapping = every(1_200, "slow", json!({"seconds": 10_000}));
    overlapping.policy.overlap_policy = OverlapPolicy::BufferOne;
    book.create(&scope, numbered(3, overlapping)).await.unwrap();
    let cron =
        ScheduleSpec::cron("30 2 * * *").timezone("America/New_York").daylight(Gap::Skip, Overlap::Both);
    book.create(&scope, numbered(4, NewRecurringAction { schedule: cron, ..every(60, "note", json!({})) }))
        .await
        .unwrap();
    let pause = Pause { note: Some("release week".to_owned()), resumes_at: Some(world.at(500_000)) };
    book.pause(&scope, &Uuid::from_u128(4).to_string(), pause).await.unwrap();
    let mut left_out = every(1_800, "note", json!({}));
    left_out.schedule = left_out.schedule.exclude(["2026-02-10"]);
    book.create(&scope, numbered(5, left_out)).await.unwrap();
    let at = ScheduleSpec::at(world.at(600));
    book.create(&scope, numbered(6, NewRecurringAction { schedule: at, ..every(60, "note", json!({})) }))
        .await
        .unwrap();
    let later = ScheduleSpec::at(world.at(900_000));
    book.create(&scope, numbered(7, NewRecurringAction { schedule: later, ..every(60, "note", json!({})) }))
        .await
        .unwrap();
    book.run(&scope, &Uuid::from_u128(7).to_string(), "once more").await.unwrap();
}

/// Leaves the end of a run that no scheduler takes in.
async fn run_without_scheduler(world: &mut World) {
    world.kill();
    let schedule = ScheduleSpec::at(world.at(900_000));
    let id = Some(Uuid::from_u128(8));
    let new = NewRecurringAction { schedule, id, ..every(60, "fail", json!({})) };
    let action = world.create(new).await;
    world.recurring().run(&world.scope(), &action.id, "unseen").await.unwrap();
    world.pass(1).await;
}

async fn actions(world: &World) {
    world.add(101, "note", json!({"n": 1}), 1_000_000).await;
    let resumed = Action { on_restart: OnRestart::Resume, ..world.action(102, "hang", json!(null), 10) };
    world.db.insert(&resumed).await.unwrap();
    let again =
        Action { recurrence: Some(Duration::from_secs(90_000)), ..world.action(103, "note", json!("x"), 10) };
    world.db.insert(&again).await.unwrap();
    world.add(104, "fail", json!([]), 10).await;
}

fn hooks(world: &World, store: Arc<dyn Store>) -> Hooks {
    let sources = (world.clock.clone() as Arc<dyn Clock>, SeededIds::shared(7) as Arc<_>);
    Hooks::with_sources(store, world.functions.clone(), HookSettings::default(), sources)
}

async fn webhooks(world: &World) {
    let (hooks, scope) = (hooks(world, world.store.clone()), world.scope());
    let declaration = json!({
        "function": "note", "input": {"ref": "{{payload.ref}}"}, "verification": "none",
        "filter": "payload.ref != \"skip\"", "dedup": {"header": "x-delivery"}, "headers": ["x-event"],
        "content_types": ["application/json"], "retention": "7d", "max_body_bytes": 1_000, "description": "pushes",
    });
    let hook: Hook = serde_json::from_value(declaration).unwrap();
    hooks.create(&scope, &"git".parse().unwrap(), &hook).await.unwrap();
    let route = hooks.find(&scope, &"git".parse().unwrap()).await.unwrap();
    for (delivery, body) in
        [("1", r#"{"ref":"main"}"#), ("1", r#"{"ref":"main"}"#), ("2", r#"{"ref":"skip"}"#), ("3", "{}")]
    {
        let headers = [("content-type", "application/json"), ("x-event", "push"), ("x-delivery", delivery)];
        let headers: Headers = headers.into_iter().collect();
        let params = [("env".to_owned(), "prod".to_owned())].into();
        hooks
            .receive(&route, Incoming { headers, params, body: Bytes::from_static(body.as_bytes()) })
            .await
            .unwrap();
        world.pass(1).await;
    }
    hooks.write_events().await.unwrap();
}

/// All records of a store, a line for each.
async fn lines(store: &dyn Store, zones: &Zones) -> String {
    let mut text = String::new();
    for kind in KINDS {
        let request = ListRecords { kind, id_prefix: "", after_id: None, limit: 1_000 };
        for record in store.list_records(request).await.unwrap() {
            let line = json!({
                "kind": record.kind,
                "id": record.id,
                "due_at_ms": record.due_at_ms,
                "expires_at_ms": record.expires_at_ms,
                "body": String::from_utf8(record.body.to_vec()).unwrap(),
            });
            text.push_str(&line.to_string().replace(zones.version(), ANY_ZONES));
            text.push('\n');
        }
    }
    text
}

/// Plays a story that leaves a record of every kind, and gives them with two histories of calls.
fn record_all() -> (String, BTreeMap<&'static str, History>) {
    segno_testkit::run(async {
        let mut world = World::start().await;
        recurring_actions(&world).await;
        actions(&world).await;
        webhooks(&world).await;
        world.pass(3_700).await;
        run_without_scheduler(&mut world).await;
        let book = world.recurring();
        let fired = book.get(&world.scope(), &Uuid::from_u128(1).to_string()).await.unwrap();
        let action = world.db.get(Uuid::from_u128(104)).await.unwrap();
        let mut told = BTreeMap::new();
        for (name, instance) in
            [("invoke-recurring", fired.last_execution_id), ("invoke-action", action.instance)]
        {
            told.insert(name, History::of(world.env.client(), &instance.unwrap(), 1).await.unwrap());
        }
        (lines(&*world.store, &world.zones).await, told)
    })
}

/// Compares a file with what was recorded today, or writes it when asked to.
fn check_file(name: &str, recorded: &str) {
    let file = golden(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, recorded).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    for (at, (old, new)) in stored.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(old, new, "{name} line {}; UPDATE_GOLDEN=1 records it anew", at + 1);
    }
    assert_eq!(stored.lines().count(), recorded.lines().count(), "{name}: lines stored and recorded");
}

#[test]
fn what_is_stored_today_is_what_was_stored_then() {
    let (records, histories) = record_all();
    for kind in KINDS {
        assert!(records.contains(&format!("\"kind\":\"{kind}\"")), "there is no {kind} in the story");
    }
    check_file("records.jsonl", &records);
    for (name, history) in histories {
        check_file(&format!("histories/{name}.jsonl"), &history.to_json_lines());
        check_file(&format!("histories/{name}.stored"), &history.to_stored_lines());
    }
}

#[test]
fn golden_histories_replay_and_tell_how_they_ended() {
    segno_testkit::run(async {
        let world = World::idle().await;
        assert_eq!(histories::replay_dir(golden("histories"), world.env.registry()).unwrap(), 2);
    });
    for name in ["invoke-recurring", "invoke-action"] {
        let read =
            |extension| std::fs::read_to_string(golden(&format!("histories/{name}.{extension}"))).unwrap();
        let history = History::from_json_lines(&read("jsonl")).unwrap();
        assert_eq!(histories::read_stored_lines(&read("stored")).unwrap(), history.events);
        assert!(read("jsonl").contains("\"settle\":{\"kind\":"), "{name} says whom to tell how it ended");
    }
}

#[test]
fn a_history_replays_that_was_recorded_under_an_id_of_no_scope() {
    let text = std::fs::read_to_string(golden("histories/invoke-action.jsonl")).unwrap();
    let mut history = History::from_json_lines(&text).unwrap();
    "order-7".clone_into(&mut history.instance);
    segno_testkit::run(async {
        let world = World::idle().await;
        let replayed = world.env.registry().replay(&history.instance, 1, &history.events);
        replayed.unwrap();
    });
}

/// Whether everything that was stored is there when it is read and written again.
fn survives(stored: &Value, again: &Value, place: &str) {
    match (stored, again) {
        (Value::Object(stored), Value::Object(again)) => {
            for (name, value) in stored {
                let place = format!("{place}.{name}");
                survives(value, again.get(name).unwrap_or_else(|| panic!("{place} is lost")), &place);
            }
        }
        _ => assert_eq!(stored, again, "{place}"),
    }
}

#[test]
fn every_record_that_was_ever_stored_is_read() {
    let text = std::fs::read_to_string(golden("records.jsonl")).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    segno_testkit::run(async {
        let world = World::idle().await;
        let store: Arc<dyn Store> = MemoryStore::with_clock(world.clock.clone());
        let writes = records.iter().map(|record| RecordWrite::Put {
            kind: record["kind"].as_str().unwrap().to_owned(),
            id: record["id"].as_str().unwrap().to_owned(),
            expect: Expect::Absent,
            due_at_ms: record["due_at_ms"].as_u64(),
            time_to_live: None,
            body: Bytes::from(record["body"].as_str().unwrap().to_owned()),
        });
        store
            .commit_records(RecordBatch { writes: writes.collect(), ..RecordBatch::default() })
            .await
            .unwrap();
        let count = |kind: &str| records.iter().filter(|record| record["kind"] == kind).count();
        let scope = Scope::default();

        let book = RecurringActions::new(store.clone(), world.functions.clone(), world.zones.clone());
        let book = book.clock(world.clock.clone());
        let page = book.page(&scope, None, 100).await.unwrap();
        let (recurring, unreadable) = Listed::split(page.into_iter().map(|(_, row)| row).collect());
        assert_eq!(unreadable, []);
        assert_eq!(recurring.len(), count("segno.recurring"));
        let mut entries = 0;
        for action in &recurring {
            book.schedule_of(action).unwrap();
            entries += book.history(&scope, &action.id, None, 100).await.unwrap().len();
        }
        assert_eq!(entries, count("segno.recurring-history"));
        book.create(&scope, every(60, "note", json!({}))).await.unwrap();
        let actions = ActionDb::new(store.clone()).list_all().await.unwrap();
        assert_eq!(actions.len(), count("segno.action"));

        let (hooks, git) = (hooks(&world, store.clone()), "git".parse().unwrap());
        hooks.find(&scope, &git).await.unwrap();
        let payloads = hooks
            .payloads(&scope, &git, &ListPayloads { limit: 100, ..ListPayloads::default() })
            .await
            .unwrap();
        assert!(payloads.payloads.iter().all(|row| matches!(row, Listed::Readable(_))));
        assert_eq!(payloads.payloads.len(), count("segno.hook-payload"));
        for payload in Listed::split(payloads.payloads).0 {
            hooks.payload(&scope, &git, payload.id).await.unwrap();
        }
        let events = hooks.events(&scope, &ListEvents { limit: 100, ..ListEvents::default() }).await.unwrap();
        assert_eq!(events.len(), count("segno.hook-event"));
    });
    for record in &records {
        let again = |value: &Value| match record["kind"].as_str().unwrap() {
            "segno.recurring" => serde_json::from_value::<RecurringAction>(value["value"].clone())
                .map(|action| json!({"format": 1, "value": action})),
            "segno.recurring-run" => serde_json::from_value::<Run>(value["value"].clone())
                .map(|run| json!({"format": 1, "value": run})),
            "segno.recurring-history" => serde_json::from_value::<HistoryEntry>(value["value"].clone())
                .map(|entry| json!({"format": 1, "value": entry})),
            "segno.action" => serde_json::from_value::<Action>(value["action"].clone()).map(
                |action| json!({"format": 1, "namespace": "default", "tenant": "default", "action": action}),
            ),
            _ => Ok(value.clone()),
        };
        let Ok(stored) = serde_json::from_str::<Value>(record["body"].as_str().unwrap()) else { continue };
        survives(&stored, &again(&stored).unwrap(), record["id"].as_str().unwrap());
    }
}
