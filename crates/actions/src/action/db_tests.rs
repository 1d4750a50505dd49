//! Actions in a store. The first five are those of the seed, under its names.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use segno::Payload;
use segno::store::memory::MemoryStore;
use segno::store::{DueRecords, Expect, RecordBatch, RecordWrite, Records};
use uuid::Uuid;

use super::record::{ACTION_KIND, ACTION_RUN_KIND};
use super::{
    Action, ActionDb, ActionError, ActionStatus, ActionTrigger, KEEP_FINISHED, MAX_RANGE_DUE, OnRestart,
};
use crate::functions::Scope;
use crate::listed::Listed;
use crate::listing::Place;
use crate::moment::timestamp;
use segno_testkit::clock::VirtualClock;

/// When these tests take place.
const NOW_MS: u64 = 1_770_732_000_000;

fn json(value: &impl serde::Serialize) -> Payload {
    Payload::encode(value).unwrap()
}

fn readable(page: Vec<(Place, Listed<Action>)>) -> Vec<Action> {
    page.into_iter().filter_map(|(_, row)| row.readable()).collect()
}

struct World {
    store: Arc<MemoryStore>,
    db: ActionDb,
    now: Timestamp,
}

impl World {
    fn new() -> World {
        let clock = VirtualClock::new();
        clock.set_ms(NOW_MS);
        let store = MemoryStore::with_clock(clock.clone());
        let db = ActionDb::new(store.clone()).clock(clock);
        World { store, db, now: timestamp(NOW_MS) }
    }

    fn ago(&self, ms: i64) -> Timestamp {
        self.now - SignedDuration::from_millis(ms)
    }

    fn action(&self, number: u128, due: Timestamp) -> Action {
        let trigger = ActionTrigger::Scheduled { next_tick_at: due };
        Action::new(Uuid::from_u128(number), "my-svc", "quality-check", trigger, self.now)
    }

    fn running(&self, number: u128, since: Timestamp) -> Action {
        let status = ActionStatus::Running;
        Action { status, updated_at: since, ..self.action(number, since) }
    }

    async fn insert(&self, actions: &[Action]) {
        for action in actions {
            self.db.insert(action).await.unwrap();
        }
    }

    async fn due(&self) -> Vec<u128> {
        let due = self.db.range_due(self.now).await.unwrap();
        due.iter().map(|action| action.id.as_u128()).collect()
    }

    async fn status(&self, number: u128) -> ActionStatus {
        self.db.get(Uuid::from_u128(number)).await.unwrap().status
    }

    /// How many rows of a kind are in the due index.
    async fn indexed(&self, kind: &str) -> usize {
        let request = DueRecords {
            kind,
            id_prefix: "",
            now_ms: Some(u64::MAX),
            limit: 1_000,
            poll_timeout: Duration::ZERO,
        };
        self.store.due_records(request).await.unwrap().len()
    }
}

#[tokio::test]
async fn insert_and_range_due() {
    let world = World::new();
    world.insert(&[world.action(1, world.ago(50)), world.action(2, world.ago(-50))]).await;
    assert_eq!(world.due().await, [1]);
}

#[tokio::test]
async fn range_due_returns_the_first_ones_if_there_are_very_many() {
    let world = World::new();
    let most = MAX_RANGE_DUE as u128;
    for number in 0..=most {
        let ago = i64::try_from(5_000 - number).unwrap();
        world.insert(&[world.action(number, world.ago(ago))]).await;
    }
    assert_eq!(world.due().await, (0..most).collect::<Vec<_>>());
}

#[tokio::test]
async fn range_due_excludes_non_pending() {
    let world = World::new();
    let done = ActionStatus::Completed { result: segno::Payload::encode(&1).unwrap() };
    let finished = Action { status: done, ..world.action(3, world.ago(50)) };
    world.insert(&[world.running(1, world.ago(50)), world.action(2, world.ago(40)), finished]).await;
    assert_eq!(world.due().await, [2]);
}

#[tokio::test]
async fn composite_key_ordering() {
    let world = World::new();
    for (number, ago) in [(1, 10), (2, 300), (3, 20), (4, 300)] {
        world.insert(&[world.action(number, world.ago(ago))]).await;
    }
    assert_eq!(world.due().await, [2, 4, 3, 1], "by time, then by id");
}

