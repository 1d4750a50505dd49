//! The first facet: the two queues, histories, the turn commit, and watches.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use segno::clock::{deadline_ms, sleep, sleep_until};
use segno::store::{
    AckOrchestrationItem, AckWorkItem, DispatcherCapabilityFilter, ErrorKind, ExecutionPosition,
    FetchOrchestrationItems, FetchWorkItems, FetchedHistory, InstanceInfo, LockLife, LockToken,
    LockedWorkItem, NextExecution, OrchestrationItem, OrchestratorMessage, Provider, ProviderAdmin,
    ProviderError, ResidentExecutions, SessionClaims, SessionFetchConfig, StoredEvent, TagFilter,
    TagPrefixes, WatchUntil, WorkerMessage, start_then_watch,
};
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::answer::{LockedTurn, body, get, stored_event};
use crate::columns::lane;
use crate::core::{Core, closed};
use crate::fetch::{Ask, Queue};
use crate::fetches::{SessionWish, TurnWish, WorkWish};
use crate::item::{GiveBack, Item};
use crate::number::{bits, span, unsigned};
use crate::records::check_keys;
use crate::version_key::version_key;
use crate::waiting::Held;

const TURNS: Queue<TurnWish, LockedTurn> = Queue {
    operation: "fetch_orchestration_items",
    fetches: |waiting| &mut waiting.turns,
    give_back: Item::GiveBackTurn,
};

const WORK: Queue<WorkWish, LockedWorkItem> = Queue {
    operation: "fetch_work_items",
    fetches: |waiting| &mut waiting.work,
    give_back: Item::GiveBackActivity,
};

fn pins(filter: &DispatcherCapabilityFilter) -> (Vec<String>, Vec<String>) {
    let ranges = filter.supported_versions.iter();
    ranges.map(|range| (version_key(&range.min), version_key(&range.max))).unzip()
}

/// The lanes of a filter; `None` for all of them. `*` stands before the beginning of lanes that are
/// wanted, `!` before a lane that is left out of those, and `~` before the beginning of lanes that
/// are left out.
fn lanes(tags: &TagFilter) -> Option<Vec<String>> {
    match tags {
        TagFilter::Any => None,
        TagFilter::None => Some(Vec::new()),
        TagFilter::DefaultOnly => Some(vec![lane(None)]),
        TagFilter::Tags(tags) => Some(tags.iter().map(|tag| lane(Some(tag))).collect()),
        TagFilter::Prefixes(TagPrefixes { prefixes, except, except_prefixes }) => {
            let sets = [('*', prefixes), ('!', except), ('~', except_prefixes)];
            let marked = |(mark, tags)| marked_lanes(mark, tags);
            Some(sets.into_iter().flat_map(marked).collect())
        }
        TagFilter::DefaultAnd(tags) => {
            Some(std::iter::once(lane(None)).chain(tags.iter().map(|tag| lane(Some(tag)))).collect())
        }
    }
}

fn marked_lanes(mark: char, tags: &BTreeSet<String>) -> impl Iterator<Item = String> + '_ {
    tags.iter().map(move |tag| format!("{mark}{}", lane(Some(tag))))
}

fn session_wish(config: &SessionFetchConfig) -> SessionWish {
    SessionWish {
        owner: config.owner_id.clone(),
        lock_ms: span(config.lock_timeout),
        claims: config.claims == SessionClaims::Allowed,
    }
}

impl LockedTurn {
    fn is_resident(&self, resident: Option<&Arc<dyn ResidentExecutions>>) -> bool {
        self.last_event_id > 0
            && resident.is_some_and(|resident| {
                resident.holds(&ExecutionPosition {
                    instance: &self.instance,
                    execution_id: self.execution_id,
                    incarnation: self.incarnation,
                    last_event_id: self.last_event_id,
                })
            })
    }

