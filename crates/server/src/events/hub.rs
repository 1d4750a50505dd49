//! Hears from the runtime and from the drivers of batches what they have committed, keeps the last changes, and has listeners. Costs one look at a flag for
//! each change while nobody listens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use segno::clock::{Clock, duration_ms};
use segno::ids::IdSource;
use segno::runtime::{ChangeKind, InstanceChange, Observer};
use segno::store::{ErrorKind, ExecutionStatus, ProviderError, Store};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::batches::ObservedBatch;
use super::ring::{Position, Ring};
use super::runs::ObservedRun;
use crate::listen::until_stopped;

/// Changes that are kept for listeners who come back.
const MAX_KEPT: usize = 10_000;

/// Changes that wait to be looked at.
const MAX_INCOMING: usize = 10_000;

/// Changes that wait to be told to other nodes.
const MAX_OUTGOING: usize = 4_096;

/// Changes whose instances are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 64;

/// Changes that a listener gets at once.
const HEARD_AT_ONCE: usize = 256;

/// How long changes are kept after the last listener has gone, so that one who comes back misses nothing.
const LINGER: Duration = Duration::from_secs(60);

/// A change as the node knows it that made it. Stored, when nodes relay changes to each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Observed {
    Instance(ObservedInstance),
    Batch(ObservedBatch),
    Run(ObservedRun),
}

/// A change of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObservedInstance {
    instance: String,
    execution: u64,
    kind: ChangeKind,
    at_ms: u64,
}

/// A change with what is needed to show it.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// Of an instance.
    Instance(KnownInstance),
    /// Of a batch of a runbook.
    Batch(ObservedBatch),
    /// Of a run of a DAG.
    Run(ObservedRun),
}

/// A change of an instance with what is needed to say whom it concerns.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownInstance {
    /// The instance, by its stored id.
    pub instance: String,
    /// The execution.
    pub execution: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// When.
    pub at_ms: u64,
    /// The state that it led to.
    pub status: ExecutionStatus,
    /// The orchestration.
    pub orchestration: Option<String>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

/// What a listener hears.
#[derive(Debug)]
pub enum Heard {
    /// Changes in order, each with its place.
    Changes(Vec<(Position, Arc<Known>)>),
    /// Some changes are gone; it goes on behind this place.
    Lagged(Position),
}

/// The last changes and who listens to them.
#[derive(Debug)]
struct Audience {
    ring: Ring<Arc<Known>>,
    listeners: usize,
    /// When the last listener went.
    left_at_ms: u64,
}

/// What happens to instances.
pub struct Hub {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    /// Whether changes are kept here.
    listened: AtomicBool,
    /// Whether another node wants to hear of them.
    wanted: AtomicBool,
    audience: Mutex<Audience>,
    incoming: mpsc::Sender<Observed>,
    outgoing: Mutex<Outgoing>,
    moved: watch::Sender<()>,
}

/// What other nodes have not been told yet.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) changes: Vec<Observed>,
    /// Whether some did not fit.
    pub(super) overflowed: bool,
}

/// Looks up what changes concern; runs as long as the server.
pub struct Recorder {
    hub: Arc<Hub>,
    incoming: mpsc::Receiver<Observed>,
}

