//! Queries of data sources: a database whose rows the test changes, in virtual time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use segno::Client;
use segno::store::Store;
use segno_actions::Listed;
use segno_actions::functions::{Functions, Secret, StoredPolicy};
use segno_actions::pools::{Room, RoomCalls};
use segno_testkit::crash::crash_points;
use segno_testkit::faults::{self, Fault, FaultStore};
use tokio::task::JoinHandle;

use super::world::{Process, World, all_succeed, pools};
use crate::drive::{
    PendingRemoval, Previewer, Querier, QueryCounts, QueryRow, QueryServices, RemovalDecision,
};
use crate::rows::{BatchId, BatchStatus, MemberStatus};
use crate::source::{SourceError, Sources, SqlLimits, SqlReader, SqlRows};

/// Phases far from the start, so that batches stay open.
const WAVES: &str = r#"
name: waves
data_source: {type: sql, connection: PATH, query: SELECT, primary_key: Key, batch_time_column: Start, interval: 5m}
phases:
  - {name: move, offset: T-0, steps: [{name: switch, worker_id: here, function: Switch, params: {Key: "{{Key}}", Value: "{{Value}}"}}]}
"#;

/// The rows of the database, or why it does not answer.
#[derive(Clone)]
struct Database {
    rows: Arc<Mutex<Result<Vec<[String; 3]>, String>>>,
    queries: Arc<Mutex<u32>>,
    /// Whether it never answers.
    hangs: Arc<AtomicBool>,
}

#[async_trait]
impl SqlReader for Database {
    async fn rows(&self, _: &Secret, _: &str, _: SqlLimits) -> Result<SqlRows, SourceError> {
        *self.queries.lock().unwrap() += 1;
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let rows = self.rows.lock().unwrap().clone();
        let rows = rows.map_err(|message| SourceError::wrong("sql", message))?;
        let row = |row: [String; 3]| row.map(Some).to_vec();
        let columns = ["Key", "Start", "Value"].map(str::to_owned).to_vec();
        Ok(SqlRows { columns, rows: rows.into_iter().map(row).collect() })
    }
}

/// A world with a database.
struct Stage {
    world: World,
    database: Database,
}

/// A process whose queries end with it.
struct Node {
    _process: Process,
    querier: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.querier.abort();
    }
}

impl Stage {
    fn new() -> Stage {
        let database = Database {
            rows: Arc::new(Mutex::new(Ok(Vec::new()))),
            queries: Arc::default(),
            hangs: Arc::default(),
        };
        Stage { world: World::new(all_succeed()), database }
    }

    fn previewer(&self) -> Previewer {
        Previewer {
            runbooks: self.world.runbooks.clone(),
            sources: self.sources(&self.world.store),
            keep_invocations: self.world.options.keep_invocations,
        }
    }

    fn sources(&self, store: &Arc<dyn Store>) -> Sources {
        // A variable that every machine has stands for the secret.
        let policy = StoredPolicy { secret_variables: Some("PATH".to_owned()), ..StoredPolicy::default() };
        let functions = Functions::builder(store.clone()).stored_policy(policy);
        let functions = functions.clock(self.world.clock.clone()).build().unwrap();
        let client = Client::new(store.clone());
        let calls = RoomCalls::new(Room::RUNBOOK, &functions, pools(store.clone()), client);
        Sources::new(functions, calls, self.world.clock.clone(), Arc::new(self.database.clone()), None)
    }

    async fn node(&self, store: Arc<dyn Store>, name: &str) -> Node {
        let process = self.world.process(store.clone(), name).await;
        let services = QueryServices {
            runbooks: crate::drive::Runbooks::new(
                store.clone(),
                self.world.runbooks.definitions().zones().clone(),
            ),
            clock: self.world.clock.clone(),
            sources: self.sources(&store),
            lease: self.world.options.lease,
            keep_invocations: self.world.options.keep_invocations,
        };
        let querier = tokio::spawn(Querier::new(services, name).run(std::future::pending()));
        Node { _process: process, querier }
    }

