//! The whole state as a deterministic state machine: every operation takes the time and plain data,
//! checks everything, reads everything that it needs, then changes everything. No clock, no waiting and
//! no disk writes in here: changes of rows are collected for the log, and a caller is answered when the
//! log has them.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use segno::clock::duration_ms;
use segno::store::core::orchestrator_queue::{FetchedBatch, OrchestratorQueue};
use segno::store::core::peek_lock::{Attempt, Sequence, Standing};
use segno::store::core::watch::Watches;
use segno::store::core::worker_queue::{ItemLock, WorkFilter, WorkerQueue};
use segno::store::{
    FetchOrchestrationItems, FetchWorkItems, FetchedHistory, LockLife, LockToken, LockedWorkItem,
    OrchestrationItem, QueueDepths, ResidentExecutions,
};

use crate::error::RowError;
use crate::rows::checkpoint_meta::TOKENS;
use crate::rows::instance_row::InstanceRow;
use crate::rows::keys::{self, Table};
use crate::rows::queue_row;
use crate::rows::tables::{Tables, UnreadHistory};
use crate::state::leasing::Lessees;
use crate::state::pending::{HELD_MS, PendingBatches};
use crate::state::quarantine::Quarantine;
use crate::state::record_index::RecordIndex;

/// Lock tokens are reserved in blocks of this size, so that none is issued twice, whatever a crash loses.
const TOKEN_BLOCK: u64 = 1 << 32;

/// Most expired records that one call removes, so that no call pays for a burst that expires together.
const MAX_EXPIRED_PER_SWEEP: usize = 64;

/// A watch whose condition a commit has fulfilled, with the state after that commit.
#[derive(Debug)]
pub(crate) struct FulfilledWatch {
    instance: Arc<str>,
    row: Arc<InstanceRow>,
    /// Later watches are not on this state of the instance.
    newest_watch: u64,
}

/// The whole state of the store.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tables: Tables,
    pub(crate) orchestrations: OrchestratorQueue,
    pub(crate) work: WorkerQueue,
    pub(crate) records: RecordIndex,
    pub(crate) versions: Sequence,
    pub(crate) watches: Watches,
    /// WatchResult instances that the next batch changes, as the commit left them.
    pub(crate) watched: Vec<FulfilledWatch>,
    pub(crate) pending: PendingBatches,
    /// Instances whose last change is not durable, while the store refuses writes.
    pub(crate) quarantine: Quarantine,
    /// Fetches for leases that wait.
    pub(crate) lessees: Lessees,
    tokens: Sequence,
    tokens_reserved: u64,
    messages: Persisted,
    items: Persisted,
}

/// Which entries of a queue need their attempts on disk.
#[derive(Debug, Default)]
struct Persisted {
    /// Entries up to this id were there when the store was opened: one of them may be what brought it down.
    suspect_up_to: u64,
    /// Entries that have a row for it, and whether that row has a lock which outlives the process.
    stored: HashMap<u64, LockLife>,
}

impl Persisted {
    fn must_store(&self, id: u64, attempts: u32) -> bool {
        attempts > 1 || id <= self.suspect_up_to
    }

    /// Notes that an entry has a row without a lock; `false` when it had a row already.
    fn note_stored(&mut self, id: u64) -> bool {
        self.stored.insert(id, LockLife::Process).is_none()
    }
}

/// The two queues as recovery built them.
pub(crate) struct Restored {
    pub(crate) orchestrations: OrchestratorQueue,
    pub(crate) work: WorkerQueue,
    pub(crate) records: RecordIndex,
    /// Entries with a row for their state.
    pub(crate) stored_messages: HashMap<u64, LockLife>,
    pub(crate) stored_items: HashMap<u64, LockLife>,
    /// Up to where lock tokens may have been given out.
    pub(crate) tokens_reserved: u64,
    pub(crate) damage: RestoredAround,
}

