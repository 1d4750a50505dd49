//! A store that fails when told to: the unknown outcomes, absences, stalls and deaths that a node must live with.
//!
//! [`FaultStore`] stands between one node and its store. Every write is a *commit point*; a plan decides by its number
//! and name what happens there. Reads and fetches are hit only while the store is away, stalled or its node is dead.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::clock::{self, Clock, duration_ms};
use segno::store::{ProviderError, Store};
use tokio::sync::watch;

mod delegate;

/// What happens at a commit point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// The commit goes through.
    #[default]
    None,
    /// Nothing is done, and the error tells so: the store refused the write before it began, as on
    /// a full disk.
    Refuse,
    /// Nothing is done, and the error is `Unavailable`: the outcome is unknown.
    FailBefore,
    /// It is done, but the caller hears `Unavailable`: the outcome is unknown.
    FailAfter,
    /// It is done this much later.
    Delay(Duration),
    /// Nothing is done, and the store answers everything with `Unavailable` for this long.
    AwayFor(Duration),
    /// It is done, and then every answer of the store waits for this long: a node that stands still.
    StallFor(Duration),
    /// Nothing is done, and the node is dead: no call of it is ever answered again.
    CrashBefore,
    /// It is done, and the node is dead before it hears of it.
    CrashAfter,
}

/// A write that is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitPoint {
    /// Number of the write through this store, from 1.
    pub number: u64,
    /// Name of the store method.
    pub operation: &'static str,
}

/// Decides what happens at a commit point.
pub type Plan = Box<dyn FnMut(CommitPoint) -> Fault + Send>;

/// A plan that names commit points by number.
pub fn script(faults: impl IntoIterator<Item = (u64, Fault)>) -> Plan {
    let faults: BTreeMap<u64, Fault> = faults.into_iter().collect();
    Box::new(move |point| faults.get(&point.number).copied().unwrap_or_default())
}

/// A plan in which nothing happens.
pub fn no_faults() -> Plan {
    script([])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    AwayUntil(u64),
    StalledUntil(u64),
    /// Reads are answered; commits, and fetches of what is to be committed, are refused.
    Full,
    Dead,
}

/// A store with faults. See the module.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    decider: Mutex<Decider>,
    gate: watch::Sender<Gate>,
    joins_turns: bool,
}

struct Decider {
    plan: Plan,
    commits: u64,
}

impl FaultStore {
    /// A store with faults by a plan.
    pub fn new(inner: Arc<dyn Store>, clock: Arc<dyn Clock>, plan: Plan) -> Arc<FaultStore> {
        let joins_turns = inner.joins_turns();
        Self::make(inner, clock, plan, joins_turns)
    }

    /// The same, and no turn joins its activity: the end of every activity is a commit of its own.
    pub fn without_joins(inner: Arc<dyn Store>, clock: Arc<dyn Clock>, plan: Plan) -> Arc<FaultStore> {
        Self::make(inner, clock, plan, false)
    }

    fn make(inner: Arc<dyn Store>, clock: Arc<dyn Clock>, plan: Plan, joins_turns: bool) -> Arc<FaultStore> {
        let decider = Mutex::new(Decider { plan, commits: 0 });
        Arc::new(FaultStore { inner, clock, decider, gate: watch::Sender::new(Gate::Open), joins_turns })
    }

    /// How many commit points there were.
    pub fn commits(&self) -> u64 {
        self.decider.lock().unwrap_or_else(PoisonError::into_inner).commits
    }

    /// Resolves when the node of this store is dead.
    pub async fn died(&self) {
        let mut gate = self.gate.subscribe();
        let _ = gate.wait_for(|gate| *gate == Gate::Dead).await;
    }

    /// Kills the node now.
    pub fn kill(&self) {
        self.gate.send_replace(Gate::Dead);
    }

    /// From now on the store takes no writes and hands out no work, and answers reads, as on a full disk.
    pub fn fill_up(&self) {
        self.shut(Gate::Full);
    }

    /// The store that was [filled up](Self::fill_up) takes writes again.
    pub fn make_room(&self) {
        self.gate.send_if_modified(|gate| {
            let was_full = *gate == Gate::Full;
            if was_full {
                *gate = Gate::Open;
            }
            was_full
        });
    }

    fn decide(&self, operation: &'static str) -> Fault {
        if self.is_full() {
            return Fault::Refuse;
        }
        let mut decider = self.decider.lock().unwrap_or_else(PoisonError::into_inner);
        decider.commits += 1;
        let number = decider.commits;
        (decider.plan)(CommitPoint { number, operation })
    }

    fn is_full(&self) -> bool {
        *self.gate.borrow() == Gate::Full
    }

    /// Runs a fetch of what is to be committed.
    async fn fetch<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        if self.is_full() {
            return Err(ProviderError::unavailable(operation, "refused, because the store takes no writes"));
        }
        self.read(operation, work).await
    }

    /// Waits until the store answers; an error while it is away; never for the dead.
    async fn answer(&self, operation: &'static str) -> Result<(), ProviderError> {
        loop {
            let gate = *self.gate.borrow();
            match gate {
                Gate::Open | Gate::Full => return Ok(()),
                Gate::AwayUntil(at_ms) if self.clock.now_ms() < at_ms => {
                    return Err(ProviderError::unavailable(operation, "the store is away"));
                }
                Gate::StalledUntil(at_ms) if self.clock.now_ms() < at_ms => {
                    tokio::select! {
                        biased;
                        () = self.died() => {}
                        () = self.clock.sleep_until_ms(at_ms) => {}
                    }
                }
                Gate::AwayUntil(_) | Gate::StalledUntil(_) => {
                    self.gate.send_if_modified(|now| {
                        let unchanged = *now == gate;
                        if unchanged {
                            *now = Gate::Open;
                        }
                        unchanged
                    });
                }
                Gate::Dead => std::future::pending().await,
            }
        }
    }

    /// Runs an operation that is no commit point.
    async fn read<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.answer(operation).await?;
        let output = tokio::select! {
            biased;
            () = self.died() => std::future::pending().await,
            output = work => output,
        };
        self.answer(operation).await?;
        output
    }

    /// Runs a commit point.
    async fn commit<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.answer(operation).await?;
        let unavailable = |message: &str| Err(ProviderError::unavailable(operation, message));
        let later_ms = |duration: Duration| self.clock.now_ms().saturating_add(duration_ms(duration));
        match self.decide(operation) {
            Fault::None => work.await,
            Fault::Refuse => {
                unavailable("refused, by the plan of a test").map_err(ProviderError::nothing_changed)
            }
            Fault::FailBefore => unavailable("not done, by the plan of a test"),
            Fault::FailAfter => {
                work.await?;
                unavailable("done, but not said so, by the plan of a test")
            }
            Fault::Delay(delay) => {
                clock::sleep(&*self.clock, delay).await;
                self.answer(operation).await?;
                work.await
            }
            Fault::AwayFor(duration) => {
                self.shut(Gate::AwayUntil(later_ms(duration)));
                unavailable("the store went away")
            }
            Fault::StallFor(duration) => {
                let output = work.await;
                self.shut(Gate::StalledUntil(later_ms(duration)));
                self.answer(operation).await?;
                output
            }
            Fault::CrashBefore => {
                self.kill();
                std::future::pending().await
            }
            Fault::CrashAfter => {
                let _unheard = work.await;
                self.kill();
                std::future::pending().await
            }
        }
    }

    fn shut(&self, gate: Gate) {
        self.gate.send_if_modified(|now| {
            let alive = *now != Gate::Dead;
            if alive {
                *now = gate;
            }
            alive
        });
    }
}