    async fn begin(&self, yaml: &str) -> Node {
        self.world.publish(yaml).await;
        let node = self.node(self.world.store.clone(), "node-1").await;
        self.world.runbooks.enable_automation(&self.world.scope, "waves").await.unwrap();
        node
    }

    /// Rows of key, hours from the beginning, and value.
    fn set(&self, rows: &[(&str, i64, &str)]) {
        let start = |hours: i64| (first() + SignedDuration::from_hours(hours)).to_string();
        let row =
            |(key, hours, value): &(&str, i64, &str)| [(*key).to_owned(), start(*hours), (*value).to_owned()];
        *self.database.rows.lock().unwrap() = Ok(rows.iter().map(row).collect());
    }

    /// Rows `m0`, `m1` and so on, of one batch.
    fn set_many(&self, numbers: std::ops::Range<u32>) {
        let keys: Vec<String> = numbers.map(|number| format!("m{number:05}")).collect();
        let rows: Vec<(&str, i64, &str)> = keys.iter().map(|key| (key.as_str(), 9, "1")).collect();
        self.set(&rows);
    }

    fn fail(&self, message: &str) {
        *self.database.rows.lock().unwrap() = Err(message.to_owned());
    }

    async fn query(&self) -> QueryRow {
        self.world.runbooks.query(&self.world.scope, "waves").await.unwrap()
    }

    /// Waits for the end of a run that begins after this.
    async fn next(&self) -> QueryRow {
        let before = self.query().await.run;
        let is_done = async || {
            let row = self.query().await;
            row.run > before && row.node.is_none()
        };
        self.world.until("the next run", is_done).await;
        // What was sent is applied within moments.
        self.world.pass(5).await;
        self.query().await
    }

    async fn batches(&self) -> Vec<BatchId> {
        let listed = self.world.runbooks.batches(&self.world.scope, None, 100).await.unwrap();
        Listed::split(listed).0.into_iter().map(|batch| batch.id).collect()
    }

    /// Members of a batch: key, state and value.
    async fn members(&self, batch: u64) -> Vec<String> {
        let state = |status| match status {
            MemberStatus::Active => "",
            MemberStatus::Removed => " removed",
            MemberStatus::Failed => " failed",
            MemberStatus::Cancelled => " cancelled",
        };
        let members = self.world.members(BatchId(batch)).await;
        let line = |member: &crate::rows::MemberRow| {
            assert_eq!(member.is_current, member.status != MemberStatus::Removed);
            format!(
                "{}={}{}",
                member.member_key,
                member.data["Value"].as_str().unwrap(),
                state(member.status)
            )
        };
        members.iter().map(line).collect()
    }

    /// Members of the oldest batch.
    async fn oldest(&self) -> Vec<String> {
        match self.batches().await.first() {
            Some(batch) => self.members(batch.0).await,
            None => Vec::new(),
        }
    }

    async fn decide(&self, set: u64, decision: RemovalDecision) -> Result<QueryRow, String> {
        let decided =
            self.world.runbooks.decide_removal(&self.world.scope, "waves", set, (decision, Some("k1"))).await;
        decided.map_err(|error| error.to_string())
    }
}

/// When the tests take place.
fn first() -> Timestamp {
    Timestamp::from_millisecond(i64::try_from(super::world::START_MS).unwrap()).unwrap()
}

fn shown(pending: Option<&PendingRemoval>) -> (u64, u64, u64) {
    pending.map_or((0, 0, 0), |pending| (pending.count, pending.of, pending.batches))
}

