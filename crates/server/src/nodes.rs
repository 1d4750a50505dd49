//! Which nodes there are: each writes down now and then that it is alive, and at its end that it has stopped.
//!
//! | state | when |
//! |---|---|
//! | up | it was heard of within [`SILENT`], or is the node that answers |
//! | stopped | it has said goodbye |
//! | lost | neither |
//!
//! A record has the id of a place ([`Place`]): a node that starts again in the place of a lost one takes its record over, so
//! that a restart after `kill -9` leaves no lost node behind. Records live for an hour after their node was last heard of.
//!
//! A node that cannot write, because the disk is full for example, cannot write that it is alive
//! either. The node that answers is up whatever is stored of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::store::{Expect, ListRecords, ProviderError, RecordBatch, RecordWrite, Store};
use segno_api::system::{Node, NodeState};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::access::timestamp;
use crate::incarnation::Place;
use crate::listen::until_stopped;
use crate::settings::Settings;

/// Kind of the records.
const KIND: &str = "segno.node";

/// A node writes itself down this often.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// A node that was not heard of for so long, and has not said goodbye, is lost.
const SILENT: Duration = Duration::from_secs(35);

/// Records live so long after their node was last heard of.
const LIFE: Duration = Duration::from_secs(60 * 60);

/// Nodes that are listed: far more than a store has.
const MAX_NODES: usize = 1_000;

/// A node as it is stored. Names are for ever. Times are those of the store's clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredNode {
    node: String,
    version: String,
    roles: Vec<String>,
    started_at_ms: u64,
    seen_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped_at_ms: Option<u64>,
    /// Places for turns and for functions.
    orchestrations: usize,
    functions: usize,
    tags: Vec<String>,
}

/// What a node writes down of itself.
pub struct NodeRecord {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    answering: Arc<Answering>,
}

/// The node that answers.
pub struct Answering {
    /// Id of its record.
    id: String,
    /// Its record without times.
    node: StoredNode,
    /// When it began, on the clock of the store; 0 until that was read.
    started_at_ms: AtomicU64,
}

impl Answering {
    /// The record at this time of the store.
    fn at(&self, now_ms: u64) -> StoredNode {
        let began = self.started_at_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
        let started_at_ms = began.map_or_else(|earlier_ms| earlier_ms, |_| now_ms);
        StoredNode { started_at_ms, seen_at_ms: now_ms, ..self.node.clone() }
    }
}

impl NodeRecord {
    /// The record of this node; `unique` tells nodes without a name of their own apart.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        settings: &Settings,
        (name, unique): (&str, &str),
    ) -> Self {
        let id = match settings.place() {
            Place::TheOnlyOne => "only".to_owned(),
            Place::Named(name) => format!("named/{name}"),
            Place::Unnamed => format!("unnamed/{unique}"),
        };
        let options = settings.runtime_options();
        let node = StoredNode {
            node: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roles: settings.server.roles.iter().map(|role| role.as_str().to_owned()).collect(),
            started_at_ms: 0,
            seen_at_ms: 0,
            stopped_at_ms: None,
            orchestrations: options.orchestration_concurrency,
            functions: options.worker_concurrency,
            tags: settings.runtime.tags.iter().cloned().collect(),
        };
        NodeRecord {
            store,
            clock,
            answering: Arc::new(Answering { id, node, started_at_ms: AtomicU64::new(0) }),
        }
    }

    /// This node, as the one that answers.
    pub fn answering(&self) -> Arc<Answering> {
        self.answering.clone()
    }

    /// Writes the record until it is time to stop, and says goodbye then.
    pub async fn keep(self, stopping: CancellationToken) {
        loop {
            if let Err(error) = self.write(None).await {
                tracing::debug!(%error, "this node could not write down that it is alive; trying again");
            }
            if until_stopped(&stopping, clock::sleep(&*self.clock, WRITE_EVERY)).await.is_none() {
                break;
            }
        }
        let now_ms = self.store.now_ms().await.unwrap_or_else(|_| self.clock.now_ms());
        if let Err(error) = self.write(Some(now_ms)).await {
            tracing::warn!(%error, "this node could not write down that it stops: it will be listed as lost");
        }
    }

    async fn write(&self, stopped_at_ms: Option<u64>) -> Result<(), ProviderError> {
        let node = StoredNode { stopped_at_ms, ..self.answering.at(self.store.now_ms().await?) };
        let write = RecordWrite::Put {
            kind: KIND.to_owned(),
            id: self.answering.id.clone(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(LIFE),
            body: serde_json::to_vec(&node).unwrap_or_default().into(),
        };
        self.store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await?;
        Ok(())
    }
}

