//! Queries of many tenants on one node, queries that are switched off, and the calls of data sources.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use segno::Client;
use segno_actions::functions::{Scope, Secret, StoredPolicy};
use segno_actions::pools::{Room, RoomCalls};
use segno_testkit::clock::VirtualClock;
use serde_json::json;
use tokio::task::JoinHandle;

use super::world::{Process, Reply, World, all_succeed, pools};
use crate::drive::{Previewer, PublishOptions, Querier, QueryServices, Runbooks, Upkeep};
use crate::source::{SourceError, Sources, SqlLimits, SqlReader, SqlRows};

/// A database whose queries take as long as their text says, in seconds; it notes when they begin.
#[derive(Clone, Default)]
struct SlowDatabase {
    clock: Option<Arc<VirtualClock>>,
    begun: Arc<Mutex<Vec<String>>>,
    /// Queries that run.
    open: Arc<Mutex<usize>>,
}

/// Counts down when a query ends, or is dropped.
struct Open(Arc<Mutex<usize>>);

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.lock().unwrap() -= 1;
    }
}

#[async_trait]
impl SqlReader for SlowDatabase {
    async fn rows(&self, _: &Secret, query: &str, _: SqlLimits) -> Result<SqlRows, SourceError> {
        let (name, seconds) = query.split_once(' ').unwrap();
        self.begun.lock().unwrap().push(name.to_owned());
        *self.open.lock().unwrap() += 1;
        let _open = Open(self.open.clone());
        let clock = self.clock.as_ref().unwrap();
        segno::clock::sleep(&**clock, Duration::from_secs(seconds.parse().unwrap())).await;
        let columns = ["Key", "Start"].map(str::to_owned).to_vec();
        Ok(SqlRows { columns, rows: vec![vec![Some("a".to_owned()), Some("2999-01-01".to_owned())]] })
    }
}

struct Stage {
    world: World,
    database: SlowDatabase,
}

/// A node with its queries.
struct Node {
    _process: Process,
    querier: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.querier.abort();
    }
}

fn runbook(name: &str, source: &str) -> String {
    format!(
        "name: {name}\ndata_source: {{{source}, primary_key: Key, batch_time_column: Start, interval: 5m}}\nphases:\n  \
         - {{name: move, offset: T-0, steps: [{{name: switch, worker_id: here, function: Switch}}]}}\n"
    )
}

fn sql(name: &str, seconds: u32) -> String {
    runbook(name, &format!("type: sql, connection: PATH, query: {name} {seconds}"))
}

impl Stage {
    fn new(world: World, clock: Arc<VirtualClock>) -> Stage {
        Stage { world, database: SlowDatabase { clock: Some(clock), ..SlowDatabase::default() } }
    }

    fn of(workers: super::world::Workers) -> Stage {
        let clock = VirtualClock::auto();
        clock.set_ms(super::world::START_MS);
        let store = segno::store::memory::MemoryStore::with_clock(clock.clone());
        let world = World::on(store, clock.clone(), super::world::Pace::Virtual, workers);
        Stage::new(world, clock)
    }

    fn sources(&self) -> Sources {
        let (world, store) = (&self.world, self.world.store.clone());
        let policy = StoredPolicy { secret_variables: Some("PATH".to_owned()), ..StoredPolicy::default() };
        let functions = world.functions_with(store.clone(), |builder| builder.stored_policy(policy));
        let calls = RoomCalls::new(Room::RUNBOOK, &functions, pools(store.clone()), Client::new(store));
        Sources::new(functions, calls, world.clock.clone(), Arc::new(self.database.clone()), None)
    }

    fn runbooks(&self) -> Runbooks {
        Runbooks::new(self.world.store.clone(), self.world.runbooks.definitions().zones().clone())
    }

    async fn node(&self) -> Node {
        let process = self.world.process(self.world.store.clone(), "node").await;
        let services = QueryServices {
            runbooks: self.runbooks(),
            clock: self.world.clock.clone(),
            sources: self.sources(),
            lease: self.world.options.lease,
            keep_invocations: self.world.options.keep_invocations,
        };
        let querier = tokio::spawn(Querier::new(services, "node").run(std::future::pending()));
        Node { _process: process, querier }
    }

    fn previewer(&self) -> Previewer {
        let keep_invocations = self.world.options.keep_invocations;
        Previewer { runbooks: self.runbooks(), sources: self.sources(), keep_invocations }
    }

    async fn enable(&self, scope: &Scope, name: &str, yaml: &str) {
        let runbooks = &self.world.runbooks;
        runbooks.publish(scope, yaml.as_bytes(), PublishOptions::default()).await.unwrap();
        runbooks.enable_automation(scope, name).await.unwrap();
    }

    async fn batches(&self) -> usize {
        self.world.runbooks.batches(&self.world.scope, None, 100).await.unwrap().len()
    }

    fn begun(&self) -> Vec<String> {
        self.database.begun.lock().unwrap().clone()
    }
}

