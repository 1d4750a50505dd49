//! What nodes on one store tell each other while somebody listens.
//!
//! A node with listeners says so with a record that lives for a short time. Nodes that see such a record of another one
//! write down their changes in batches, which live for a minute; the nodes with listeners read them. Batches of a node
//! are numbered without gaps, so that a reader knows when it has missed one. Nothing is written while nobody listens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, duration_ms, sleep};
use segno::store::{Expect, ListRecords, ProviderError, RecordBatch, RecordWrite, Store};
use tokio_util::sync::CancellationToken;

use super::hub::{Hub, Observed, Outgoing};
use crate::listen::until_stopped;

/// Kind of the records that say who listens, by node.
const INTEREST: &str = "segno.stream-interest";

/// Kind of the records with changes, by node and number.
const CHANGES: &str = "segno.stream-change";

/// How long it is known that somebody listens.
const INTEREST_LIFE: Duration = Duration::from_secs(30);

/// Between two times that it is said.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// Between two looks for who listens.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Between two batches, and between two looks for those of others.
const BATCH_EVERY: Duration = Duration::from_millis(200);

/// How long a batch can be read.
const BATCH_LIFE: Duration = Duration::from_secs(60);

/// Most batches of a node that are read at once.
const BATCHES_AT_ONCE: usize = 64;

/// Most nodes that are heard.
const MAX_NODES: usize = 256;

/// Tells and hears.
pub struct Relay {
    /// Where changes come from and go to.
    pub hub: Arc<Hub>,
    /// What the nodes share.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Name of this node.
    pub node: String,
}

/// How far a relay is.
struct Progress {
    say_at_ms: u64,
    look_at_ms: u64,
    is_wanted: bool,
    /// Number of the next batch.
    next_batch: u64,
    /// The last batch that was read of each node; `None` while nobody listens here.
    read: Option<HashMap<String, u64>>,
}

impl Relay {
    /// Tells and hears until the server stops.
    pub async fn run(self, stopping: CancellationToken) {
        let now_ms = self.clock.now_ms();
        let mut progress = Progress {
            say_at_ms: 0,
            look_at_ms: 0,
            is_wanted: false,
            // Higher than any number of this node before it was started again, and not the next one: what it had not told
            // is lost, and whoever listens must know.
            next_batch: now_ms.saturating_mul(1_000),
            read: None,
        };
        loop {
            if let Err(error) = self.step(&mut progress).await {
                tracing::debug!(%error, "changes could not be exchanged with other nodes");
            }
            let pause = if progress.is_wanted || progress.read.is_some() { BATCH_EVERY } else { LOOK_EVERY };
            if until_stopped(&stopping, sleep(&*self.clock, pause)).await.is_none() {
                return;
            }
        }
    }

    async fn step(&self, progress: &mut Progress) -> Result<(), ProviderError> {
        let now_ms = self.clock.now_ms();
        let is_listened = self.hub.is_listened();
        if is_listened && now_ms >= progress.say_at_ms {
            self.put(INTEREST, self.node.clone(), INTEREST_LIFE, Vec::new()).await?;
            progress.say_at_ms = now_ms + duration_ms(SAY_EVERY);
        }
        if now_ms >= progress.look_at_ms {
            progress.is_wanted = self.is_wanted_elsewhere().await?;
            self.hub.set_wanted(progress.is_wanted);
            progress.look_at_ms = now_ms + duration_ms(LOOK_EVERY);
        }
        if progress.is_wanted {
            self.tell(progress).await?;
        }
        if is_listened {
            self.hear(&mut progress.read).await
        } else {
            progress.read = None;
            Ok(())
        }
    }

    async fn is_wanted_elsewhere(&self) -> Result<bool, ProviderError> {
        let request = ListRecords { kind: INTEREST, limit: MAX_NODES, ..ListRecords::default() };
        Ok(self.store.list_records(request).await?.iter().any(|record| record.id != self.node))
    }

    async fn tell(&self, progress: &mut Progress) -> Result<(), ProviderError> {
        let Outgoing { changes, overflowed } = self.hub.take_outgoing();
        if changes.is_empty() {
            return Ok(());
        }
        // A number that is left out says that something is missing, also when the batch cannot be written.
        let number = progress.next_batch + u64::from(overflowed);
        progress.next_batch = number + 1;
        let body = serde_json::to_vec(&changes).unwrap_or_default();
        self.put(CHANGES, batch_id(&self.node, number), BATCH_LIFE, body).await
    }