    fn with_history(self, history: FetchedHistory) -> OrchestrationItem {
        OrchestrationItem {
            instance: self.instance.into(),
            orchestration_name: self.orchestration_name.map(Arc::from),
            version: self.version.map(Arc::from),
            execution_id: self.execution_id,
            status: self.status,
            last_event_id: self.last_event_id,
            history,
            messages: self.messages,
            lock_token: self.lock_token,
            attempt_count: self.attempt_count,
            fetched_at_ms: self.fetched_at_ms,
        }
    }
}

impl PostgresStore {
    /// Commits an item for which no versions matter.
    async fn commit(&self, item: Item) -> Result<(), ProviderError> {
        self.core().commit(item).await.map(|_versions| ())
    }

    pub(crate) async fn events(
        &self,
        operation: &'static str,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT e.event_id, e.data FROM {schema}.event e WHERE e.instance_id = $1
                AND e.execution_id = coalesce($2, (SELECT i.execution_id FROM {schema}.instance i
                                                    WHERE i.instance_id = $1))
              ORDER BY e.event_id"
        );
        let execution = execution_id.map(bits);
        let rows =
            self.core().rows(operation, &sql, &[(&instance, Type::TEXT), (&execution, Type::INT8)]).await?;
        rows.iter().map(stored_event).collect()
    }

    /// Histories of locked executions, by token.
    async fn histories(
        &self,
        turns: &[&LockedTurn],
    ) -> Result<HashMap<LockToken, Vec<StoredEvent>>, ProviderError> {
        let mut histories: HashMap<LockToken, Vec<StoredEvent>> = HashMap::new();
        if turns.is_empty() {
            return Ok(histories);
        }
        let sql = format!(
            "SELECT k.token, e.event_id, e.data
               FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS k(token, instance_id, execution_id)
               JOIN {}.event e ON e.instance_id = k.instance_id AND e.execution_id = k.execution_id
              ORDER BY k.token, e.event_id",
            self.core().schema()
        );
        let tokens: Vec<i64> = turns.iter().map(|turn| bits(turn.lock_token.0)).collect();
        let instances: Vec<&str> = turns.iter().map(|turn| turn.instance.as_str()).collect();
        let executions: Vec<i64> = turns.iter().map(|turn| bits(turn.execution_id)).collect();
        let parameters = [
            (&tokens as _, Type::INT8_ARRAY),
            (&instances as _, Type::TEXT_ARRAY),
            (&executions as _, Type::INT8_ARRAY),
        ];
        for row in &self.core().rows(TURNS.operation, &sql, &parameters).await? {
            let token = LockToken(unsigned(get(row, 0)?));
            let event = StoredEvent { event_id: unsigned(get(row, 1)?), data: body(row, 2)? };
            histories.entry(token).or_default().push(event);
        }
        Ok(histories)
    }
}

#[async_trait]
impl Provider for PostgresStore {
    fn name(&self) -> &str {
        "postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn joins_turns(&self) -> bool {
        true
    }

    async fn now_ms(&self) -> Result<u64, ProviderError> {
        if let Some(now_ms) = self.core().recent_now_ms() {
            return Ok(now_ms);
        }
        let sql = format!("SELECT {}.now_ms()", self.core().schema());
        let rows = self.core().rows("now_ms", &sql, &[]).await?;
        rows.first().map_or(Ok(0), |row| get(row, 0).map(unsigned))
    }

    async fn fetch_orchestration_items(
        &self,
        request: FetchOrchestrationItems<'_>,
    ) -> Result<Vec<OrchestrationItem>, ProviderError> {
        if request.max_items == 0 {
            return Ok(Vec::new());
        }
        let wish = TurnWish { lock_ms: span(request.lock_timeout), pins: request.filter.map(pins) };
        let ask = Ask { wish, max_items: request.max_items, poll_timeout: request.poll_timeout };
        let lease = self.core().fetch(&TURNS, ask).await?;
        let residents: Vec<bool> =
            lease.items().iter().map(|turn| turn.is_resident(request.resident)).collect();
        let needs_history =
            |(turn, is_resident): &(&LockedTurn, &bool)| turn.last_event_id > 0 && !**is_resident;
        let missing: Vec<&LockedTurn> =
            lease.items().iter().zip(&residents).filter(needs_history).map(|(turn, _)| turn).collect();
        let mut histories = self.histories(&missing).await?;
        let with_history = |(turn, is_resident): (LockedTurn, bool)| {
            let history = if is_resident {
                FetchedHistory::Resident
            } else {
                FetchedHistory::Events(histories.remove(&turn.lock_token).unwrap_or_default())
            };
            turn.with_history(history)
        };
        Ok(lease.take().into_iter().zip(residents).map(with_history).collect())
    }