#[test]
fn tenants_that_fill_all_places_do_not_keep_another_one_waiting_behind_their_backlog() {
    segno_testkit::run(async {
        let stage = Stage::of(all_succeed());
        for tenant in ["g1", "g2", "g3", "g4"] {
            let scope = Scope::new("eu", tenant).unwrap();
            for number in 0..4 {
                let name = format!("{tenant}-{number}");
                // It takes as long as a query may.
                stage.enable(&scope, &name, &sql(&name, 1_000)).await;
            }
        }
        let _node = stage.node().await;
        stage.world.until("full places", async || stage.begun().len() == 4).await;
        let mut first: Vec<String> = stage.begun().iter().map(|name| name[..2].to_owned()).collect();
        first.sort();
        assert_eq!(first, ["g1", "g2", "g3", "g4"], "each has one place, whatever its backlog");
        stage.enable(&stage.world.scope, "late", &sql("late", 1)).await;
        stage.world.until("the late one", async || stage.begun().contains(&"late".to_owned())).await;
        // The four places become free at the same moment.
        let position = stage.begun().iter().position(|name| name == "late");
        assert!(position.is_some_and(|at| at < 8), "one of the next places is its: {:?}", stage.begun());
        stage.world.until("all others", async || stage.begun().len() >= 17).await;
    });
}

#[test]
fn a_query_that_is_switched_off_is_cancelled_and_changes_nothing() {
    segno_testkit::run(async {
        let stage =
            Stage::of(Arc::new(|_, _, _| Reply::Later(90, json!([{"Key": "a", "Start": "2999-01-01"}]))));
        let (world, scope) = (&stage.world, &stage.world.scope);
        let _node = stage.node().await;
        let function = runbook("called", "type: function, function: slow");
        for (name, yaml) in [("waves", sql("waves", 90)), ("called", function)] {
            stage.enable(scope, name, &yaml).await;
            world.pass(10).await;
            assert!(world.runbooks.query(scope, name).await.unwrap().node.is_some(), "{name} runs");
            world.runbooks.disable_automation(scope, name).await.unwrap();
            world.pass(5).await;
            let row = world.runbooks.query(scope, name).await.unwrap();
            assert_eq!((row.node, row.next_run_at, row.last_error), (None, None, None), "{name}");
        }
        assert_eq!((stage.begun().len(), *stage.database.open.lock().unwrap()), (1, 0), "it was dropped");
        let calls = world.instances().await;
        assert!(calls.len() == 1 && calls[0].ends_with("cancelled"), "{calls:?}");
        world.pass(600).await;
        assert_eq!(stage.batches().await, 0);
        // Switched on again, it runs at once and brings its rows.
        world.runbooks.enable_automation(scope, "called").await.unwrap();
        world.pass(100).await;
        assert_eq!(stage.batches().await, 1);
    });
}

#[test]
fn a_query_that_is_switched_off_and_on_again_is_run_at_once() {
    segno_testkit::run(async {
        let stage = Stage::of(all_succeed());
        let (world, scope) = (&stage.world, &stage.world.scope);
        let _node = stage.node().await;
        stage.enable(scope, "waves", &sql("waves", 60)).await;
        world.pass(10).await;
        world.runbooks.disable_automation(scope, "waves").await.unwrap();
        world.runbooks.enable_automation(scope, "waves").await.unwrap();
        world.pass(100).await;
        assert_eq!(stage.batches().await, 1, "{:?}", stage.begun());
    });
}

#[test]
fn the_call_of_a_query_or_preview_ends_when_nothing_waits_for_it() {
    segno_testkit::run(async {
        let stage = Stage::of(Arc::new(|_, _, _| Reply::Later(3_600, json!([]))));
        let (world, scope) = (&stage.world, &stage.world.scope);
        let _node = stage.node().await;
        let yaml = runbook("called", "type: function, function: slow");
        world.publish(&yaml).await;
        let definition = world.runbooks.definitions().get(scope, "called", 1).await.unwrap();
        let previewer = stage.previewer();
        let error = previewer.preview(scope, &definition, "late").await.unwrap_err().to_string();
        assert!(error.contains("longer than the limit of 25 s"), "{error}");
        // The caller of another one goes away.
        let dropped = previewer.preview(scope, &definition, "dropped");
        assert!(segno::clock::timeout(&*world.clock, Duration::from_secs(5), dropped).await.is_none());
        world.runbooks.enable_automation(scope, "called").await.unwrap();
        world.pass(130).await;
        let row = world.runbooks.query(scope, "called").await.unwrap();
        assert!(row.last_error.unwrap().message.contains("longer than the limit of 120 s"));
        let calls = world.instances().await;
        assert_eq!(calls.len(), 3, "{calls:?}");
        assert!(calls.iter().all(|call| call.ends_with("cancelled")), "{calls:?}");
    });
}

#[test]
fn calls_of_data_sources_are_deleted_after_a_while() {
    segno_testkit::run(async {
        let stage = Stage::of(Arc::new(|_, _, _| Reply::Done(json!([]))));
        let (world, scope) = (&stage.world, &stage.world.scope);
        let _node = stage.node().await;
        let yaml = runbook("called", "type: function, function: slow");
        stage.enable(scope, "called", &yaml).await;
        world.pass(60).await;
        world.runbooks.disable_automation(scope, "called").await.unwrap();
        let definition = world.runbooks.definitions().get(scope, "called", 1).await.unwrap();
        stage.previewer().preview(scope, &definition, "one").await.unwrap();
        assert_eq!(world.instances().await.len(), 2);
        let services = world.services(world.store.clone(), world.functions(world.store.clone()));
        let upkeep = tokio::spawn(Upkeep::new(services).run(std::future::pending()));
        world.pass(23 * 60 * 60).await;
        assert_eq!(world.instances().await.len(), 2, "they are kept for a day");
        world.pass(2 * 60 * 60).await;
        assert_eq!(world.instances().await, Vec::<String>::new());
        upkeep.abort();
    });
}
