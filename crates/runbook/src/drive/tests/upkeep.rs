//! The audit finds what waits without a wake-up, and nothing else; batches and calls that are not
//! kept are deleted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite, Store};

use super::world::{Reply, World, all_succeed, small_runbook};
use crate::drive::audit;
use crate::drive::place::{BatchPlace, INBOX, LEASES};
use crate::drive::{
    BatchArchive, BatchArchiveError, BatchDeletion, DELETIONS, ENDED_CALLS, ExpiredBatch, RECEIPTS, Services,
    Upkeep,
};
use crate::message::Action;
use crate::rows::{BatchId, Row, RowKey, Table};

/// Sweeps once over all rows. Returns how many defects there are.
async fn sweep(services: &Services) -> u64 {
    let mut cursor = audit::Cursor::default();
    loop {
        cursor = audit::part(services, cursor).await.unwrap().cursor;
        if let Some(found) = cursor.found_in_last_sweep() {
            return found;
        }
    }
}

fn services(world: &World) -> Services {
    world.services(world.store.clone(), world.functions(world.store.clone()))
}

async fn records(store: &dyn Store, kind: &str) -> usize {
    let request = ListRecords { kind, id_prefix: "", after_id: None, limit: 10_000 };
    store.list_records(request).await.unwrap().len()
}

/// Writes a record of a row that only its holder should write.
async fn plant(world: &World, batch: BatchId, row: &Row, due_at_ms: Option<u64>) {
    let key = row.key().unwrap();
    let write = RecordWrite::Put {
        kind: key.table().name().to_owned(),
        id: BatchPlace::new(world.scope.clone(), batch).row_id(&key),
        expect: Expect::Anything,
        due_at_ms,
        time_to_live: None,
        body: row.encode().unwrap().into(),
    };
    world.store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.unwrap();
}

#[test]
fn the_audit_finds_planted_defects_and_nothing_else() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(|_, _, _| Reply::Later(100_000, json!({}))));
        world.publish(&small_runbook(&[&["one", "two"], &["three"]])).await;
        let start = world.now() + jiff::SignedDuration::from_hours(48);
        let later = world.create(Some(start), &["a", "b"]).await;
        let running = world.create(Some(world.now()), &["c", "d"]).await;
        let process = world.process(world.store.clone(), "node").await;
        world.until("dispatch", async || !world.steps(running).await.is_empty()).await;
        world.until("creation", async || world.batch(later).await.is_sealed).await;
        world.pass(60).await;
        let services = services(&world);
        assert_eq!(sweep(&services).await, 0, "all is well");
        drop(process);

        // A phase that is due, whose record is not.
        let phase = world.phase(later, "phase0").await;
        plant(&world, later, &Row::Phase(phase.clone()), None).await;
        assert_eq!(sweep(&services).await, 1);
        let due_ms = phase.wakes_at().unwrap().as_millisecond().unsigned_abs();
        plant(&world, later, &Row::Phase(phase), Some(due_ms)).await;
        assert_eq!(sweep(&services).await, 0);

        // A free batch that no node is woken for.
        let id = BatchPlace::new(world.scope.clone(), later).id();
        let asleep = RecordWrite::Put {
            kind: LEASES.to_owned(),
            id: id.clone(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: b"{}"[..].into(),
        };
        let commit = RecordBatch { writes: vec![asleep], ..RecordBatch::default() };
        world.store.commit_records(commit).await.unwrap();
        assert_eq!(sweep(&services).await, 1);

        // A batch without a lease.
        let lost = RecordWrite::Delete { kind: LEASES.to_owned(), id, expect: Expect::Anything };
        world
            .store
            .commit_records(RecordBatch { writes: vec![lost], ..RecordBatch::default() })
            .await
            .unwrap();
        assert_eq!(sweep(&services).await, 1);
    });
}

#[test]
fn a_batch_that_has_ended_is_deleted_with_everything() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        world.publish(&small_runbook(&[&["one", "two"]])).await;
        let open = world.create(None, &["x"]).await;
        let batch = world.create(Some(world.now()), &["a", "b", "c"]).await;
        let _process = world.process(world.store.clone(), "node").await;
        world.until_ended(batch).await;
        world.until("creation", async || world.batch(open).await.is_sealed).await;
        world.pass(60).await;
        let (runbooks, scope) = (&world.runbooks, &world.scope);
        let refused = runbooks.delete_batch(scope, open).await.unwrap_err();
        assert_eq!(refused.code(), "batch-request-refused", "{refused}");
        assert_eq!(runbooks.delete_batch(scope, batch).await.unwrap(), BatchDeletion::Deleted);
        assert_eq!(runbooks.batch(scope, batch).await.unwrap_err().code(), "unknown-batch");
        assert_eq!(runbooks.delete_batch(scope, batch).await.unwrap_err().code(), "unknown-batch");
        assert_eq!(runbooks.newest_batches(scope, Some("migrate"), None, 10).await.unwrap().len(), 1);
        let upkeep = tokio::spawn(Upkeep::new(services(&world)).run(std::future::pending()));
        world.until("deletion", async || records(&*world.store, DELETIONS).await == 0).await;
        upkeep.abort();
        assert_eq!(records(&*world.store, Table::StepExecutions.name()).await, 0);
        for table in [Table::BatchMembers, Table::MemberKeys, Table::PhaseExecutions] {
            assert_eq!(
                records(&*world.store, table.name()).await,
                1,
                "the other batch keeps its rows: {table:?}"
            );
        }
        assert!(matches!(runbooks.row(scope, open, &RowKey::Batch).await, Ok(Some(_))));
    });
}