#[test]
fn members_come_change_move_go_and_return() {
    segno_testkit::run(async {
        let stage = Stage::new();
        let all: Vec<String> = (0..10).map(|number| format!("k{number}")).collect();
        let mut rows: Vec<(&str, i64, &str)> = all.iter().map(|key| (key.as_str(), 9, "1")).collect();
        rows.push(("other", 20, "1"));
        stage.set(&rows);
        let _node = stage.begin(WAVES).await;
        let first = stage.next().await;
        let counts = QueryCounts { rows: 11, batches: 2, created: 2, added: 11, ..QueryCounts::default() };
        assert_eq!((first.counts, first.last_error.as_ref()), (Some(counts), None));
        assert_eq!(stage.members(1).await.len(), 10);
        assert_eq!(stage.members(2).await, ["other=1"]);
        assert!(stage.world.batch(BatchId(1)).await.is_sealed);
        // The same again changes nothing; the next run is an interval after this one was due.
        let again = stage.next().await;
        let due = |row: &QueryRow| row.next_run_at.unwrap();
        assert_eq!(due(&again).duration_since(due(&first)), SignedDuration::from_mins(5));
        assert_eq!(again.counts, Some(QueryCounts { rows: 11, batches: 2, ..QueryCounts::default() }));
        // One changes, one goes, one moves to the other batch, one comes, in other letters.
        rows[0] = ("K0", 9, "2");
        rows[1] = ("new", 9, "1");
        rows[2] = ("k2", 20, "1");
        stage.set(&rows);
        let changed = stage.next().await.counts.unwrap();
        assert_eq!((changed.changed, changed.removed, changed.added, changed.created), (1, 2, 2, 0));
        let members = stage.members(1).await;
        assert_eq!(members[..3], ["K0=2", "k1=1 removed", "k2=1 removed"]);
        assert_eq!((members.len(), members[10].as_str()), (11, "new=1"));
        assert_eq!(stage.members(2).await, ["other=1", "k2=1"]);
        // It returns to the batch that it had left.
        rows.push(("k1", 9, "3"));
        stage.set(&rows);
        assert_eq!(stage.next().await.counts.unwrap().added, 1);
        assert_eq!(stage.members(1).await[1], "k1=3");
        assert_eq!(stage.batches().await.len(), 2);
    });
}

#[test]
fn rows_without_a_batch_time_and_rows_of_ended_batches_are_skipped() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set(&[("a", -1, "1")]);
        let _node = stage.begin(WAVES).await;
        stage.next().await;
        stage.world.until_ended(BatchId(1)).await;
        stage.set(&[("a", -1, "2"), ("late", -1, "1"), ("b", 9, "1")]);
        stage.database.rows.lock().unwrap().as_mut().unwrap()[2][1] = "soon".to_owned();
        let counts = stage.next().await.counts.unwrap();
        assert_eq!((counts.rows, counts.skipped, counts.added, counts.created), (3, 2, 0, 0));
        assert_eq!(counts.skipped_ended, 1);
        assert_eq!(stage.members(1).await, ["a=1"]);
        let definition =
            stage.world.runbooks.definitions().get(&stage.world.scope, "waves", 1).await.unwrap();
        let preview = stage.previewer().preview(&stage.world.scope, &definition, "1").await.unwrap();
        assert_eq!((preview.skipped, preview.changes.skipped_ended, preview.changes.added), (1, 1, 0));
        // A member whose batch has ended may take part in a later one.
        stage.set(&[("a", 9, "2")]);
        assert_eq!(stage.next().await.counts.unwrap().created, 1);
        assert_eq!(stage.members(2).await, ["a=2"]);
    });
}

#[test]
fn a_query_that_suddenly_returns_few_rows_removes_nobody_without_approval() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set_many(0..100);
        let _node = stage.begin(WAVES).await;
        stage.next().await;
        stage.set_many(0..10);
        let held = stage.next().await;
        assert_eq!(held.counts.unwrap().removed, 0);
        let pending = held.pending_removal.unwrap();
        assert_eq!(shown(Some(&pending)), (90, 100, 1));
        assert_eq!((pending.sample.len(), pending.sample[0].key.as_str()), (10, "m00010"));
        // It stays the same set, also if some return; one that goes as well makes it another.
        stage.set_many(0..30);
        let less = stage.next().await.pending_removal.unwrap();
        assert_eq!((shown(Some(&less)), less.set, less.at), ((70, 100, 1), pending.set, pending.at));
        stage.set_many(1..30);
        let more = stage.next().await.pending_removal.unwrap();
        assert_eq!(shown(Some(&more)), (71, 100, 1));
        assert!(more.set > less.set);
        let error = stage.decide(less.set, RemovalDecision::Approve).await.unwrap_err();
        assert!(error.contains("removal-not-pending") && error.contains(&format!("removal {}", more.set)));
        // Another member goes after the set was shown: it is not among those that are removed.
        stage.set_many(2..30);
        let approved = stage.decide(more.set, RemovalDecision::Approve).await.unwrap();
        assert!(approved.pending_removal.unwrap().is_approved);
        let done = stage.next().await;
        assert_eq!(done.counts.unwrap().removed, 72, "71 were approved, one is within the limit");
        assert_eq!((done.pending_removal, stage.query().await.last_error), (None, None));
        let members = stage.members(1).await;
        assert_eq!(members.iter().filter(|line| !line.ends_with("removed")).count(), 28);
    });
}