    async fn ack_orchestration_item(&self, turn: Arc<AckOrchestrationItem>) -> Result<(), ProviderError> {
        check_keys("ack_orchestration_item", &turn.records)?;
        self.commit(Item::Turn(turn)).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let delay_ms = span(delay.unwrap_or_default());
        self.commit(Item::GiveBackTurn(GiveBack { token: lock_token, delay_ms, ignore_attempt })).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.commit(Item::RenewTurn { token: lock_token, for_ms: span(extend_for) }).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<StoredEvent>, ProviderError> {
        self.events("read", instance, None).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        self.events("read_with_execution", instance, Some(execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<StoredEvent>,
    ) -> Result<(), ProviderError> {
        self.commit(Item::Append { instance: instance.to_owned(), execution_id, events: new_events }).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        message: OrchestratorMessage,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.commit(Item::Message { message, delay_ms: delay.map(span) }).await
    }

    async fn begin_next_execution(&self, next: NextExecution) -> Result<(), ProviderError> {
        self.begin_next(next).await
    }

    async fn enqueue_for_worker(&self, message: WorkerMessage) -> Result<(), ProviderError> {
        self.commit(Item::Activity(message)).await
    }

    async fn fetch_work_items(
        &self,
        request: FetchWorkItems<'_>,
    ) -> Result<Vec<LockedWorkItem>, ProviderError> {
        if request.max_items == 0 {
            return Ok(Vec::new());
        }
        if *request.tag_filter == TagFilter::None {
            sleep(self.core().clock(), request.poll_timeout).await;
            return Ok(Vec::new());
        }
        let wish = WorkWish {
            lock_ms: span(request.lock_timeout),
            lanes: lanes(request.tag_filter),
            session: request.session.map(session_wish),
        };
        let ask = Ask { wish, max_items: request.max_items, poll_timeout: request.poll_timeout };
        Ok(self.core().fetch(&WORK, ask).await?.take())
    }

    async fn ack_work_item(&self, ack: AckWorkItem) -> Result<(), ProviderError> {
        check_keys("ack_work_item", &ack.records)?;
        self.commit(Item::Work(ack)).await
    }

    async fn renew_work_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
        _life: LockLife,
    ) -> Result<(), ProviderError> {
        self.commit(Item::RenewActivity { token: lock_token, for_ms: span(extend_for) }).await
    }

    async fn abandon_work_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let delay_ms = span(delay.unwrap_or_default());
        self.commit(Item::GiveBackActivity(GiveBack { token: lock_token, delay_ms, ignore_attempt })).await
    }

    async fn lost_work_items(&self, lock_tokens: &[LockToken]) -> Result<Vec<LockToken>, ProviderError> {
        if lock_tokens.is_empty() {
            return Ok(Vec::new());
        }
        let schema = self.core().schema();
        let sql = format!(
            "SELECT k.token FROM unnest($1, $2) WITH ORDINALITY AS k(token, id, place)
               LEFT JOIN {schema}.activity a ON a.lock_token = k.token AND a.next_at_ms > {schema}.now_ms()
                AND a.id = coalesce(k.id, (SELECT b.id FROM {schema}.activity b WHERE b.lock_token = k.token))
              WHERE a.id IS NULL ORDER BY k.place"
        );
        let tokens: Vec<i64> = lock_tokens.iter().map(|token| bits(token.0)).collect();
        let rows: Vec<Option<i64>> = {
            let waiting = self.core().waiting();
            lock_tokens.iter().map(|token| waiting.held(*token).and_then(Held::activity)).collect()
        };
        let parameters = [(&tokens as _, Type::INT8_ARRAY), (&rows as _, Type::INT8_ARRAY)];
        let rows = self.core().rows("lost_work_items", &sql, &parameters).await?;
        rows.iter().map(|row| Ok(LockToken(get::<i64>(row, 0)?.cast_unsigned()))).collect()
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "WITH moment AS MATERIALIZED (SELECT {schema}.now_ms() AS at), mine AS (
                 SELECT s.session_id FROM {schema}.session s, moment
                  WHERE s.owner = ANY ($1) AND s.until_ms > moment.at AND moment.at - s.last_activity_ms < $3
                  ORDER BY s.session_id FOR UPDATE OF s)
             UPDATE {schema}.session s SET until_ms = moment.at + $2 FROM mine, moment
              WHERE s.session_id = mine.session_id RETURNING 1"
        );
        let (extend_ms, idle_ms) = (span(extend_for), span(idle_timeout));
        let parameters =
            [(&owner_ids as _, Type::TEXT_ARRAY), (&extend_ms as _, Type::INT8), (&idle_ms as _, Type::INT8)];
        Ok(self.core().rows("renew_session_lock", &sql, &parameters).await?.len())
    }

    async fn cleanup_orphaned_sessions(&self) -> Result<usize, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "WITH moment AS MATERIALIZED (SELECT {schema}.now_ms() AS at), idle AS (
                 SELECT s.session_id FROM {schema}.session s, moment
                  WHERE s.until_ms <= moment.at
                    AND NOT EXISTS (SELECT 1 FROM {schema}.activity a WHERE a.session_id = s.session_id)
                  ORDER BY s.session_id LIMIT 1000 FOR UPDATE OF s SKIP LOCKED)
             DELETE FROM {schema}.session s USING idle WHERE s.session_id = idle.session_id RETURNING 1"
        );
        let rows = self.core().rows("cleanup_orphaned_sessions", &sql, &[]).await?;
        Ok(rows.len())
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<Bytes>, u64)>, ProviderError> {
        let sql = format!(
            "SELECT i.custom_status, i.custom_status_version FROM {}.instance i
              WHERE i.instance_id = $1 AND i.custom_status_version > $2",
            self.core().schema()
        );
        let seen = i64::try_from(last_seen_version).unwrap_or(i64::MAX);
        let parameters = [(&instance as _, Type::TEXT), (&seen as _, Type::INT8)];
        let rows = self.core().rows("get_custom_status", &sql, &parameters).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let status: Option<&[u8]> = get(row, 0)?;
        Ok(Some((status.map(Bytes::copy_from_slice), unsigned(get(row, 1)?))))
    }

    async fn watch_instance(
        &self,
        instance: &str,
        until: WatchUntil,
        timeout: Duration,
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        if timeout.is_zero() {
            return match self.get_instance_info(instance).await {
                Ok(info) => Ok(Some(info).filter(|info| until.is_met(info))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
        }
        let core = self.core();
        let deadline_ms = deadline_ms(core.clock(), timeout);
        let (id, answer) = {
            let mut waiting = core.waiting();
            if waiting.is_closed {
                return Err(closed("watch_instance"));
            }
            waiting.begin_watch(instance, until);
            core.wake_exchanger(&waiting);
            waiting.watches.add(Arc::from(instance), until)
        };
        let _watching = Watching { core, instance, until, id };
        tokio::select! {
            biased;
            info = answer => info.map(Some).map_err(|_| closed("watch_instance")),
            () = sleep_until(core.clock(), deadline_ms) => Ok(None),
        }
    }

    async fn start_and_watch(&self, start: OrchestratorMessage) -> Result<InstanceInfo, ProviderError> {
        start_then_watch(self, start).await
    }
}

/// Takes a watch out of the store when its caller stops waiting, whatever the reason.
struct Watching<'a> {
    core: &'a Core,
    instance: &'a str,
    until: WatchUntil,
    id: u64,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let mut waiting = self.core.waiting();
        waiting.watches.remove(self.instance, self.id);
        waiting.end_watch(self.instance, self.until);
    }
}