#[test]
fn batches_are_deleted_when_they_have_expired() {
    segno_testkit::run(async {
        let mut world = World::new(all_succeed());
        world.options.retention = Some(Duration::from_secs(24 * 60 * 60));
        world.publish(&small_runbook(&[&["one"]])).await;
        let batch = world.create(Some(world.now()), &["a"]).await;
        let open = world.create(None, &["x"]).await;
        let _process = world.process(world.store.clone(), "node").await;
        world.until_ended(batch).await;
        let upkeep = tokio::spawn(Upkeep::new(services(&world)).run(std::future::pending()));
        world.pass(23 * 60 * 60).await;
        assert!(world.runbooks.batch(&world.scope, batch).await.is_ok(), "it is kept for a day");
        world.pass(2 * 60 * 60).await;
        let gone = world.runbooks.batch(&world.scope, batch).await.unwrap_err();
        assert_eq!(gone.code(), "unknown-batch");
        assert!(world.runbooks.batch(&world.scope, open).await.is_ok(), "it has not ended");
        for kind in [INBOX, RECEIPTS] {
            let folder = BatchPlace::new(world.scope.clone(), batch).folder();
            let request = ListRecords { kind, id_prefix: &folder, after_id: None, limit: 10 };
            assert!(world.store.list_records(request).await.unwrap().is_empty(), "{kind}");
        }
        upkeep.abort();
    });
}

/// Keeps the ids of what it is given, fails at first, and has a batch changed while it stores it.
struct Recording {
    store: Arc<dyn Store>,
    seen: Mutex<Vec<(BatchId, u64, usize)>>,
    troubles: Mutex<Vec<BatchArchiveError>>,
    touches: AtomicBool,
}

#[async_trait]
impl BatchArchive for Recording {
    async fn store(&self, batch: ExpiredBatch<'_>) -> Result<(), BatchArchiveError> {
        let trouble = self.troubles.lock().unwrap().pop();
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        let place = BatchPlace::new(batch.scope.clone(), batch.row.id);
        let members = Table::BatchMembers.name();
        let request = ListRecords { kind: members, id_prefix: &place.folder(), after_id: None, limit: 100 };
        let rows = self.store.list_records(request).await.unwrap().len();
        self.seen.lock().unwrap().push((batch.row.id, batch.revision, rows));
        if self.touches.swap(false, Ordering::Relaxed) {
            let now_ms = self.store.now_ms().await.unwrap();
            crate::drive::lease::wake(&*self.store, &place, now_ms).await.unwrap();
        }
        Ok(())
    }
}

#[test]
fn a_batch_is_deleted_after_it_was_archived_as_it_is() {
    segno_testkit::run(async {
        let mut world = World::new(all_succeed());
        world.options.retention = Some(Duration::from_secs(24 * 60 * 60));
        world.publish(&small_runbook(&[&["one"]])).await;
        let batch = world.create(Some(world.now()), &["a", "b"]).await;
        let process = world.process(world.store.clone(), "node").await;
        world.until_ended(batch).await;
        let archive = Arc::new(Recording {
            store: world.store.clone(),
            seen: Mutex::default(),
            troubles: Mutex::new(vec![
                BatchArchiveError::Unreadable("x".to_owned()),
                BatchArchiveError::Unavailable("y".to_owned()),
            ]),
            touches: AtomicBool::new(true),
        });
        let upkeep = Upkeep::new(services(&world)).archive(archive.clone());
        let upkeep = tokio::spawn(upkeep.run(std::future::pending()));
        world.pass(23 * 60 * 60).await;
        assert!(archive.seen.lock().unwrap().is_empty(), "it is kept for a day");
        world.pass(2 * 60 * 60).await;
        assert!(world.runbooks.batch(&world.scope, batch).await.is_err());
        let seen = archive.seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 2, "it was changed while it was archived, so it was archived again: {seen:?}");
        assert!(seen[0].1 < seen[1].1, "the later revision is the greater one");
        assert_eq!((seen[1].0, seen[1].2), (batch, 2));
        upkeep.abort();
        drop(process);
    });
}

#[test]
fn calls_of_ended_steps_are_deleted_after_a_while() {
    segno_testkit::run(async {
        let mut world = World::new(all_succeed());
        world.options.keep_invocations = Some(Duration::from_secs(24 * 60 * 60));
        world.publish(&small_runbook(&[&["one", "two"]])).await;
        let batch = world.create(Some(world.now()), &["a", "b", "c"]).await;
        let _process = world.process(world.store.clone(), "node").await;
        world.until_ended(batch).await;
        assert_eq!(world.instances().await.len(), 6);
        assert!(records(&*world.store, ENDED_CALLS).await <= 4, "results of a part share a record");
        let upkeep = tokio::spawn(Upkeep::new(services(&world)).run(std::future::pending()));
        world.pass(23 * 60 * 60).await;
        assert_eq!(world.instances().await.len(), 6, "they are kept for a day");
        world.pass(2 * 60 * 60).await;
        assert_eq!(world.instances().await, Vec::<String>::new());
        assert_eq!(records(&*world.store, ENDED_CALLS).await, 0);
        let again = world.request(batch, "again", Action::PauseBatch { reason: None }).await;
        assert_eq!(again.key, "again", "the batch itself is kept");
        upkeep.abort();
    });
}