#[tokio::test]
async fn startup_recovery_marks_old_running_as_failed() {
    let world = World::new();
    world.insert(&[world.running(1, world.ago(10 * 60_000))]).await;
    assert_eq!(world.db.startup_recovery(Duration::from_secs(120)).await.unwrap(), 1);
    let ActionStatus::Failed { reason } = world.status(1).await else { panic!("it is not failed") };
    assert!(reason.contains("recovered"), "{reason}");
    assert_eq!(world.db.startup_recovery(Duration::from_secs(120)).await.unwrap(), 0);
}

#[tokio::test]
async fn startup_recovery_leaves_recent_running_alone() {
    let world = World::new();
    world.insert(&[world.running(1, world.ago(30_000))]).await;
    assert_eq!(world.db.startup_recovery(Duration::from_secs(120)).await.unwrap(), 0);
    assert_eq!(world.status(1).await, ActionStatus::Running);
}

#[tokio::test]
async fn what_runs_is_listed_in_pages_without_what_waits_or_has_ended() {
    let world = World::new();
    for number in 1..=5 {
        world
            .insert(&[world.action(number, world.ago(10)), world.running(100 + number, world.ago(10))])
            .await;
    }
    world.db.set_status(Uuid::from_u128(102), ActionStatus::Failed { reason: "x".to_owned() }).await.unwrap();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = readable(world.db.page_running(after, 2).await.unwrap());
        found.extend(page.iter().map(|action| action.id.as_u128()));
        match page.last() {
            Some(last) if page.len() == 2 => after = Some(last.place()),
            _ => break,
        }
    }
    assert_eq!(found, [105, 104, 103, 101]);
}

#[tokio::test]
async fn startup_recovery_leaves_what_an_instance_runs_alone() {
    let world = World::new();
    let instance = Some("default/default/invoke:x".to_owned());
    world.insert(&[Action { instance, ..world.running(1, world.ago(600_000)) }]).await;
    assert_eq!(world.db.startup_recovery(Duration::ZERO).await.unwrap(), 0);
    assert_eq!(world.status(1).await, ActionStatus::Running);
}

#[tokio::test]
async fn empty_db_range_due_returns_empty() {
    assert!(World::new().due().await.is_empty());
}

#[tokio::test]
async fn startup_recovery_on_empty_db_returns_zero() {
    assert_eq!(World::new().db.startup_recovery(Duration::ZERO).await.unwrap(), 0);
}

#[tokio::test]
async fn startup_recovery_leaves_what_the_engine_resumes_alone() {
    let world = World::new();
    let action = Action { on_restart: OnRestart::Resume, ..world.running(1, world.ago(600_000)) };
    world.insert(&[action]).await;
    assert_eq!(world.db.startup_recovery(Duration::from_secs(120)).await.unwrap(), 0);
}

#[tokio::test]
async fn startup_recovery_does_not_end_a_recurrence() {
    let world = World::new();
    let recurrence = Some(Duration::from_secs(3_600));
    world.insert(&[Action { recurrence, ..world.running(1, world.ago(600_000)) }]).await;
    world.db.startup_recovery(Duration::from_secs(120)).await.unwrap();
    let all = world.db.list_all().await.unwrap();
    let next = all.iter().find(|action| action.status == ActionStatus::Pending).unwrap();
    assert_eq!(next.trigger.at(), world.ago(600_000 - 3_600_000));
    assert_eq!((next.recurrence, next.label.as_str()), (recurrence, "my-svc"));
}

#[tokio::test]
async fn action_delete_nonexistent_is_idempotent() {
    let world = World::new();
    world.insert(&[world.running(1, world.now)]).await;
    for was_there in [true, false] {
        assert_eq!(world.db.delete(Uuid::from_u128(1)).await.unwrap(), was_there);
    }
    let error = world.db.get(Uuid::from_u128(1)).await.unwrap_err();
    assert_eq!(error.code(), "unknown-action");
    assert_eq!(world.indexed(ACTION_RUN_KIND).await, 0);
}