/// What could not be read when the queues were restored.
#[derive(Debug, Default)]
pub(crate) struct RestoredAround {
    /// Why, once for each range.
    pub(crate) found: Vec<String>,
    /// Whether rows of a queue, or of their states, are among it.
    pub(crate) is_in_queues: bool,
}

impl Restored {
    /// These queues, if nothing of them is damaged.
    pub(crate) fn whole(self) -> Result<Self, RowError> {
        match self.damage.found.first() {
            Some(what) => Err(RowError::Corrupt(what.clone())),
            None => Ok(self),
        }
    }

    /// Queue lengths.
    pub(crate) fn queue_depths(&self) -> QueueDepths {
        queue_depths(&self.orchestrations, &self.work)
    }
}

fn queue_depths(orchestrations: &OrchestratorQueue, work: &WorkerQueue) -> QueueDepths {
    let (orchestrations, work) = (orchestrations.depths(), work.depths());
    QueueDepths {
        orchestrator_queue: orchestrations.visible,
        worker_queue: work.visible,
        orchestrator_delayed: orchestrations.delayed,
        worker_delayed: work.delayed,
        locked: orchestrations.locked + work.locked,
    }
}

/// A locked instance whose history may still have to be read. That may take long, so it is done without the lock.
#[derive(Debug)]
pub(crate) struct FetchedTurn {
    item: OrchestrationItem,
    /// Boxed, because most have none.
    unread: Option<Box<UnreadHistory>>,
}

impl FetchedTurn {
    pub(crate) fn lock_token(&self) -> LockToken {
        self.item.lock_token
    }

    /// The whole item.
    pub(crate) fn read(mut self) -> OrchestrationItem {
        if let Some(unread) = self.unread {
            self.item.history = match unread.read() {
                Ok(events) => FetchedHistory::Events(events),
                Err(error) => FetchedHistory::Unreadable(error.to_string()),
            };
        }
        self.item
    }
}

/// Whether the runtime has the execution in memory.
fn is_resident(instance: &str, row: &InstanceRow, resident: Option<&Arc<dyn ResidentExecutions>>) -> bool {
    row.current.last_event_id > 0 && resident.is_some_and(|resident| resident.holds(&row.position(instance)))
}

impl State {
    /// The state of a store that was just opened. The next batch reserves lock tokens.
    pub(crate) fn new(tables: Tables, restored: Restored, next_sequence: u64) -> Self {
        let mut state = State {
            orchestrations: OrchestratorQueue::default(),
            work: WorkerQueue::default(),
            records: RecordIndex::default(),
            versions: Sequence::default(),
            watches: Watches::default(),
            watched: Vec::new(),
            pending: PendingBatches::new(next_sequence),
            quarantine: Quarantine::default(),
            lessees: Lessees::default(),
            tokens: Sequence::after(restored.tokens_reserved),
            tokens_reserved: restored.tokens_reserved,
            messages: Persisted::default(),
            items: Persisted::default(),
            tables,
        };
        state.restart(restored);
        state.reserve_tokens();
        state
    }

    /// Takes over queues that were built from the tables.
    pub(crate) fn restart(&mut self, restored: Restored) {
        let meta = self.tables.meta;
        let persisted = |suspect_up_to, stored| Persisted { suspect_up_to, stored };
        self.orchestrations = restored.orchestrations;
        self.work = restored.work;
        self.records = restored.records;
        self.versions = Sequence::after(meta.last_record_version);
        self.messages = persisted(meta.last_message_id, restored.stored_messages);
        self.items = persisted(meta.last_item_id, restored.stored_items);
    }

    fn reserve_tokens(&mut self) {
        self.tokens_reserved += TOKEN_BLOCK;
        self.touch();
    }

    /// Writes an unchanged row, for a batch that must not be empty.
    pub(crate) fn touch(&mut self) {
        let value = Bytes::copy_from_slice(&self.tokens_reserved.to_le_bytes());
        self.tables.put(keys::meta(TOKENS), value);
    }

