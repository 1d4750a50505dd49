//! The first facet: the two queues, histories, the turn commit, and watches.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use segno::clock::{deadline_ms, duration_ms, sleep_until};
use segno::store::core::demand::{TurnDemand, WorkDemand};
use segno::store::core::peek_lock::Attempt;
use segno::store::core::worker_queue::ItemLock;
use segno::store::{
    AckOrchestrationItem, AckWorkItem, FetchOrchestrationItems, FetchWorkItems, InstanceInfo, LockLife,
    LockToken, LockedWorkItem, NextExecution, OrchestrationItem, OrchestratorMessage, Provider,
    ProviderError, StoredEvent, TagFilter, WatchUntil, WorkerMessage,
};

use crate::commit::refusal::Refusal;
use crate::commit::waiting::{AcquiredLock, Fetch, FetchBatch, Fetched, WatchResult, durable};
use crate::state::leasing::{LeaseTerms, Renewal};
use crate::state::machine::{FetchedTurn, State};
use crate::store::EmbeddedStore;

fn after(now_ms: u64, duration: Duration) -> u64 {
    now_ms.saturating_add(duration_ms(duration))
}

/// What a fetch for leases takes while it waits. Only named tags: work for all workers is
/// locked once it is durable.
fn lease_terms(request: &FetchWorkItems<'_>) -> Option<Arc<LeaseTerms>> {
    let FetchWorkItems { max_items, lock_timeout, life, .. } = *request;
    match request.tag_filter {
        TagFilter::Tags(tags) if life == LockLife::Durable => {
            Some(Arc::new(LeaseTerms { tags: tags.clone(), max_items, lock_timeout }))
        }
        _ => None,
    }
}

fn attempt(ignore_attempt: bool) -> Attempt {
    if ignore_attempt { Attempt::Ignored } else { Attempt::Counts }
}

#[async_trait]
impl Provider for EmbeddedStore {
    fn name(&self) -> &str {
        "embedded"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn now_ms(&self) -> Result<u64, ProviderError> {
        Ok(self.core().clock.now_ms())
    }

    async fn fetch_orchestration_items(
        &self,
        request: FetchOrchestrationItems<'_>,
    ) -> Result<Vec<OrchestrationItem>, ProviderError> {
        if request.max_items == 0 {
            return Ok(Vec::new());
        }
        let FetchOrchestrationItems { max_items, lock_timeout, poll_timeout, filter, resident } = request;
        let (filter, resident) = (filter.cloned(), resident.cloned());
        let fetch = Fetch {
            operation: "fetch_orchestration_items",
            demand: TurnDemand { filter: filter.clone() },
            poll_timeout,
            lease: None,
            attempt: move |state: &mut State, now_ms| {
                let (filter, resident) = (filter.as_ref(), resident.as_ref());
                let request =
                    FetchOrchestrationItems { max_items, lock_timeout, poll_timeout, filter, resident };
                let mut depends_on = None;
                let items = state.fetch_turns(&request, now_ms, &mut depends_on);
                Ok(FetchBatch { items, depends_on })
            },
        };
        Ok(self.core().wait_for(fetch).await?.into_iter().map(FetchedTurn::read).collect())
    }

    async fn ack_orchestration_item(&self, turn: Arc<AckOrchestrationItem>) -> Result<(), ProviderError> {
        self.core().commit("ack_orchestration_item", move |state, now_ms| state.ack_turn(&turn, now_ms)).await
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
        const OPERATION: &str = "abandon_orchestration_item";
        let abandon = self.core().commit(OPERATION, move |state, now_ms| {
            let visible_at_ms = after(now_ms, delay.unwrap_or_default());
            let abandoned = state.abandon_turn(lock_token, visible_at_ms, attempt(ignore_attempt), now_ms);
            abandoned.ok_or_else(|| ProviderError::lock_lost(OPERATION))
        });
        abandon.await
    }

    async fn renew_orchestration_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let renewed = self
            .core()
            .change(|state, now_ms| state.orchestrations.renew(lock_token, after(now_ms, extend_for)));
        renewed.ok_or_else(|| ProviderError::lock_lost("renew_orchestration_item_lock"))
    }