#[test]
fn members_whose_removal_was_rejected_stay_until_they_have_been_seen_again() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set_many(0..10);
        let _node = stage.begin(WAVES).await;
        stage.next().await;
        stage.set(&[]);
        let pending = stage.next().await.pending_removal.unwrap();
        assert_eq!(shown(Some(&pending)), (10, 10, 1), "a batch whose rows all vanish is no exception");
        stage.decide(pending.set, RemovalDecision::Reject).await.unwrap();
        let kept = stage.next().await;
        assert_eq!((kept.pending_removal, kept.counts.unwrap().removed), (None, 0));
        let decided = kept.last_decision.unwrap();
        assert_eq!(
            (decided.decision, decided.set, decided.count),
            (RemovalDecision::Reject, pending.set, 10)
        );
        assert!(decided.by.as_deref() == Some("k1") && decided.at > pending.at, "{decided:?}");
        // Later ones are decided about by themselves.
        stage.set_many(0..10);
        stage.next().await;
        stage.set_many(5..10);
        let pending = stage.next().await.pending_removal.unwrap();
        assert_eq!(pending.count, 5);
        stage.decide(pending.set, RemovalDecision::Approve).await.unwrap();
        assert_eq!(stage.next().await.counts.unwrap().removed, 5);
    });
}

#[test]
fn a_query_that_fails_is_shown_and_made_again_at_the_next_interval() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set(&[("a", 9, "1")]);
        let _node = stage.begin(WAVES).await;
        let first = stage.next().await;
        stage.fail("the database is away");
        let failed = stage.next().await;
        let error = failed.last_error.clone().unwrap();
        assert_eq!(error.code, "source-failed");
        assert_eq!(error.message, "the sql source failed: the database is away");
        assert_eq!(failed.counts, first.counts, "those of the last success stay");
        assert_eq!(stage.members(1).await, ["a=1"]);
        stage.set(&[("a", 9, "1"), ("b", 9, "1")]);
        let later = stage.next().await;
        assert_eq!(later.last_error, None);
        let between = later.next_run_at.unwrap().duration_since(failed.next_run_at.unwrap());
        assert_eq!(between, SignedDuration::from_mins(5));
        assert_eq!(stage.members(1).await.len(), 2);
    });
}

#[test]
fn a_query_that_does_not_answer_in_time_is_shown_and_batches_go_on() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set(&[("a", 1, "1")]);
        let _node = stage.begin(WAVES).await;
        let first = stage.next().await;
        stage.database.hangs.store(true, Ordering::Relaxed);
        let failed = stage.next().await;
        let error = failed.last_error.clone().unwrap();
        assert_eq!(error.message, "the sql source failed: it took longer than the limit of 120 s");
        assert_eq!(failed.counts, first.counts, "those of the last success stay");
        // The batch runs to its end, although its source still does not answer.
        stage.world.until_ended(BatchId(1)).await;
        assert_eq!(stage.members(1).await, ["a=1"]);
        stage.database.hangs.store(false, Ordering::Relaxed);
        assert_eq!(stage.next().await.last_error, None);
    });
}