    /// Lets time pass: makes due work visible and ends expired locks. Precedes every other operation.
    pub(crate) fn advance(&mut self, now_ms: u64) {
        self.orchestrations.advance(now_ms);
        self.work.advance(now_ms);
        for _ in 0..MAX_EXPIRED_PER_SWEEP {
            let Ok(Some((expires_at_ms, kind, id))) = self.records.first_expired(&self.tables.rows, now_ms)
            else {
                break;
            };
            let old = match self.tables.record(&kind, &id) {
                Ok(Some(old)) if old.expires_at_ms == Some(expires_at_ms) => old,
                // A row that cannot be read stays for a reader to report, and does not keep later
                // ones from expiring.
                Err(RowError::Corrupt(_)) | Ok(_) => {
                    self.records.forget_expiry(expires_at_ms, &kind, &id);
                    continue;
                }
                Err(RowError::Unreadable(_) | RowError::NotDurable(_)) => break,
            };
            self.tables.set_record((&kind, &id), Some(&old), None);
            self.records.change((&kind, &id), Some(&old), None);
        }
        // Half a block ahead, so that a commit has made the next block durable long before it is touched.
        if self.tokens.last() + TOKEN_BLOCK / 2 > self.tokens_reserved {
            self.reserve_tokens();
        }
    }

    /// Stores the attempts of everything that is locked, for a snapshot to have them.
    pub(crate) fn store_attempts_of_locked(&mut self, now_ms: u64) {
        let messages: Vec<(u64, u32)> = self.orchestrations.locked().collect();
        for (id, attempts) in messages {
            if self.messages.note_stored(id) {
                let standing = Standing { id, visible_at_ms: now_ms, attempts };
                self.tables.put_standing(Table::OrchestratorStanding, standing);
            }
        }
        let items: Vec<(u64, u32)> = self.work.locked().collect();
        for (id, attempts) in items {
            if !self.items.stored.contains_key(&id) {
                self.store_item(Standing { id, visible_at_ms: now_ms, attempts }, None);
            }
        }
    }

    /// Locks ready instances. The answer has to wait until the batch in `depends_on` is durable.
    pub(crate) fn fetch_turns(
        &mut self,
        request: &FetchOrchestrationItems<'_>,
        now_ms: u64,
        depends_on: &mut Option<u64>,
    ) -> Vec<FetchedTurn> {
        let until_ms = now_ms.saturating_add(duration_ms(request.lock_timeout));
        // Allocated once: a list that grows makes large allocations, which come from the
        // system and go back to it every time.
        let ready = self.orchestrations.ready_count(request.filter);
        let mut items = Vec::with_capacity(request.max_items.min(ready));
        while items.len() < request.max_items
            && let Some(batch) = self.orchestrations.take_next(request.filter, until_ms, &mut self.tokens)
        {
            let mut depends = self.pending.of_instance(&batch.instance);
            let fetched = self.orchestrations.fetched(batch.lock_token);
            let unstored: Vec<_> =
                fetched.filter(|(id, attempts)| self.messages.must_store(*id, *attempts)).collect();
            for (id, attempts) in unstored {
                let standing = Standing { id, visible_at_ms: now_ms, attempts };
                self.messages.note_stored(id);
                self.tables.put_standing(Table::OrchestratorStanding, standing);
                depends = Some(self.pending.request_write());
            }
            *depends_on = depends.max(*depends_on);
            items.push(self.fetched_turn(batch, request.resident, now_ms));
        }
        items
    }