    async fn read(&self, instance: &str) -> Result<Vec<StoredEvent>, ProviderError> {
        const OPERATION: &str = "read";
        let read = |state: &mut State, _| {
            let row = state.instance(instance)?;
            Ok(row.map(|row| state.tables.history(instance, row.current.execution_id)))
        };
        match self.core().look(OPERATION, read).await? {
            Some(history) => history.read().map_err(|error| error.at(OPERATION)),
            None => Ok(Vec::new()),
        }
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        const OPERATION: &str = "read_with_execution";
        let read = |state: &mut State, _| {
            state.quarantine.check(instance)?;
            Ok(state.tables.history(instance, execution_id))
        };
        self.core().look(OPERATION, read).await?.read().map_err(|error| error.at(OPERATION))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<StoredEvent>,
    ) -> Result<(), ProviderError> {
        let append = |state: &mut State, now_ms| state.append(instance, execution_id, new_events, now_ms);
        self.core().commit_here("append_with_execution", append).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        mut message: OrchestratorMessage,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let enqueue = move |state: &mut State, now_ms| {
            if let Some(delay) = delay {
                message.visible_at_ms = Some(after(now_ms, delay));
            }
            state.enqueue(message, now_ms)
        };
        self.core().commit("enqueue_for_orchestrator", enqueue).await
    }

    async fn begin_next_execution(&self, next: NextExecution) -> Result<(), ProviderError> {
        let begin = move |state: &mut State, now_ms| state.begin_next(next, now_ms);
        self.core().commit("begin_next_execution", begin).await
    }

    async fn enqueue_for_worker(&self, message: WorkerMessage) -> Result<(), ProviderError> {
        let enqueue = move |state: &mut State, now_ms| {
            state.enqueue_work(message, now_ms);
            Ok(())
        };
        self.core().commit("enqueue_for_worker", enqueue).await
    }

    async fn fetch_work_items(
        &self,
        request: FetchWorkItems<'_>,
    ) -> Result<Vec<LockedWorkItem>, ProviderError> {
        if request.max_items == 0 {
            return Ok(Vec::new());
        }
        let FetchWorkItems { max_items, lock_timeout, poll_timeout, session, tag_filter, life } = request;
        let lease = lease_terms(&request);
        let (session, tags) = (session.cloned(), tag_filter.clone());
        let fetch = Fetch {
            operation: "fetch_work_items",
            demand: WorkDemand { tags: tags.clone(), session: session.clone() },
            poll_timeout,
            lease,
            attempt: move |state: &mut State, now_ms| {
                let (session, tag_filter) = (session.as_ref(), &tags);
                let request =
                    FetchWorkItems { max_items, lock_timeout, poll_timeout, session, tag_filter, life };
                let mut depends_on = None;
                let items = state.fetch_work(&request, now_ms, &mut depends_on);
                Ok(FetchBatch { items, depends_on })
            },
        };
        self.core().wait_for(fetch).await
    }

    async fn ack_work_item(&self, ack: AckWorkItem) -> Result<(), ProviderError> {
        self.core().commit("ack_work_item", move |state, now_ms| state.ack_work(ack, now_ms)).await
    }

