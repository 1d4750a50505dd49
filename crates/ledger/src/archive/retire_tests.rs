//! Records whose retention has passed are archived, then removed, with crashes at every step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use object_store::memory::InMemory;
use segno::Payload;
use segno::clock::Clock as _;
use segno::store::memory::MemoryStore;
use segno::store::{
    Expect, ListRecords, ProviderError, Record, RecordBatch, RecordWrite, Records as _, Store,
};
use segno_actions::Keep;
use segno_actions::action::{ACTION_KIND, ACTION_RETIRE_KIND, Action, ActionDb, ActionStatus, ActionTrigger};
use segno_actions::functions::Scope;
use segno_actions::moment::timestamp;
use segno_actions::recurring::RECURRING_HISTORY_KIND;
use segno_testkit::clock::VirtualClock;
use segno_testkit::faults::{self, Fault, FaultStore};
use uuid::Uuid;

use super::{
    ACTIONS, ActionRow, ArchiveStore, ArchivedRow as _, Group, Kind, OccurrenceRow, RECURRING_HISTORY,
    RetireFault, Retired, RetiredActions, RetiredOccurrences, Retirement, Retiring, Upkeep, UpkeepOptions,
};
use crate::objects::faulty::{Faults, Faulty};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct World {
    objects: Arc<InMemory>,
    clock: Arc<VirtualClock>,
    store: Arc<MemoryStore>,
    archive: ArchiveStore,
    scope: Scope,
}

impl World {
    fn new() -> Self {
        let objects = Arc::new(InMemory::new());
        let clock = VirtualClock::auto();
        let store = MemoryStore::with_clock(clock.clone());
        let archive = ArchiveStore::new(objects.clone(), store.clone(), clock.clone());
        World { objects, clock, store, archive, scope: Scope::new("prod", "acme").unwrap() }
    }

    fn now(&self) -> Timestamp {
        timestamp(self.clock.now_ms())
    }

    fn actions(&self) -> ActionDb {
        let db = ActionDb::new(self.store.clone()).scope(self.scope.clone()).clock(self.clock.clone());
        db.keep_finished(Keep::Retire(DAY))
    }

    async fn pending(&self, number: u128) -> Uuid {
        let id = Uuid::from_u128(number);
        let trigger = ActionTrigger::Scheduled { next_tick_at: self.now() };
        let mut action = Action::new(id, "a label", "charge", trigger, self.now());
        action.tool_input = Payload::from_json("{\"n\": 1.50}").unwrap();
        self.actions().insert(&action).await.unwrap();
        id
    }

    async fn completed(&self, number: u128) -> Uuid {
        let id = self.pending(number).await;
        let result = Payload::from_json("[1.0e2,  null]").unwrap();
        self.actions().set_status(id, ActionStatus::Completed { result }).await.unwrap();
        id
    }

    /// A node on a store, with the archive in these objects.
    fn node(&self, store: Arc<dyn Store>, archive: Option<ArchiveStore>) -> Retirement {
        let kinds: Vec<Arc<dyn Retiring>> = vec![Arc::new(RetiredActions), Arc::new(RetiredOccurrences)];
        Retirement::new(store, self.clock.clone(), archive, kinds)
    }

    async fn sweep(&self) {
        self.node(self.store.clone(), Some(self.archive.clone())).sweep().await.unwrap();
    }

    async fn live(&self, kind: &str) -> usize {
        let request = ListRecords { kind, limit: 10_000, ..ListRecords::default() };
        self.store.list_records(request).await.unwrap().len()
    }

    async fn rows(&self, kind: &'static Kind) -> Vec<Vec<crate::tables::Cell>> {
        let mut rows = Vec::new();
        for file in self.archive.files(&self.scope, kind).await.unwrap() {
            rows.extend(self.archive.all_rows(kind, &file).await.unwrap().unwrap());
        }
        kind.sort(&mut rows);
        rows
    }