#[tokio::test]
async fn update_recurrence_sets_and_clears() {
    let world = World::new();
    world.insert(&[world.action(1, world.now)]).await;
    for recurrence in [Some(Duration::from_secs(60)), None] {
        world.db.update_recurrence(Uuid::from_u128(1), recurrence).await.unwrap();
        assert_eq!(world.db.get(Uuid::from_u128(1)).await.unwrap().recurrence, recurrence);
    }
    let error = world.db.update_recurrence(Uuid::from_u128(1), Some(Duration::from_millis(1))).await;
    assert_eq!(error.unwrap_err().code(), "invalid-action");
}

#[tokio::test]
async fn webhook_multiple_payloads_sorted_by_received_at() {
    let world = World::new();
    for (number, ago) in [(1, 5), (2, 30), (3, 10)] {
        let trigger =
            ActionTrigger::Webhook { raw_payload: vec![0xff, number as u8], received_at: world.ago(ago) };
        world.insert(&[Action { trigger, ..world.action(number, world.now) }]).await;
    }
    assert_eq!(world.due().await, [2, 3, 1]);
    let ActionTrigger::Webhook { raw_payload, .. } = world.db.get(Uuid::from_u128(3)).await.unwrap().trigger
    else {
        panic!("it is a webhook")
    };
    assert_eq!(raw_payload, [0xff, 3]);
}

#[tokio::test]
async fn what_has_ended_leaves_the_due_index_and_what_runs_is_looked_after() {
    let world = World::new();
    world.insert(&[world.action(1, world.ago(5))]).await;
    let id = Uuid::from_u128(1);
    let failed = ActionStatus::Failed { reason: "no".to_owned() };
    for (status, waiting, watched) in
        [(ActionStatus::Running, 0, 1), (failed, 0, 0), (ActionStatus::Pending, 1, 0)]
    {
        world.db.set_status(id, status.clone()).await.unwrap();
        let indexed = (world.indexed(ACTION_KIND).await, world.indexed(ACTION_RUN_KIND).await);
        assert_eq!(indexed, (waiting, watched), "{status:?}");
    }
}

#[tokio::test]
async fn an_id_is_used_once_and_tenants_do_not_meet() {
    let world = World::new();
    let action = world.action(1, world.ago(5));
    world.insert(std::slice::from_ref(&action)).await;
    assert_eq!(world.db.insert(&action).await.unwrap_err().code(), "action-exists");
    let other = world.db.clone().scope(Scope::new("default", "other").unwrap());
    assert_eq!(other.range_due(world.now).await.unwrap(), []);
    assert_eq!(other.list_all().await.unwrap(), []);
    assert!(matches!(other.get(action.id).await, Err(ActionError::Unknown { .. })));
    other.insert(&action).await.unwrap();
    world.db.delete(action.id).await.unwrap();
    assert_eq!(other.list_all().await.unwrap(), [action]);
}