#[test]
fn immediate_mode_rerun_in_the_same_bucket_keeps_its_own_members() {
    let yaml = WAVES
        .replace("batch_time_column: Start", "batch_time: immediate")
        .replace("interval: 5m", "interval: 1m");
    let slow = yaml.replace("offset: T-0,", "offset: T-0, approval: true,");
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set(&[("a", 0, "1"), ("b", 0, "1")]);
        let _node = stage.begin(&slow).await;
        stage.next().await;
        for _ in 0..7 {
            let counts = stage.next().await.counts.unwrap();
            assert_eq!((counts.batches, counts.added, counts.removed), (1, 0, 0));
        }
        assert_eq!(stage.batches().await.len(), 1);
        stage.set(&[("a", 0, "1"), ("b", 0, "1"), ("c", 0, "1")]);
        assert_eq!(
            stage.next().await.counts.unwrap().created,
            1,
            "a row that is new is in a batch of its own"
        );
        assert_eq!((stage.members(1).await.len(), stage.members(2).await.len()), (2, 1));
    });
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set(&[("a", 0, "1")]);
        let _node = stage.begin(&yaml).await;
        stage.next().await;
        assert_eq!(stage.world.until_ended(BatchId(1)).await.status, BatchStatus::Completed);
        for _ in 0..7 {
            stage.next().await;
        }
        assert_eq!(stage.batches().await.len(), 1, "a row that is still there is not run again");
        stage.set(&[]);
        stage.next().await;
        stage.set(&[("a", 0, "1")]);
        stage.next().await;
        assert_eq!(stage.batches().await.len(), 2, "one that was away is new");
    });
}

#[test]
fn a_tick_uses_the_active_version_and_its_batches_move_to_it() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set(&[("a", 9, "1")]);
        let _node = stage.begin(WAVES).await;
        stage.next().await;
        stage.world.publish(&WAVES.replace("interval: 5m", "interval: 30m")).await;
        stage.set(&[("a", 9, "2"), ("b", 20, "1")]);
        let next = stage.next().await;
        let wait = next.next_run_at.unwrap().duration_since(next.last_run_at.unwrap());
        assert!(wait > SignedDuration::from_mins(29), "{wait}");
        assert_eq!(stage.batches().await.len(), 2, "the batch of the older version is the same batch");
        for batch in stage.batches().await {
            assert_eq!(stage.world.batch(batch).await.runbook_version, 2);
        }
        assert_eq!(stage.members(1).await, ["a=2"]);
    });
}

#[test]
fn queries_are_off_by_default_and_end_with_the_switch() {
    segno_testkit::run(async {
        let stage = Stage::new();
        let (world, scope) = (&stage.world, &stage.world.scope);
        world.publish(WAVES).await;
        let _node = stage.node(world.store.clone(), "node-1").await;
        world.pass(3_600).await;
        assert_eq!(*stage.database.queries.lock().unwrap(), 0);
        world.runbooks.enable_automation(scope, "waves").await.unwrap();
        stage.next().await;
        assert!(!world.runbooks.disable_automation(scope, "waves").await.unwrap().is_automation_enabled);
        assert_eq!(stage.query().await.next_run_at, None);
        let before = *stage.database.queries.lock().unwrap();
        world.pass(3_600).await;
        assert_eq!(*stage.database.queries.lock().unwrap(), before);
        world.runbooks.enable_automation(scope, "waves").await.unwrap();
        stage.next().await;
        assert_eq!(*stage.database.queries.lock().unwrap(), before + 1);
        world.publish("name: by-hand\ndata_source: {type: manual, primary_key: Key}\nphases: [{name: a, offset: T-0, steps: [{name: b, worker_id: here, function: Switch}]}]\n").await;
        let error = world.runbooks.enable_automation(scope, "by-hand").await.unwrap_err();
        assert_eq!(error.code(), "source-not-queried");
    });
}

#[test]
fn nodes_that_race_make_each_query_once() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set_many(0..20);
        let _one = stage.begin(WAVES).await;
        let _two = stage.node(stage.world.store.clone(), "node-2").await;
        let _three = stage.node(stage.world.store.clone(), "node-3").await;
        for _ in 0..6 {
            stage.next().await;
        }
        assert_eq!(stage.query().await.run, u64::from(*stage.database.queries.lock().unwrap()));
        assert_eq!((stage.batches().await.len(), stage.members(1).await.len()), (1, 20));
    });
}

