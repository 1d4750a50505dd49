//! The sessions that this node owns: claimed by fetches, renewed while in use, swept when orphaned.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{self, Clock, duration_ms};
use crate::store::{SessionClaims, SessionFetchConfig, Store};

/// Sessions of one node, by the time of their last work.
pub(super) struct Sessions {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node_id: Arc<str>,
    max_sessions: usize,
    lock_timeout: Duration,
    idle_timeout: Duration,
    used_at_ms: Mutex<BTreeMap<String, u64>>,
    wake: Notify,
    freed: Notify,
}

impl Sessions {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        node_id: Arc<str>,
        options: &super::RuntimeOptions,
    ) -> Arc<Self> {
        Arc::new(Sessions {
            store,
            clock,
            node_id,
            max_sessions: options.max_sessions,
            lock_timeout: options.session_lock_timeout,
            idle_timeout: options.session_idle_timeout,
            used_at_ms: Mutex::default(),
            wake: Notify::new(),
            freed: Notify::new(),
        })
    }

    fn used(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.used_at_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the next fetch treats session-bound work, and the number of items that it may take.
    /// Every item may claim a session, so a fetch takes at most as many as can still be owned; once
    /// there is no room, it claims none.
    pub(super) fn fetch_config(&self, wanted: usize) -> (Option<SessionFetchConfig>, usize) {
        if self.max_sessions == 0 {
            return (None, wanted);
        }
        let room = self.max_sessions.saturating_sub(self.used().len());
        let (claims, most) = match room {
            0 => (SessionClaims::OwnedOnly, wanted),
            room => (SessionClaims::Allowed, wanted.min(room)),
        };
        let owner_id = self.node_id.to_string();
        (Some(SessionFetchConfig { owner_id, lock_timeout: self.lock_timeout, claims }), most)
    }

    /// Resolves when a session was released.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// How long a fetch may wait: until a lock of our sessions may have expired if it claims no new
    /// ones, else for ever.
    pub(super) fn longest_wait(&self, config: Option<&SessionFetchConfig>) -> Duration {
        match config.map(|config| config.claims) {
            Some(SessionClaims::OwnedOnly) => self.lock_timeout / 3,
            _ => Duration::MAX,
        }
    }

    /// Records that work of a session was fetched or has ended here.
    pub(super) fn touch(&self, session: Option<&str>) {
        let Some(session) = session else { return };
        let first = {
            let mut used = self.used();
            let first = used.is_empty();
            used.insert(session.to_owned(), self.clock.now_ms());
            first
        };
        if first {
            self.wake.notify_one();
        }
    }

    /// Renews sessions while there are any, sweeps released ones once their locks have expired, and
    /// sleeps when there are neither.
    pub(super) async fn run(self: Arc<Self>) {
        let mut sweep_at_ms: Option<u64> = None;
        loop {
            if self.used().is_empty() && sweep_at_ms.is_none() {
                self.wake.notified().await;
            }
            clock::sleep(&*self.clock, self.lock_timeout / 3).await;
            let idle_ms = duration_ms(self.idle_timeout);
            let now_ms = self.clock.now_ms();
            let renewed =
                self.store.renew_session_lock(&[&self.node_id], self.lock_timeout, self.idle_timeout).await;
            if let Err(error) = renewed {
                tracing::warn!(%error, "session locks could not be renewed; trying again");
                continue;
            }
            let released = {
                let mut used = self.used();
                let before = used.len();
                used.retain(|_, used_at_ms| *used_at_ms + idle_ms > now_ms);
                used.len() < before
            };
            if released {
                self.freed.notify_one();
                // Their locks were renewed for the last time a third of their time ago or earlier.
                sweep_at_ms = Some(now_ms.saturating_add(duration_ms(self.lock_timeout)));
            }
            if sweep_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                match self.store.cleanup_orphaned_sessions().await {
                    Ok(_) => sweep_at_ms = None,
                    Err(error) => {
                        tracing::debug!(%error, "orphaned sessions could not be swept; trying again")
                    }
                }
            }
        }
    }
}