    /// Reads the batches of all other nodes. Those that are there when listening begins are older than it.
    async fn hear(&self, read: &mut Option<HashMap<String, u64>>) -> Result<(), ProviderError> {
        let is_first_look = read.is_none();
        let read = read.get_or_insert_default();
        for node in self.telling().await? {
            loop {
                let prefix = batch_prefix(&node);
                let after = read.get(&node).map(|last| batch_id(&node, *last));
                let request = ListRecords {
                    kind: CHANGES,
                    id_prefix: &prefix,
                    after_id: after.as_deref(),
                    limit: BATCHES_AT_ONCE,
                };
                let batches = self.store.list_records(request).await?;
                for batch in &batches {
                    let Some(number) = batch.id[prefix.len()..].parse::<u64>().ok() else { continue };
                    let last = read.insert(node.clone(), number);
                    if is_first_look {
                        continue;
                    }
                    let changes: Option<Vec<Observed>> = serde_json::from_slice(&batch.body).ok();
                    if changes.is_none() || last.is_some_and(|last| number != last + 1) {
                        self.hub.restart();
                    }
                    self.hub.take_in(changes.unwrap_or_default());
                }
                if batches.len() < BATCHES_AT_ONCE {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Other nodes that have told something lately. One look for each, however many batches there are.
    async fn telling(&self) -> Result<Vec<String>, ProviderError> {
        let mut nodes = Vec::new();
        let mut after: Option<String> = None;
        while nodes.len() < MAX_NODES {
            let request = ListRecords { kind: CHANGES, id_prefix: "", after_id: after.as_deref(), limit: 1 };
            let Some(first) = self.store.list_records(request).await?.pop() else { break };
            let Some(node) = node_of(&first.id) else { break };
            // All ids of the node lie before this one.
            after = Some(format!("{}~", batch_prefix(node)));
            if node != self.node {
                nodes.push(node.to_owned());
            }
        }
        Ok(nodes)
    }

    async fn put(&self, kind: &str, id: String, life: Duration, body: Vec<u8>) -> Result<(), ProviderError> {
        let write = RecordWrite::Put {
            kind: kind.to_owned(),
            id,
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(life),
            body: body.into(),
        };
        self.store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await?;
        Ok(())
    }
}

/// What the ids of a node's batches begin with, and those of no other node: the name of a node may have a slash in it, so its
/// length comes first.
fn batch_prefix(node: &str) -> String {
    format!("{}:{node}/", node.len())
}

/// The id of a batch. Ids ascend with the numbers.
fn batch_id(node: &str, number: u64) -> String {
    format!("{}{number:020}", batch_prefix(node))
}

/// The node that told a batch.
fn node_of(batch_id: &str) -> Option<&str> {
    let (length, rest) = batch_id.split_once(':')?;
    rest.get(..length.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use segno::clock::SystemClock;
    use segno::ids::SystemIds;
    use segno::runtime::{ChangeKind, InstanceChange, Observer};
    use segno::store::memory::MemoryStore;

    use super::*;

    fn relay(store: &Arc<dyn Store>, node: &str) -> Relay {
        let (hub, _) = Hub::new(store.clone(), SystemClock::shared(), SystemIds::shared());
        Relay { hub, store: store.clone(), clock: SystemClock::shared(), node: node.to_owned() }
    }

    async fn tell(relay: &Relay, batches: u64) {
        let mut progress =
            Progress { say_at_ms: 0, look_at_ms: 0, is_wanted: true, next_batch: 1, read: None };
        relay.hub.set_wanted(true);
        for _ in 0..batches {
            let kind = ChangeKind::Started;
            relay.hub.committed(InstanceChange { instance: "a", execution_id: 1, kind, ended: None });
            relay.tell(&mut progress).await.unwrap();
        }
    }

    #[tokio::test]
    async fn all_batches_of_all_nodes_are_read_whatever_their_names() {
        let store: Arc<dyn Store> = MemoryStore::new();
        let more_than_a_page = BATCHES_AT_ONCE as u64 + 1;
        let told = [("eu", 2), ("eu/1", more_than_a_page), ("eu/00000000000000000001", 3), ("é:~", 1)];
        for (node, batches) in told {
            tell(&relay(&store, node), batches).await;
        }
        let listening = relay(&store, "eu/1/2");
        let mut read = None;
        listening.hear(&mut read).await.unwrap();
        let expected = told.map(|(node, batches)| (node.to_owned(), batches)).into();
        assert_eq!(read, Some(expected));
    }
}