    fn fetched_turn(
        &self,
        batch: FetchedBatch,
        resident: Option<&Arc<dyn ResidentExecutions>>,
        now_ms: u64,
    ) -> FetchedTurn {
        let instance = batch.instance.as_ref();
        let row = self.tables.busy_instance(instance);
        let (history, unread) = match &row {
            Ok(Some(row)) if is_resident(instance, row, resident) => (FetchedHistory::Resident, None),
            Ok(Some(row)) if row.current.last_event_id > 0 => {
                let unread = self.tables.history(instance, row.current.execution_id);
                (FetchedHistory::Events(Vec::new()), Some(Box::new(unread)))
            }
            Ok(_) => (FetchedHistory::Events(Vec::new()), None),
            Err(error) => (FetchedHistory::Unreadable(error.to_string()), None),
        };
        let row = row.ok().flatten();
        let current = row.as_ref().map(|row| &row.current);
        let item = OrchestrationItem {
            instance: Arc::clone(&batch.instance),
            execution_id: current.map_or(1, |current| current.execution_id),
            status: current.map(|current| current.status),
            last_event_id: current.map_or(0, |current| current.last_event_id),
            orchestration_name: row.as_ref().and_then(|row| row.name.clone()),
            version: row.as_ref().and_then(|row| row.version.clone()),
            history,
            messages: batch.messages,
            lock_token: batch.lock_token,
            attempt_count: batch.attempt_count,
            fetched_at_ms: now_ms,
        };
        FetchedTurn { item, unread }
    }

    /// Locks ready activities. The answer has to wait until the batch in `depends_on` is durable.
    pub(crate) fn fetch_work(
        &mut self,
        request: &FetchWorkItems<'_>,
        now_ms: u64,
        depends_on: &mut Option<u64>,
    ) -> Vec<LockedWorkItem> {
        let until_ms = now_ms.saturating_add(duration_ms(request.lock_timeout));
        let wanted = WorkFilter { tags: request.tag_filter, session: request.session };
        let mut items = Vec::with_capacity(request.max_items.min(self.work.ready_count(&wanted)));
        while items.len() < request.max_items
            && let Some(item) = self.work.take_next(&wanted, until_ms, now_ms, &mut self.tokens)
        {
            let locked = self.work.locked_item(item.lock_token);
            let lock =
                (request.life == LockLife::Durable).then_some(ItemLock { token: item.lock_token, until_ms });
            if let Some((id, attempts)) =
                locked.filter(|&(id, attempts)| lock.is_some() || self.items.must_store(id, attempts))
            {
                self.store_item(Standing { id, visible_at_ms: now_ms, attempts }, lock);
                *depends_on = Some(self.pending.request_write());
            }
            items.push(item);
        }
        items
    }

    /// Abandons a batch of messages.
    pub(crate) fn abandon_turn(
        &mut self,
        token: LockToken,
        visible_at_ms: u64,
        attempt: Attempt,
        now_ms: u64,
    ) -> Option<()> {
        let fetched: Vec<(u64, u32)> = self.orchestrations.fetched(token).collect();
        self.orchestrations.abandon(token, visible_at_ms, attempt, now_ms)?;
        for (id, attempts) in fetched {
            let standing = Standing { id, visible_at_ms, attempts: attempt.settle(attempts) };
            self.messages.note_stored(id);
            self.tables.put_standing(Table::OrchestratorStanding, standing);
        }
        Some(())
    }

    /// Abandons an activity.
    pub(crate) fn abandon_work(
        &mut self,
        token: LockToken,
        visible_at_ms: u64,
        attempt: Attempt,
        now_ms: u64,
    ) -> Option<()> {
        let (id, attempts) = self.work.locked_item(token)?;
        self.work.abandon(token, visible_at_ms, attempt, now_ms)?;
        self.store_item(Standing { id, visible_at_ms, attempts: attempt.settle(attempts) }, None);
        Some(())
    }