#[tokio::test]
async fn actions_are_listed_newest_first() {
    let world = World::new();
    for (number, ago) in [(1, 20), (2, 10), (3, 30)] {
        world.insert(&[Action { created_at: world.ago(ago), ..world.action(number, world.now) }]).await;
    }
    let listed = world.db.list_all().await.unwrap();
    assert_eq!(listed.iter().map(|action| action.id.as_u128()).collect::<Vec<_>>(), [2, 1, 3]);
    let page = |after, limit| {
        let db = world.db.clone();
        async move { readable(db.page(after, limit).await.unwrap()) }
    };
    let ids = |page: &[Action]| page.iter().map(|action| action.id.as_u128()).collect::<Vec<_>>();
    assert_eq!(ids(&page(None, 10).await), [2, 1, 3]);
    let first = page(None, 1).await;
    assert_eq!(ids(&page(Some(first[0].place()), 1).await), [1]);
    // A cursor outlives what it was made of.
    world.db.delete(first[0].id).await.unwrap();
    assert_eq!(ids(&page(Some(first[0].place()), 10).await), [1, 3]);
    let other = world.db.clone().scope(Scope::new("default", "other").unwrap());
    assert_eq!(other.page(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn actions_that_run_are_listed_newest_first_and_no_others() {
    let world = World::new();
    for (number, ago) in [(1, 20), (2, 10), (3, 30), (4, 5)] {
        world.insert(&[Action { created_at: world.ago(ago), ..world.action(number, world.now) }]).await;
    }
    let running = || async {
        let page = readable(world.db.page_running(None, 10).await.unwrap());
        page.iter().map(|action| action.id.as_u128()).collect::<Vec<_>>()
    };
    for number in [3, 1, 2] {
        world.db.set_status(Uuid::from_u128(number), ActionStatus::Running).await.unwrap();
    }
    assert_eq!(running().await, [2, 1, 3]);
    let ended = ActionStatus::Completed { result: json(&1) };
    world.db.set_status(Uuid::from_u128(1), ended).await.unwrap();
    assert_eq!(running().await, [2, 3]);
    assert_eq!(world.db.page(None, 10).await.unwrap().len(), 4);
}

#[tokio::test]
async fn what_was_stored_before_there_was_an_index_is_listed() {
    let world = World::new();
    let old = |number, ago| Action { created_at: world.ago(ago), ..world.running(number, world.now) };
    for (number, ago) in [(1, 20), (2, 10), (3, 30)] {
        let writes =
            old(number, ago).writes(&Scope::default(), Expect::Absent, KEEP_FINISHED.into()).unwrap();
        let is_old = |write: &RecordWrite| match write {
            RecordWrite::Put { kind, .. } | RecordWrite::Delete { kind, .. } => {
                [ACTION_KIND, ACTION_RUN_KIND].contains(&kind.as_str())
            }
        };
        let writes = writes.into_iter().filter(is_old).collect();
        world.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    }
    let ids = |page| readable(page).iter().map(|action| action.id.as_u128()).collect::<Vec<_>>();
    assert_eq!(ids(world.db.page(None, 2).await.unwrap()), [2, 1]);
    assert_eq!(ids(world.db.page_running(None, 9).await.unwrap()), [2, 1, 3]);
    world.insert(&[Action { created_at: world.ago(15), ..world.action(4, world.now) }]).await;
    assert_eq!(ids(world.db.page(None, 9).await.unwrap()), [2, 4, 1, 3]);
    // An action of which only the record is removed leaves an entry that leads nowhere.
    let kind = ACTION_KIND.to_owned();
    let id = format!("default/default/{}", Uuid::from_u128(2));
    let writes = vec![RecordWrite::Delete { kind, id, expect: Expect::Anything }];
    world.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    assert_eq!(ids(world.db.page(None, 1).await.unwrap()), [4]);
}

#[tokio::test]
async fn an_action_ends_however_large_its_result_is() {
    let world = World::new();
    // One that was stored before inputs were bounded.
    let large =
        |bytes: usize| serde_json::from_str::<Payload>(&format!("\"{}\"", "x".repeat(bytes))).unwrap();
    let action = Action { tool_input: large(7_900_000), ..world.action(1, world.now) };
    let writes = action.writes(&Scope::default(), Expect::Absent, KEEP_FINISHED.into()).unwrap();
    world.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    let (id, recurs) = (action.id, Some(Duration::from_secs(60)));
    world.db.update_recurrence(id, recurs).await.unwrap();
    world.db.set_status(id, ActionStatus::Running).await.unwrap();
    let stored = world.db.read(id).await.unwrap();
    let ended = ActionStatus::Completed { result: large(2_000_000) };
    assert!(world.db.finish(stored, ended, world.now, RecordBatch::default()).await.unwrap());
    let found = world.db.get(id).await.unwrap();
    assert_eq!(found.status, ActionStatus::Completed { result: Payload::null() });
    assert!(found.note.unwrap().starts_with("the result has 2000002 bytes and is left out"));
    let page = readable(world.db.page(None, 9).await.unwrap());
    assert_eq!(page.len(), 2, "its next run is stored");
    assert!(page.iter().any(|next| next.status == ActionStatus::Pending && next.note.is_none()));
    let too_large = Action { tool_input: large(8_200_000), ..world.action(2, world.now) };
    assert_eq!(world.db.insert(&too_large).await.unwrap_err().code(), "invalid-action");
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_made() {
    let world = World::new();
    world.insert(&[world.action(1, world.now)]).await;
    let id = Uuid::from_u128(1);
    let change = |letter: char| {
        let db = world.db.clone();
        async move {
            db.update(id, |action| {
                action.label.push(letter);
                Ok(())
            })
            .await
            .unwrap()
        }
    };
    tokio::join!(change('a'), change('b'), change('c'));
    assert_eq!(world.db.get(id).await.unwrap().label.len(), "my-svc".len() + 3);
}