/// The nodes that were heard of in the last hour, by name. The one that answers is up.
///
/// # Errors
/// When the store is away.
pub async fn list(store: &dyn Store, answering: &Answering) -> Result<Vec<Node>, ProviderError> {
    let now_ms = store.now_ms().await?;
    let request = ListRecords { kind: KIND, id_prefix: "", after_id: None, limit: MAX_NODES };
    let records = store.list_records(request).await?;
    let others = records.iter().filter(|record| record.id != answering.id);
    let stored = others.filter_map(|record| serde_json::from_slice::<StoredNode>(&record.body).ok());
    let all = stored.chain([answering.at(now_ms)]);
    let mut nodes: Vec<Node> = all.map(|node| shown(node, now_ms)).collect();
    nodes.sort_by(|one, other| (&one.node, one.started_at).cmp(&(&other.node, other.started_at)));
    Ok(nodes)
}

fn shown(stored: StoredNode, now_ms: u64) -> Node {
    let is_silent = now_ms.saturating_sub(stored.seen_at_ms) > clock::duration_ms(SILENT);
    let state = match stored.stopped_at_ms {
        Some(_) => NodeState::Stopped,
        None if is_silent => NodeState::Lost,
        None => NodeState::Up,
    };
    Node {
        node: stored.node,
        state,
        version: stored.version,
        roles: stored.roles,
        started_at: timestamp(stored.started_at_ms),
        last_seen_at: timestamp(stored.seen_at_ms),
        stopped_at: stored.stopped_at_ms.map(timestamp),
        orchestrations: stored.orchestrations,
        functions: stored.functions,
        tags: stored.tags,
    }
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno_testkit::clock::VirtualClock;
    use segno_testkit::faults::{FaultStore, no_faults};

    use super::*;

    #[tokio::test]
    async fn a_node_is_up_until_it_says_goodbye_or_is_silent_and_its_successor_takes_its_place() {
        let clock = VirtualClock::new();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let settings = |name: &str| {
            let mut settings = Settings::default();
            settings.store.url = "postgres://localhost/x".to_owned();
            settings.server.node = Some(name.to_owned());
            settings
        };
        let record =
            |name: &str| NodeRecord::new(store.clone(), clock.clone(), &settings(name), (name, "unique"));
        let (one, two, three) = (record("one"), record("two"), record("three"));
        one.write(None).await.unwrap();
        two.write(None).await.unwrap();
        let answering = three.answering();
        let states = async || {
            let mut nodes = list(&*store, &answering).await.unwrap();
            let own = nodes.iter().position(|node| node.node == "three").unwrap();
            assert_eq!(nodes.remove(own).state, NodeState::Up, "the one that answers");
            nodes.into_iter().map(|node| (node.node, node.state)).collect::<Vec<_>>()
        };
        let of = |one: NodeState, two: NodeState| vec![("one".to_owned(), one), ("two".to_owned(), two)];
        assert_eq!(states().await, of(NodeState::Up, NodeState::Up));
        clock.advance(SILENT + Duration::from_millis(1));
        two.write(Some(clock.now_ms())).await.unwrap();
        assert_eq!(states().await, of(NodeState::Lost, NodeState::Stopped));
        record("one").write(None).await.unwrap();
        assert_eq!(states().await, of(NodeState::Up, NodeState::Stopped));
        clock.advance(LIFE + Duration::from_millis(1));
        assert!(states().await.is_empty());
    }

    #[tokio::test]
    async fn the_node_that_answers_is_up_although_it_cannot_write() {
        let clock = VirtualClock::new();
        let store = FaultStore::new(MemoryStore::with_clock(clock.clone()), clock.clone(), no_faults());
        let record =
            || NodeRecord::new(store.clone(), clock.clone(), &Settings::default(), ("one", "unique"));
        let node = record();
        let listed = async |node: &NodeRecord| {
            let nodes = list(&*store, &node.answering()).await.unwrap();
            assert_eq!(nodes.len(), 1, "{nodes:?}");
            (nodes[0].state, nodes[0].started_at, nodes[0].last_seen_at)
        };
        let began = timestamp(clock.now_ms());
        node.write(None).await.unwrap();
        store.fill_up();
        clock.advance(SILENT + Duration::from_millis(1));
        assert!(node.write(None).await.is_err());
        let now = timestamp(clock.now_ms());
        assert_eq!(listed(&node).await, (NodeState::Up, began, now));
        // Its successor in the same place has written nothing yet.
        let successor = record();
        assert_eq!(listed(&successor).await, (NodeState::Up, now, now));
        clock.advance(LIFE + Duration::from_millis(1));
        let later = timestamp(clock.now_ms());
        assert_eq!(listed(&successor).await, (NodeState::Up, now, later), "no record is left");
    }
}