    /// Makes the delayed activities of an instance ready. Returns their number. One that is not durable yet
    /// becomes ready once it is.
    pub(crate) fn expedite_work(&mut self, instance: &str, now_ms: u64) -> u64 {
        let mut expedited = 0;
        for item in self.work.delayed_of(instance) {
            let was_delayed = match item.visible_at_ms {
                HELD_MS => self.pending.expedite_held(item.id, now_ms),
                visible_at_ms => {
                    self.work.reschedule(item.id, visible_at_ms, now_ms, now_ms);
                    true
                }
            };
            if was_delayed {
                self.store_item(Standing { visible_at_ms: now_ms, ..item }, None);
                expedited += 1;
            }
        }
        expedited
    }

    /// Stores the state of an activity, with its lock if that outlives the process.
    pub(crate) fn store_item(&mut self, standing: Standing, lock: Option<ItemLock>) {
        let life = if lock.is_some() { LockLife::Durable } else { LockLife::Process };
        let key = keys::queued(Table::WorkerStanding, standing.id);
        let row = queue_row::encode_standing(standing, lock);
        match self.items.stored.insert(standing.id, life) {
            None => self.tables.insert_new(key, row),
            Some(_) => self.tables.put(key, row),
        }
    }

    /// Whether the lock on an activity outlives the process.
    pub(crate) fn life_of(&self, item_id: u64) -> LockLife {
        self.items.stored.get(&item_id).copied().unwrap_or_default()
    }

    /// A new lock token.
    pub(crate) fn take_token(&mut self) -> LockToken {
        LockToken(self.tokens.take())
    }

    /// Whether an activity was delivered before, or was there when the store was opened: it may have to do with a crash.
    pub(crate) fn is_suspect(&self, token: LockToken) -> bool {
        self.work.locked_item(token).is_some_and(|(id, attempts)| self.items.must_store(id, attempts))
    }

    /// Removes the rows of messages that left the queue for good.
    pub(crate) fn forget_messages(&mut self, ids: impl IntoIterator<Item = u64>) {
        for id in ids {
            self.tables.delete(keys::queued(Table::OrchestratorQueue, id));
            if self.messages.stored.remove(&id).is_some() {
                self.tables.delete(keys::queued(Table::OrchestratorStanding, id));
            }
        }
    }

    /// Removes the rows of activities that left the queue for good.
    pub(crate) fn forget_items(&mut self, ids: impl IntoIterator<Item = u64>) {
        for id in ids {
            self.tables.delete(keys::queued(Table::WorkerQueue, id));
            if self.items.stored.remove(&id).is_some() {
                self.tables.delete(keys::queued(Table::WorkerStanding, id));
            }
        }
    }

    /// Records that the instance of a commit is part of the next batch. Watches are answered once that is durable.
    pub(crate) fn committed(&mut self, instance: &Arc<str>, row: &Arc<InstanceRow>) {
        self.pending.touch(instance);
        self.orchestrations.set_pin(instance, row.current.pinned_version.as_ref());
        // Later watches read the row.
        if self.watches.has_met(instance, |until| row.meets(until)) {
            let newest_watch = self.watches.newest();
            self.watched.push(FulfilledWatch {
                instance: Arc::clone(instance),
                row: Arc::clone(row),
                newest_watch,
            });
        }
    }

    /// A batch is durable: its messages become visible, and its watches are answered.
    pub(crate) fn synced(&mut self, watched: &[FulfilledWatch], now_ms: u64) {
        let Some(stage) = self.pending.end_write() else { return };
        for (message_id, visible_at_ms) in stage.messages {
            self.orchestrations.reschedule(message_id, HELD_MS, visible_at_ms, now_ms);
        }
        for (item_id, visible_at_ms) in stage.items {
            self.work.reschedule(item_id, HELD_MS, visible_at_ms, now_ms);
        }
        self.leases_synced(stage.leased, now_ms);
        for FulfilledWatch { instance, row, newest_watch } in watched {
            self.watches.answer_met(instance, *newest_watch, |until| row.meets(until), || row.info(instance));
        }
    }

    /// Queue lengths.
    pub(crate) fn queue_depths(&self) -> QueueDepths {
        queue_depths(&self.orchestrations, &self.work)
    }
}