    async fn put(&self, kind: &str, id: &str, due_at_ms: u64, body: &str) {
        let write = RecordWrite::Put {
            kind: kind.to_owned(),
            id: id.to_owned(),
            expect: Expect::Anything,
            due_at_ms: Some(due_at_ms),
            time_to_live: None,
            body: body.to_owned().into(),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        self.store.commit_records(batch).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn actions_move_when_their_time_is_over_and_come_back_as_they_were() {
    let world = World::new();
    let (ended, waiting) = (world.completed(1).await, world.pending(2).await);
    let before = world.actions().get(ended).await.unwrap();
    world.clock.advance(DAY / 2);
    let later = world.completed(3).await;
    world.sweep().await;
    assert_eq!(world.live(ACTION_KIND).await, 3, "none of them has been kept long enough");
    world.clock.advance(DAY / 2);
    world.sweep().await;
    assert!(world.actions().get(ended).await.is_err());
    assert!(world.actions().get(waiting).await.is_ok() && world.actions().get(later).await.is_ok());
    assert_eq!(world.archive.action(&world.scope, &ended.to_string()).await.unwrap(), Some(before));
    assert_eq!(world.archive.action(&world.scope, &waiting.to_string()).await.unwrap(), None);
    assert_eq!(world.actions().page(None, 10).await.unwrap().len(), 2);
    let rows = world.rows(&ACTIONS).await;
    let row = ActionRow::from_cells(rows[0].clone()).unwrap();
    let texts = (row.function.as_deref(), &*row.status, &*row.trigger);
    assert_eq!((rows.len(), texts), (1, (Some("charge"), "completed", "scheduled")));
    assert_eq!(world.live(ACTION_RETIRE_KIND).await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_is_used_again_stays_and_a_deleted_one_leaves_nothing() {
    let world = World::new();
    let (again, deleted) = (world.completed(1).await, world.completed(2).await);
    world.actions().set_status(again, ActionStatus::Pending).await.unwrap();
    world.actions().delete(deleted).await.unwrap();
    world.clock.advance(2 * DAY);
    world.sweep().await;
    assert!(world.actions().get(again).await.unwrap().status.is_pending());
    assert_eq!((world.live(ACTION_KIND).await, world.live(ACTION_RETIRE_KIND).await), (1, 0));
    assert!(world.rows(&ACTIONS).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_removed_before_it_is_archived_and_nothing_is_archived_twice_after_a_crash_at_any_commit()
{
    let mut rounds = 0;
    for commit in 1.. {
        let mut crashed = false;
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let world = World::new();
            // More than one part.
            let mut ids = Vec::new();
            for number in 0..250 {
                ids.push(world.completed(number).await);
            }
            world.clock.advance(2 * DAY);
            let plan = faults::script([(commit, fault)]);
            let dying = FaultStore::new(world.store.clone(), world.clock.clone(), plan);
            let archive = ArchiveStore::new(world.objects.clone(), dying.clone(), world.clock.clone());
            let node = world.node(dying.clone(), Some(archive));
            let has_crashed = tokio::select! {
                () = dying.died() => true,
                swept = node.sweep() => { swept.unwrap(); false }
            };
            crashed |= has_crashed;
            for id in &ids {
                let is_live = world.actions().get(*id).await.is_ok();
                assert!(
                    is_live || world.archive.action(&world.scope, &id.to_string()).await.unwrap().is_some(),
                    "{id} is lost after {fault:?} at {commit}"
                );
            }
            // The lease of the dead node ends, and another one does the rest.
            world.clock.advance(Duration::from_secs(10 * 60));
            world.sweep().await;
            assert_eq!((world.live(ACTION_KIND).await, world.live(ACTION_RETIRE_KIND).await), (0, 0));
            let mut rows = world.rows(&ACTIONS).await;
            assert!(rows.len() >= ids.len());
            ACTIONS.deduplicate(&mut rows);
            assert_eq!(rows.len(), ids.len(), "after {fault:?} at {commit}");
        }
        if !crashed {
            rounds = commit;
            break;
        }
    }
    assert!(rounds > 5, "the crash is in the middle of the work in most rounds: {rounds}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_file_or_of_its_upkeep_loses_nothing() {
    let mut rounds = 0;
    for writes in 0.. {
        let world = World::new();
        let mut ids = Vec::new();
        // Files of three days, and two of the last.
        for number in 0..6 {
            ids.push(world.completed(number).await);
            world.clock.advance(DAY / 2);
        }
        world.clock.advance(DAY / 2);
        world.sweep().await;
        ids.push(world.completed(6).await);
        world.clock.advance(2 * DAY);
        let faulty = Faulty::new(world.objects.clone(), Faults::NONE, 1);
        faulty.crash_after(writes);
        let archive = ArchiveStore::new(faulty, world.store.clone(), world.clock.clone());
        let swept = world.node(world.store.clone(), Some(archive.clone())).sweep().await;
        let kept = Upkeep::new(archive, world.clock.clone(), UpkeepOptions::default()).sweep().await;
        for id in &ids {
            let is_live = world.actions().get(*id).await.is_ok();
            let archived = world.archive.action(&world.scope, &id.to_string()).await.unwrap();
            assert!(is_live || archived.is_some(), "{id} is lost after {writes} writes");
        }
        // The lease of the dead node ends, and another one does the rest.
        world.clock.advance(Duration::from_secs(10 * 60));
        world.sweep().await;
        Upkeep::new(world.archive.clone(), world.clock.clone(), UpkeepOptions::default())
            .sweep()
            .await
            .unwrap();
        assert_eq!((world.live(ACTION_KIND).await, world.live(ACTION_RETIRE_KIND).await), (0, 0));
        let mut rows = world.rows(&ACTIONS).await;
        ACTIONS.deduplicate(&mut rows);
        assert_eq!(rows.len(), ids.len(), "after {writes} writes");
        for id in &ids {
            assert!(world.archive.action(&world.scope, &id.to_string()).await.unwrap().is_some());
        }
        if swept.is_ok() && kept.is_ok() {
            rounds = writes;
            break;
        }
    }
    assert!(rounds >= 3, "a new file, a merged one and the index are written: {rounds}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_finds_nothing_due_writes_nothing() {
    let world = World::new();
    world.completed(1).await;
    let counting = FaultStore::new(world.store.clone(), world.clock.clone(), faults::no_faults());
    world.node(counting.clone(), Some(world.archive.clone())).sweep().await.unwrap();
    assert_eq!(counting.commits(), 0);
    world.clock.advance(2 * DAY);
    world.node(counting.clone(), Some(world.archive.clone())).sweep().await.unwrap();
    assert_eq!(
        counting.commits(),
        3,
        "the lease, the removal, the release; the archive has a store of its own here"
    );
}

#[tokio::test(start_paused = true)]
async fn some_groups_of_a_tenant_are_erased_and_others_stay() {
    let world = World::new();
    let id = world.completed(1).await.to_string();
    world.put(RECURRING_HISTORY_KIND, "prod/acme/7/000a", world.clock.now_ms(), FIRED).await;
    world.clock.advance(2 * DAY);
    world.sweep().await;
    world.archive.erase_all(&world.scope, &[Group::Recurring, Group::Instances]).await.unwrap();
    assert_eq!((world.rows(&ACTIONS).await.len(), world.rows(&RECURRING_HISTORY).await.len()), (1, 0));
    // What a node is about to write at that moment is left out, too, and what others write is not.
    world.put(RECURRING_HISTORY_KIND, "prod/acme/7/000a", world.clock.now_ms(), FIRED).await;
    world.sweep().await;
    assert_eq!(
        (world.live(RECURRING_HISTORY_KIND).await, world.rows(&RECURRING_HISTORY).await.len()),
        (0, 0)
    );
    assert!(world.archive.action(&world.scope, &id).await.unwrap().is_some());
    world.archive.erase_all(&world.scope, &[Group::Actions]).await.unwrap();
    assert_eq!(world.archive.action(&world.scope, &id).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_removed_while_the_archive_takes_no_writes() {
    let world = World::new();
    world.completed(1).await;
    world.clock.advance(2 * DAY);
    let faulty = Faulty::new(world.objects.clone(), Faults::NONE, 1);
    faulty.crash_after(0);
    let archive = ArchiveStore::new(faulty.clone(), world.store.clone(), world.clock.clone());
    let node = world.node(world.store.clone(), Some(archive.clone()));
    node.sweep().await.unwrap_err();
    assert!(archive.trouble().is_some());
    assert_eq!(world.live(ACTION_KIND).await, 1);
    faulty.crash_after(u64::MAX);
    node.sweep().await.unwrap();
    assert_eq!((world.live(ACTION_KIND).await, world.rows(&ACTIONS).await.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn without_an_archive_what_became_due_is_removed() {
    let world = World::new();
    world.completed(1).await;
    world.clock.advance(2 * DAY);
    world.node(world.store.clone(), None).sweep().await.unwrap();
    assert_eq!((world.live(ACTION_KIND).await, world.live(ACTION_RETIRE_KIND).await), (0, 0));
    assert!(world.rows(&ACTIONS).await.is_empty());
}

/// Retires actions, and loses the lease to another node before it removes the first.
struct Overtaken {
    clock: Arc<VirtualClock>,
    other: Retirement,
    calls: AtomicUsize,
}

#[async_trait]
impl Retiring for Overtaken {
    fn due_kind(&self) -> &'static str {
        RetiredActions.due_kind()
    }

    async fn retire(&self, store: &dyn Store, due: &Record) -> Result<Retired, ProviderError> {
        let retired = RetiredActions.retire(store, due).await;
        if self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            self.other.sweep().await.unwrap();
            assert!(store.get_record(ACTION_KIND, &due.id).await?.is_some(), "one node sweeps at a time");
            self.clock.advance(Duration::from_secs(10 * 60));
            self.other.sweep().await.unwrap();
        }
        retired
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_lease_has_ended_removes_nothing_more() {
    let world = World::new();
    for number in 0..3 {
        world.completed(number).await;
    }
    world.clock.advance(2 * DAY);
    let other = world.node(world.store.clone(), Some(world.archive.clone()));
    let overtaken = Overtaken { clock: world.clock.clone(), other, calls: AtomicUsize::new(0) };
    let archive = Some(world.archive.clone());
    let node = Retirement::new(world.store.clone(), world.clock.clone(), archive, vec![Arc::new(overtaken)]);
    let error = node.sweep().await.unwrap_err();
    assert!(matches!(error, RetireFault::TakenOver), "{error}");
    let mut rows = world.rows(&ACTIONS).await;
    ACTIONS.deduplicate(&mut rows);
    assert_eq!((world.live(ACTION_KIND).await, rows.len()), (0, 3));
}

const FIRED: &str = r#"{"format":1,"value":{"time":"2023-11-14T10:00:00.000000007Z","decided_at":"2023-11-14T10:00:01Z","decision":"fired","instance":"prod/acme/run","outcome":"failed","detail":"no","ended_at":"2023-11-14T10:02:00Z"}}"#;

#[tokio::test(start_paused = true)]
async fn histories_move_but_for_what_still_runs_or_cannot_be_read() {
    let world = World::new();
    let now_ms = world.clock.now_ms();
    let running = FIRED.replace(r#","outcome":"failed","detail":"no","ended_at":"2023-11-14T10:02:00Z""#, "");
    let skipped = FIRED.replace("fired", "skipped").replace("10:00:00", "11:00:00");
    world.put(RECURRING_HISTORY_KIND, "prod/acme/7/000a", now_ms, FIRED).await;
    world.put(RECURRING_HISTORY_KIND, "prod/acme/7/000b", now_ms, &skipped).await;
    world.put(RECURRING_HISTORY_KIND, "prod/acme/8/000a", now_ms, "{").await;
    world.put(RECURRING_HISTORY_KIND, "no scope", now_ms, FIRED).await;
    world.put(RECURRING_HISTORY_KIND, "prod/acme/7/000c", now_ms + 1_000_000, FIRED).await;
    // The store has no such instance, so its end never arrives.
    world.put(RECURRING_HISTORY_KIND, "prod/acme/9/000a", now_ms, &running).await;
    world.sweep().await;
    let rows: Vec<OccurrenceRow> = world
        .rows(&RECURRING_HISTORY)
        .await
        .into_iter()
        .map(|row| OccurrenceRow::from_cells(row).unwrap())
        .collect();
    let seen: Vec<(&str, &str, Option<&str>, Option<&str>)> = rows
        .iter()
        .map(|row| (&*row.id, &*row.decision, row.outcome.as_deref(), row.instance.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            ("7", "fired", Some("failed"), Some("run")),
            ("7", "skipped", Some("failed"), Some("run")),
            ("9", "fired", None, Some("run")),
        ]
    );
    let entry = rows[0].entry().unwrap();
    assert_eq!(entry.time.to_string(), "2023-11-14T10:00:00.000000007Z");
    assert_eq!(
        world.live(RECURRING_HISTORY_KIND).await,
        3,
        "two that cannot be read, and one that is not due"
    );
    world.sweep().await;
    assert_eq!(world.live(RECURRING_HISTORY_KIND).await, 3);
}

#[tokio::test(start_paused = true)]
async fn groups_are_erased_and_kept_for_themselves() {
    let world = World::new();
    let id = world.completed(1).await;
    let other = world.completed(2).await;
    world.put(RECURRING_HISTORY_KIND, &format!("prod/acme/{id}/000a"), world.clock.now_ms(), FIRED).await;
    world.clock.advance(2 * DAY);
    world.sweep().await;
    for group in [Group::Instances, Group::Recurring] {
        let erased = world.archive.erase(&world.scope, group, &id.to_string()).await.unwrap();
        assert_eq!(erased.rows, u64::from(group == Group::Recurring), "{group:?}");
    }
    assert!(world.archive.action(&world.scope, &id.to_string()).await.unwrap().is_some());
    world.archive.erase(&world.scope, Group::Actions, &id.to_string()).await.unwrap();
    assert_eq!(world.archive.action(&world.scope, &id.to_string()).await.unwrap(), None);
    let keep_of = BTreeMap::from([(Group::Actions, DAY)]);
    let options = |keep_of| UpkeepOptions { keep: Some(30 * DAY), keep_of, ..UpkeepOptions::default() };
    let upkeep = |keep_of| Upkeep::new(world.archive.clone(), world.clock.clone(), options(keep_of));
    world.clock.advance(5 * DAY);
    upkeep(BTreeMap::from([(Group::Recurring, DAY)])).sweep().await.unwrap();
    assert!(world.archive.action(&world.scope, &other.to_string()).await.unwrap().is_some());
    upkeep(keep_of).sweep().await.unwrap();
    assert_eq!(world.archive.action(&world.scope, &other.to_string()).await.unwrap(), None);
}