    async fn renew_work_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
        life: LockLife,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "renew_work_item_lock";
        let lock = move |now_ms| ItemLock { token: lock_token, until_ms: after(now_ms, extend_for) };
        let lost = || ProviderError::lock_lost(OPERATION);
        let renewed = self.core().change(|state, now_ms| state.renew_work(lock(now_ms), life, now_ms));
        match renewed.ok_or_else(lost)? {
            Renewal::Done => Ok(()),
            Renewal::ByCommit => {
                let renew =
                    move |state: &mut State, now_ms| state.renew_lease(lock(now_ms), now_ms).ok_or_else(lost);
                self.core().commit(OPERATION, renew).await
            }
        }
    }

    async fn abandon_work_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "abandon_work_item";
        let abandon = self.core().commit(OPERATION, move |state, now_ms| {
            let visible_at_ms = after(now_ms, delay.unwrap_or_default());
            let abandoned = state.abandon_work(lock_token, visible_at_ms, attempt(ignore_attempt), now_ms);
            abandoned.ok_or_else(|| ProviderError::lock_lost(OPERATION))
        });
        abandon.await
    }

    async fn lost_work_items(&self, lock_tokens: &[LockToken]) -> Result<Vec<LockToken>, ProviderError> {
        // Not a mere look: a lock that has run out must have ended for the answer to be right.
        Ok(self.core().change(|state, _| {
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
        Ok(self.core().change(|state, now_ms| {
            let active = |last_activity_ms: u64| now_ms.saturating_sub(last_activity_ms) < idle_ms;
            let (sessions, until_ms) = (state.work.sessions_mut(), after(now_ms, extend_for));
            owner_ids.iter().map(|owner| sessions.renew(owner, until_ms, active)).sum()
        }))
    }

    async fn cleanup_orphaned_sessions(&self) -> Result<usize, ProviderError> {
        Ok(self.core().change(|state, _| state.work.sessions_mut().remove_orphaned()))
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<Bytes>, u64)>, ProviderError> {
        let row = self.core().look("get_custom_status", |state, _| state.instance(instance)).await?;
        let news = row.filter(|row| row.custom_status_version > last_seen_version);
        Ok(news.map(|row| (row.custom_status, row.custom_status_version)))
    }

    async fn watch_instance(
        &self,
        instance: &str,
        until: WatchUntil,
        timeout: Duration,
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        const OPERATION: &str = "watch_instance";
        let deadline_ms = deadline_ms(&*self.core().clock, timeout);
        let (id, answer) = match self.core().watch(OPERATION, Arc::from(instance), until).await? {
            WatchResult::Fulfilled { info, outcome } => {
                durable(OPERATION, outcome).await?;
                return Ok(Some(*info));
            }
            WatchResult::Registered { id, answer } => (id, answer),
        };
        let mut watching = Watching { store: self, instance, id: Some(id) };
        tokio::select! {
            biased;
            info = answer => {
                // The answer has removed the watch.
                watching.id = None;
                info.map(Some).map_err(|_| Refusal::closed().at(OPERATION))
            }
            () = sleep_until(&*self.core().clock, deadline_ms) => Ok(None),
        }
    }

    async fn start_and_watch(&self, start: OrchestratorMessage) -> Result<InstanceInfo, ProviderError> {
        let instance: Arc<str> = Arc::from(start.instance.as_str());
        if let Some(info) = self.core().start(&instance, start).await? {
            return Ok(info);
        }
        loop {
            let watch = self.watch_instance(&instance, WatchUntil::Terminal, Duration::MAX);
            if let Some(info) = watch.await? {
                return Ok(info);
            }
        }
    }
}

impl Fetched for FetchedTurn {
    fn lock(&self) -> Option<AcquiredLock> {
        Some(AcquiredLock::Turn(self.lock_token()))
    }
}

impl Fetched for LockedWorkItem {
    fn lock(&self) -> Option<AcquiredLock> {
        Some(AcquiredLock::Work(self.lock_token))
    }

    fn leased(state: &mut State, lessee: u64) -> Option<FetchBatch<Self>> {
        let (items, batch) = state.take_leased(lessee)?;
        Some(FetchBatch { items, depends_on: Some(batch) })
    }
}

/// Takes a watch out of the store when its caller stops waiting, whatever the reason.
struct Watching<'a> {
    store: &'a EmbeddedStore,
    instance: &'a str,
    /// `None` when it has been taken out.
    id: Option<u64>,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.store.core().lock().state.watches.remove(self.instance, id);
        }
    }
}