impl Hub {
    /// A hub on a store, and what feeds it.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> (Arc<Self>, Recorder) {
        let (sender, incoming) = mpsc::channel(MAX_INCOMING);
        let ring = Ring::new(ids.new_uuid().simple().to_string(), MAX_KEPT);
        let hub = Arc::new(Hub {
            store,
            clock,
            ids,
            listened: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            audience: Mutex::new(Audience { ring, listeners: 0, left_at_ms: 0 }),
            incoming: sender,
            outgoing: Mutex::default(),
            moved: watch::channel(()).0,
        });
        (hub.clone(), Recorder { hub, incoming })
    }

    /// Begins to listen, behind a place or from now on.
    pub fn listen(self: &Arc<Self>, after: Option<Position>) -> Listener {
        let mut audience = self.audience();
        audience.listeners += 1;
        if !self.listened.swap(true, Ordering::AcqRel) {
            // Nothing was kept until now.
            audience.ring.restart(self.new_epoch());
        }
        let at = after.unwrap_or_else(|| audience.ring.end());
        drop(audience);
        Listener { hub: self.clone(), at, moved: self.moved.subscribe() }
    }

    /// Whether somebody listens here, or has just gone.
    pub(super) fn is_listened(&self) -> bool {
        let mut audience = self.audience();
        let lingers_until_ms = audience.left_at_ms + duration_ms(LINGER);
        if audience.listeners == 0 && self.clock.now_ms() >= lingers_until_ms {
            if self.listened.swap(false, Ordering::AcqRel) {
                audience.ring.restart(self.new_epoch());
            }
            return false;
        }
        true
    }

    /// Says whether another node wants to hear of changes.
    pub(super) fn set_wanted(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
        if !wanted {
            *self.outgoing() = Outgoing::default();
        }
    }

    /// What another node should be told.
    pub(super) fn take_outgoing(&self) -> Outgoing {
        std::mem::take(&mut *self.outgoing())
    }

    /// Takes in what another node tells.
    pub(super) fn take_in(&self, changes: Vec<Observed>) {
        for change in changes {
            self.keep(change);
        }
    }

    /// Tells all listeners that changes are missing.
    pub(super) fn restart(&self) {
        self.audience().ring.restart(self.new_epoch());
        self.moved.send_replace(());
    }

    fn keep(&self, change: Observed) {
        if self.incoming.try_send(change).is_err() {
            self.restart();
        }
    }

    fn add(&self, changes: Vec<Known>) {
        let mut audience = self.audience();
        changes.into_iter().for_each(|change| audience.ring.push(Arc::new(change)));
        drop(audience);
        self.moved.send_replace(());
    }

    /// What a change concerns; `None` when the instance is gone.
    async fn look_up(&self, change: Observed) -> Result<Option<Known>, ProviderError> {
        let change = match change {
            Observed::Instance(change) => change,
            Observed::Batch(batch) => return Ok(Some(Known::Batch(batch))),
            Observed::Run(run) => return Ok(Some(Known::Run(run))),
        };
        let info = match self.store.get_instance_info(&change.instance).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            info => info?,
        };
        let ObservedInstance { instance, execution, kind, at_ms } = change;
        let status = match kind {
            ChangeKind::Started | ChangeKind::Resumed => ExecutionStatus::Running,
            ChangeKind::Paused => ExecutionStatus::Paused,
            ChangeKind::ContinuedAsNew => ExecutionStatus::ContinuedAsNew,
            ChangeKind::Completed => ExecutionStatus::Completed,
            ChangeKind::Failed => ExecutionStatus::Failed,
            ChangeKind::Cancelled => ExecutionStatus::Cancelled,
            ChangeKind::StatusChanged => info.status,
        };
        let (orchestration, labels) = (info.orchestration_name.as_deref().map(str::to_owned), info.labels);
        let known = KnownInstance { instance, execution, kind, at_ms, status, orchestration, labels };
        Ok(Some(Known::Instance(known)))
    }

    fn new_epoch(&self) -> String {
        self.ids.new_uuid().simple().to_string()
    }

    fn audience(&self) -> MutexGuard<'_, Audience> {
        self.audience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Takes a change of this node, which is made only if a listener here or elsewhere wants it.
    fn observe(&self, change: impl FnOnce(u64) -> Option<Observed>) {
        let (listened, wanted) = (self.listened.load(Ordering::Acquire), self.wanted.load(Ordering::Acquire));
        if !listened && !wanted {
            return;
        }
        let Some(observed) = change(self.clock.now_ms()) else { return };
        if wanted {
            let mut outgoing = self.outgoing();
            if outgoing.changes.len() < MAX_OUTGOING {
                outgoing.changes.push(observed.clone());
            } else {
                outgoing.overflowed = true;
            }
        }
        if listened {
            self.keep(observed);
        }
    }

    /// Whether a listener here or on another node wants changes.
    pub(super) fn is_wanted(&self) -> bool {
        self.listened.load(Ordering::Acquire) || self.wanted.load(Ordering::Acquire)
    }

    /// Takes what a fold has changed in a run.
    pub(super) fn run_changed(&self, change: impl FnOnce(u64) -> ObservedRun) {
        self.observe(|at_ms| Some(Observed::Run(change(at_ms))));
    }

    /// Takes what a commit has changed in a batch.
    pub(super) fn batch_committed(&self, change: impl FnOnce(u64) -> Option<ObservedBatch>) {
        self.observe(|at_ms| change(at_ms).map(Observed::Batch));
    }
}

impl Observer for Hub {
    fn committed(&self, change: InstanceChange<'_>) {
        self.observe(|at_ms| {
            let InstanceChange { instance, execution_id: execution, kind } = change;
            let instance = instance.to_owned();
            Some(Observed::Instance(ObservedInstance { instance, execution, kind, at_ms }))
        });
    }
}

impl Recorder {
    /// Looks changes up, in their order.
    pub async fn run(mut self, stopping: CancellationToken) {
        let mut changes = Vec::new();
        while let Some(1..) =
            until_stopped(&stopping, self.incoming.recv_many(&mut changes, LOOKED_UP_AT_ONCE)).await
        {
            let known = join_all(changes.drain(..).map(|change| self.hub.look_up(change))).await;
            match known.into_iter().collect::<Result<Vec<_>, _>>() {
                Ok(known) => self.hub.add(known.into_iter().flatten().collect()),
                Err(error) => {
                    tracing::warn!(%error, "changes could not be shown to those who listen");
                    self.hub.restart();
                }
            }
        }
    }
}

/// Somebody who listens.
pub struct Listener {
    hub: Arc<Hub>,
    at: Position,
    moved: watch::Receiver<()>,
}

impl Listener {
    /// The place behind which it goes on.
    pub fn place(&self) -> &Position {
        &self.at
    }

    /// Waits for changes.
    pub async fn hear(&mut self) -> Heard {
        loop {
            self.moved.mark_unchanged();
            let (found, end) = {
                let audience = self.hub.audience();
                (audience.ring.after(&self.at, HEARD_AT_ONCE), audience.ring.end())
            };
            match found {
                None => {
                    self.at = end.clone();
                    return Heard::Lagged(end);
                }
                Some(changes) => {
                    if let Some((last, _)) = changes.last() {
                        self.at = last.clone();
                        return Heard::Changes(changes);
                    }
                }
            }
            if self.moved.changed().await.is_err() {
                // The hub is gone, and this holds it: it cannot be.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut audience = self.hub.audience();
        audience.listeners -= 1;
        audience.left_at_ms = self.hub.clock.now_ms();
    }
}
