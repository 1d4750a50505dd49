//! Renewal of locks while their work runs, and detection of lost ones.
//!
//! One task serves the whole runtime. It ticks while there are leases, and sleeps when there are
//! none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use hashbrown::HashMap;
use tokio::sync::Notify;

use crate::activity::Stop;
use crate::clock::{self, Clock, duration_ms};
use crate::store::{ErrorKind, LockLife, LockToken, ScheduledActivityIdentifier, Store};
use crate::telemetry;

/// Cancellation reason of an activity whose lock is lost.
pub(super) const LOCK_LOST: &str = "the lock on the activity was lost";
/// Cancellation reason of an activity that its orchestration has cancelled.
pub(super) const CANCELLED: &str = "the orchestration no longer waits for the activity";

enum Kind {
    Turn,
    Activity { identifier: ScheduledActivityIdentifier, stop: Stop },
}

struct Lease {
    kind: Kind,
    since_ms: u64,
    renew_at_ms: u64,
}

#[derive(Default)]
struct State {
    leases: HashMap<LockToken, Lease>,
    by_activity: HashMap<ScheduledActivityIdentifier, LockToken>,
    idle: bool,
}

/// Locks held by this runtime.
pub(super) struct Leases {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    wake: Notify,
    turn_lock: Duration,
    activity_lock: Duration,
    check_interval: Duration,
}

/// Renews one lock until dropped.
pub(super) struct LeaseGuard {
    leases: Arc<Leases>,
    token: LockToken,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut state = self.leases.state();
        if let Some(Lease { kind: Kind::Activity { identifier, .. }, .. }) = state.leases.remove(&self.token)
            && state.by_activity.get(&identifier) == Some(&self.token)
        {
            state.by_activity.remove(&identifier);
        }
    }
}

impl Leases {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: &super::RuntimeOptions,
    ) -> Arc<Self> {
        Arc::new(Leases {
            store,
            clock,
            state: Mutex::default(),
            wake: Notify::new(),
            turn_lock: options.orchestrator_lock_timeout,
            activity_lock: options.worker_lock_timeout,
            check_interval: options.cancellation_check_interval,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold_turn(self: &Arc<Self>, token: LockToken) -> LeaseGuard {
        self.hold(token, Kind::Turn, self.turn_lock)
    }

    pub(super) fn hold_activity(
        self: &Arc<Self>,
        token: LockToken,
        identifier: ScheduledActivityIdentifier,
        stop: Stop,
    ) -> LeaseGuard {
        self.hold(token, Kind::Activity { identifier, stop }, self.activity_lock)
    }

    fn hold(self: &Arc<Self>, token: LockToken, kind: Kind, lock: Duration) -> LeaseGuard {
        let now_ms = self.clock.now_ms();
        let lease = Lease { kind, since_ms: now_ms, renew_at_ms: now_ms + duration_ms(lock) / 2 };
        let mut state = self.state();
        if let Kind::Activity { identifier, .. } = &lease.kind {
            state.by_activity.insert(identifier.clone(), token);
        }
        state.leases.insert(token, lease);
        let was_idle = std::mem::replace(&mut state.idle, false);
        drop(state);
        if was_idle {
            self.wake.notify_one();
        }
        LeaseGuard { leases: self.clone(), token }
    }

    /// Cancels activities of this process at once.
    pub(super) fn stop_activities(&self, identifiers: &[ScheduledActivityIdentifier]) {
        if identifiers.is_empty() {
            return;
        }
        let state = self.state();
        for identifier in identifiers {
            let lease = state.by_activity.get(identifier).and_then(|token| state.leases.get(token));
            if let Some(Lease { kind: Kind::Activity { stop, .. }, .. }) = lease {
                stop.stop(CANCELLED);
            }
        }
    }

    /// Ticks while there are leases.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let tick = {
                let mut state = self.state();
                if state.leases.is_empty() {
                    state.idle = true;
                    None
                } else {
                    Some((self.turn_lock.min(self.activity_lock) / 4).min(self.check_interval))
                }
            };
            match tick {
                None => self.wake.notified().await,
                Some(tick) => {
                    clock::sleep(&*self.clock, tick).await;
                    self.renew_due().await;
                    self.stop_lost_activities().await;
                }
            }
        }
    }

    async fn renew_due(&self) {
        let now_ms = self.clock.now_ms();
        let mut due: Vec<(LockToken, Duration)> = self
            .state()
            .leases
            .iter()
            .filter(|(_, lease)| lease.renew_at_ms <= now_ms)
            .map(|(token, lease)| match lease.kind {
                Kind::Turn => (*token, self.turn_lock),
                Kind::Activity { .. } => (*token, self.activity_lock),
            })
            .collect();
        due.sort_unstable();
        join_all(due.into_iter().map(|(token, lock)| self.renew(token, lock))).await;
    }

    /// Only a definite answer that the lock is lost stops the work; after an error of the store the
    /// renewal is retried soon.
    async fn renew(&self, token: LockToken, lock: Duration) {
        let is_turn = match self.state().leases.get(&token) {
            Some(lease) => matches!(lease.kind, Kind::Turn),
            None => return,
        };
        let result = if is_turn {
            self.store.renew_orchestration_item_lock(token, lock).await
        } else {
            self.store.renew_work_item_lock(token, lock, LockLife::Process).await
        };
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        let Some(lease) = state.leases.get_mut(&token) else { return };
        match result {
            Ok(()) => lease.renew_at_ms = now_ms + duration_ms(lock) / 2,
            Err(error) if error.kind() == ErrorKind::LockLost => {
                lease.renew_at_ms = u64::MAX;
                if let Kind::Activity { stop, .. } = &lease.kind {
                    stop.stop(LOCK_LOST);
                }
            }
            Err(error) => {
                metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation()).increment(1);
                tracing::warn!(%error, "a lock could not be renewed; trying again");
                lease.renew_at_ms = now_ms;
            }
        }
    }

    /// Queries the store for activities that other nodes have cancelled.
    async fn stop_lost_activities(&self) {
        let now_ms = self.clock.now_ms();
        let check_ms = duration_ms(self.check_interval);
        let mut old_enough: Vec<LockToken> = {
            // Not by activity: an instance that was deleted and made again uses the same
            // identifiers.
            let state = self.state();
            let activities = state.leases.iter().filter(|(_, lease)| {
                matches!(lease.kind, Kind::Activity { .. }) && lease.since_ms + check_ms <= now_ms
            });
            activities.map(|(token, _)| *token).collect()
        };
        if old_enough.is_empty() {
            return;
        }
        old_enough.sort_unstable();
        match self.store.lost_work_items(&old_enough).await {
            Ok(lost) => {
                let state = self.state();
                for token in lost {
                    if let Some(Lease { kind: Kind::Activity { stop, .. }, .. }) = state.leases.get(&token) {
                        stop.stop(CANCELLED);
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "could not query cancelled activities"),
        }
    }
}