/// Plays three runs with a crash: first members in several messages, then all sorts of changes, then an approval.
fn crashed(crash: Option<(u64, Fault)>) -> (Vec<String>, u64) {
    segno_testkit::run(async {
        let stage = Stage::new();
        let world = &stage.world;
        stage.set_many(0..510);
        world.publish(WAVES).await;
        let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), faults::script(crash));
        let dying = stage.node(faulty.clone() as Arc<dyn Store>, "node-1").await;
        let scenario = async {
            world.runbooks.enable_automation(&world.scope, "waves").await.unwrap();
            stage.next().await;
            stage.world.until("members", async || stage.oldest().await.len() == 510).await;
            // Fewer and others, of two batches.
            stage.set_many(50..530);
            stage.database.rows.lock().unwrap().as_mut().unwrap()[0][1] =
                (self::first() + SignedDuration::from_hours(20)).to_string();
            let removed =
                async || stage.oldest().await.iter().filter(|line| line.ends_with("removed")).count();
            stage.world.until("the removal", async || removed().await == 51).await;
            stage.world.until("the other batch", async || stage.batches().await.len() == 2).await;
            stage.set_many(500..510);
            let pending = async || stage.query().await.pending_removal;
            stage.world.until("a pending removal", async || pending().await.is_some()).await;
            let set = pending().await.unwrap().set;
            stage.decide(set, RemovalDecision::Approve).await.unwrap();
            stage.world.until("its end", async || pending().await.is_none()).await;
        };
        tokio::pin!(scenario);
        tokio::select! {
            biased;
            () = &mut scenario => {}
            () = faulty.died() => {
                drop(dying);
                let _second = stage.node(world.store.clone(), "node-2").await;
                scenario.await;
                world.pass(400).await;
                return (outcome(&stage).await, faulty.commits());
            }
        }
        world.pass(400).await;
        (outcome(&stage).await, faulty.commits())
    })
}

async fn outcome(stage: &Stage) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in stage.batches().await {
        let row = stage.world.batch(batch).await;
        let start = row.batch_start_time.unwrap();
        let mut members = stage.members(batch.0).await;
        members.sort();
        // A batch whose creation was begun twice would be there twice.
        lines.push(format!("{start} {:?} sealed={}", row.status, row.is_sealed));
        lines.extend(members);
    }
    lines
}

#[test]
fn a_node_that_dies_at_any_commit_of_its_queries_is_replaced_without_a_trace() {
    let (expected, commits) = crashed(None);
    assert!(commits > 20, "{commits}");
    for (number, fault) in crash_points(commits) {
        let (found, _) = crashed(Some((number, fault)));
        assert_eq!(found, expected, "{fault:?} at commit {number} of {commits}");
    }
}

#[test]
fn a_preview_shows_rows_and_changes_and_writes_nothing() {
    segno_testkit::run(async {
        let stage = Stage::new();
        stage.set_many(0..150);
        let world = &stage.world;
        let _node = stage.begin(WAVES).await;
        stage.next().await;
        stage.set_many(140..160);
        let previewer = stage.previewer();
        let definition = world.runbooks.definitions().get(&world.scope, "waves", 1).await.unwrap();
        let before = stage.query().await;
        let preview = previewer.preview(&world.scope, &definition, "1").await.unwrap();
        assert_eq!((preview.rows, preview.batches, preview.samples.len()), (20, 1, 20));
        assert_eq!((preview.groups[0].rows, preview.columns.len()), (20, 3));
        let changes = preview.changes;
        assert_eq!((changes.added, changes.changed, changes.removed, changes.held), (10, 0, 0, 140));
        assert_eq!(stage.query().await, before);
        stage.set_many(0..151);
        let preview = previewer.preview(&world.scope, &definition, "3").await.unwrap();
        assert_eq!((preview.rows, preview.samples.len(), preview.changes.added), (151, 100, 1));
        assert_eq!((preview.changes.changed, preview.changes.removed, preview.changes.held), (0, 0, 0));
        assert_eq!(
            (preview.samples[0].key.as_str(), preview.samples[0].data["Value"].as_str()),
            ("m00000", Some("1"))
        );
        stage.fail("it is away");
        let error = previewer.preview(&world.scope, &definition, "2").await.unwrap_err();
        assert_eq!(error.code(), "source-failed");
    });
}
