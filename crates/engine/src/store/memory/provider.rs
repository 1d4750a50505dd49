//! The first facet: the two queues, histories, the turn commit, and watches.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::MemoryStore;
use crate::clock::{deadline_ms, duration_ms, sleep_until};
use crate::store::core::demand::{TurnDemand, WorkDemand};
use crate::store::core::peek_lock::Attempt;
use crate::store::{
    AckOrchestrationItem, AckWorkItem, FetchOrchestrationItems, FetchWorkItems, InstanceInfo, LockLife,
    LockToken, LockedWorkItem, NextExecution, OrchestrationItem, OrchestratorMessage, Provider,
    ProviderError, StoredEvent, WatchUntil, WorkerMessage, start_then_watch,
};

fn after(now_ms: u64, duration: Duration) -> u64 {
    now_ms.saturating_add(duration_ms(duration))
}

fn attempt(ignore_attempt: bool) -> Attempt {
    if ignore_attempt { Attempt::Ignored } else { Attempt::Counts }
}

#[async_trait]
impl Provider for MemoryStore {
    fn name(&self) -> &str {
        "memory"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn now_ms(&self) -> Result<u64, ProviderError> {
        Ok(self.clock().now_ms())
    }

    async fn fetch_orchestration_items(
        &self,
        request: FetchOrchestrationItems<'_>,
    ) -> Result<Vec<OrchestrationItem>, ProviderError> {
        if request.max_items == 0 {
            return Ok(Vec::new());
        }
        let demand = || TurnDemand { filter: request.filter.cloned() };
        let fetch = |state: &mut super::state::State, now_ms| state.fetch_turns(&request, now_ms);
        Ok(self.wait_for(demand, request.poll_timeout, fetch).await)
    }

    async fn ack_orchestration_item(&self, turn: Arc<AckOrchestrationItem>) -> Result<(), ProviderError> {
        let turn = Arc::unwrap_or_clone(turn);
        self.change(|state, now_ms| state.ack_turn(turn, now_ms))
    }

    fn joins_turns(&self) -> bool {
        true
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let abandoned = self.change(|state, now_ms| {
            let visible_at_ms = after(now_ms, delay.unwrap_or_default());
            state.orchestrations.abandon(lock_token, visible_at_ms, attempt(ignore_attempt), now_ms)
        });
        abandoned.ok_or_else(|| ProviderError::lock_lost("abandon_orchestration_item"))
    }

    async fn renew_orchestration_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let renewed =
            self.change(|state, now_ms| state.orchestrations.renew(lock_token, after(now_ms, extend_for)));
        renewed.ok_or_else(|| ProviderError::lock_lost("renew_orchestration_item_lock"))
    }

    async fn read(&self, instance: &str) -> Result<Vec<StoredEvent>, ProviderError> {
        let history = self.look(|state, _| {
            state.instances.current_execution(instance).map(|execution| execution.events.clone())
        });
        Ok(history.unwrap_or_default())
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        let history = self.look(|state, _| {
            state.instances.execution(instance, execution_id).map(|execution| execution.events.clone())
        });
        Ok(history.unwrap_or_default())
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<StoredEvent>,
    ) -> Result<(), ProviderError> {
        self.change(|state, now_ms| state.append(instance, execution_id, new_events, now_ms))
    }

    async fn enqueue_for_orchestrator(
        &self,
        mut message: OrchestratorMessage,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.change(|state, now_ms| {
            if let Some(delay) = delay {
                message.visible_at_ms = Some(after(now_ms, delay));
            }
            state.enqueue(message, now_ms)
        })
    }

    async fn begin_next_execution(&self, next: NextExecution) -> Result<(), ProviderError> {
        self.change(|state, now_ms| state.begin_next(next, now_ms))
    }

    async fn enqueue_for_worker(&self, message: WorkerMessage) -> Result<(), ProviderError> {
        self.change(|state, now_ms| state.work.enqueue(message, now_ms));
        Ok(())
    }

    async fn fetch_work_items(
        &self,
        request: FetchWorkItems<'_>,
    ) -> Result<Vec<LockedWorkItem>, ProviderError> {
        if request.max_items == 0 {
            return Ok(Vec::new());
        }
        let demand = || WorkDemand { tags: request.tag_filter.clone(), session: request.session.cloned() };
        let fetch = |state: &mut super::state::State, now_ms| state.fetch_work(&request, now_ms);
        Ok(self.wait_for(demand, request.poll_timeout, fetch).await)
    }

    async fn ack_work_item(&self, ack: AckWorkItem) -> Result<(), ProviderError> {
        self.change(|state, now_ms| state.ack_work(ack, now_ms))
    }

    async fn renew_work_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
        _life: LockLife,
    ) -> Result<(), ProviderError> {
        let renewed =
            self.change(|state, now_ms| state.work.renew(lock_token, after(now_ms, extend_for), now_ms));
        renewed.ok_or_else(|| ProviderError::lock_lost("renew_work_item_lock"))
    }

    async fn abandon_work_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let abandoned = self.change(|state, now_ms| {
            let visible_at_ms = after(now_ms, delay.unwrap_or_default());
            state.work.abandon(lock_token, visible_at_ms, attempt(ignore_attempt), now_ms)
        });
        abandoned.ok_or_else(|| ProviderError::lock_lost("abandon_work_item"))
    }

    async fn lost_work_items(&self, lock_tokens: &[LockToken]) -> Result<Vec<LockToken>, ProviderError> {
        // Not a mere look: a lock that has run out must have ended for the answer to be right.
        Ok(self.change(|state, _| {
            lock_tokens.iter().copied().filter(|token| !state.work.holds(*token)).collect()
        }))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let idle_ms = duration_ms(idle_timeout);
        Ok(self.change(|state, now_ms| {
            let active = |last_activity_ms: u64| now_ms.saturating_sub(last_activity_ms) < idle_ms;
            let (sessions, until_ms) = (state.work.sessions_mut(), after(now_ms, extend_for));
            owner_ids.iter().map(|owner| sessions.renew(owner, until_ms, active)).sum()
        }))
    }

    async fn cleanup_orphaned_sessions(&self) -> Result<usize, ProviderError> {
        Ok(self.change(|state, _| state.work.sessions_mut().remove_orphaned()))
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<Bytes>, u64)>, ProviderError> {
        Ok(self.look(|state, _| {
            let info = state.instances.info(instance)?;
            let is_news = info.custom_status_version > last_seen_version;
            is_news.then(|| (info.custom_status.clone(), info.custom_status_version))
        }))
    }

    async fn watch_instance(
        &self,
        instance: &str,
        until: WatchUntil,
        timeout: Duration,
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        let deadline_ms = deadline_ms(self.clock(), timeout);
        let (id, answer) = self.change(|state, _| {
            let watch = state.watches.add(Arc::from(instance), until);
            if let Some(info) = state.instances.info(instance) {
                state.watches.answer(info);
            }
            watch
        });
        let _watching = Watching { store: self, instance, id };
        tokio::select! {
            biased;
            info = answer => Ok(info.ok()),
            () = sleep_until(self.clock(), deadline_ms) => Ok(None),
        }
    }

    async fn start_and_watch(&self, start: OrchestratorMessage) -> Result<InstanceInfo, ProviderError> {
        start_then_watch(self, start).await
    }
}

/// Takes a watch out of the store when its caller stops waiting, whatever the reason.
struct Watching<'a> {
    store: &'a MemoryStore,
    instance: &'a str,
    id: u64,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.store.change(|state, _| state.watches.remove(self.instance, self.id));
    }
}
