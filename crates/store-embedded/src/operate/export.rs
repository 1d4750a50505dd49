//! An export: the rows of a snapshot as content, in the order of a transfer. At any time one history is in memory, and how
//! those messages and activities that were abandoned.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;
use segno::store::core::peek_lock::Standing;
use segno::store::{
    ContentHeader, ContentItem, ExecutionContent, Export, InstanceContent, MessageContent, ProviderError,
    StoredEvent, WorkItemContent,
};

use crate::checkpoint::snapshot::StoreSnapshot;
use crate::error::RowError;
use crate::rows::instance_row::{ExecutionRow, InstanceRow};
use crate::rows::keys::{self, Key, Table};
use crate::rows::queue_row::{self, RecordRow};
use crate::rows::view::ViewWalk;

/// Most items in one batch.
const MAX_BATCH_ITEMS: usize = 1_000;

/// Size at which a batch ends.
const BATCH_BYTES: usize = 1024 * 1024;

/// Which records an export has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Those that live at the moment of the export.
    LeaveOut,
    /// All that are stored.
    Keep,
}

/// An export under way.
pub(crate) struct SnapshotExport {
    items: SnapshotItems,
}

impl SnapshotExport {
    /// An export of a snapshot, seen from its own moment.
    pub(crate) fn new(taken: StoreSnapshot) -> Result<Self, RowError> {
        let at_ms = taken.at_ms;
        let meta = taken.view.meta;
        let header = ContentHeader {
            taken_at_ms: at_ms,
            last_message_id: meta.last_message_id,
            last_work_item_id: meta.last_item_id,
            last_record_version: meta.last_record_version,
        };
        Ok(SnapshotExport { items: SnapshotItems::new(taken, header, Expired::LeaveOut)? })
    }

    /// Everything in a snapshot, seen from the moment of a header.
    pub(crate) fn of(taken: StoreSnapshot, header: ContentHeader) -> Result<Self, RowError> {
        Ok(SnapshotExport { items: SnapshotItems::new(taken, header, Expired::Keep)? })
    }

    /// The next items; empty at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Vec<ContentItem>, RowError> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < MAX_BATCH_ITEMS && bytes < BATCH_BYTES {
            let Some(item) = self.items.next_item()? else { break };
            bytes += item.size_bytes();
            batch.push(item);
        }
        Ok(batch)
    }
}

#[async_trait]
impl Export for SnapshotExport {
    async fn next_items(&mut self) -> Result<Vec<ContentItem>, ProviderError> {
        // Reading is quick but never waits, so others are let in between two batches.
        tokio::task::yield_now().await;
        self.next_batch().map_err(|error| error.at("export"))
    }
}

/// All items, one after the other.
struct SnapshotItems {
    taken: StoreSnapshot,
    header: ContentHeader,
    expired: Expired,
    /// Beginnings of the keys that are still to be walked.
    sections: VecDeque<Key>,
    section: Option<Section>,
    instance: Option<ExportedInstance>,
    messages: HashMap<u64, Standing>,
    activities: HashMap<u64, Standing>,
    /// Until when instances are held back.
    held: HashMap<String, u64>,
}

/// Rows that are being walked.
struct Section {
    table: Table,
    rows: ViewWalk,
}

/// An instance whose executions and events are being given.
struct ExportedInstance {
    id: String,
    row: InstanceRow,
    earlier: ViewWalk,
    current: Option<ExecutionRow>,
    events: VecDeque<StoredEvent>,
    executions_left: u64,
}

/// The tables before the records, in the order of a transfer.
const TABLES: [Table; 3] = [Table::Instances, Table::OrchestratorQueue, Table::WorkerQueue];

impl SnapshotItems {
    fn new(taken: StoreSnapshot, header: ContentHeader, expired: Expired) -> Result<Self, RowError> {
        let messages = standings(&taken, Table::OrchestratorStanding)?;
        let activities = standings(&taken, Table::WorkerStanding)?;
        let mut held = HashMap::new();
        let mut later: Vec<&Standing> =
            messages.values().filter(|standing| standing.visible_at_ms > header.taken_at_ms).collect();
        later.sort_unstable_by_key(|standing| standing.id);
        for standing in later {
            if let Some(row) = taken.view.rows.get(&keys::queued(Table::OrchestratorQueue, standing.id))? {
                held.insert(queue_row::decode_message(&row)?.instance, standing.visible_at_ms);
            }
        }
        let mut sections: VecDeque<Key> = TABLES.into_iter().map(keys::table).collect();
        sections.extend(record_kinds(&taken)?.iter().map(|kind| keys::record(kind, "")));
        Ok(SnapshotItems {
            taken,
            header,
            expired,
            sections,
            section: None,
            instance: None,
            messages,
            activities,
            held,
        })
    }

    fn next_item(&mut self) -> Result<Option<ContentItem>, RowError> {
        let Some(mut section) = self.section.take() else {
            self.section = Some(Section { table: Table::Meta, rows: ViewWalk::nowhere() });
            return Ok(Some(ContentItem::Header(self.header)));
        };
        let item = loop {
            if let Some(instance) = &mut self.instance {
                if let Some(item) = instance.next_item(&self.taken)? {
                    break Some(item);
                }
                self.instance = None;
            }
            if let Some(row) = section.rows.next() {
                match self.item(section.table, row?)? {
                    Some(item) => break Some(item),
                    None => continue,
                }
            }
            let Some(prefix) = self.sections.pop_front() else { break None };
            let table = TABLES.into_iter().find(|table| keys::table(*table) == prefix);
            section = Section { table: table.unwrap_or(Table::Records), rows: self.taken.view.walk(&prefix) };
        };
        self.section = Some(section);
        Ok(item)
    }

    /// What a row is; `None` when it is left out.
    fn item(&mut self, table: Table, row: (Key, Bytes)) -> Result<Option<ContentItem>, RowError> {
        let (key, value) = row;
        let unreadable = || RowError::Corrupt(format!("a key of table {} does not decode", key[0]));
        match table {
            Table::Instances => {
                let id = keys::instance_id(&key).ok_or_else(unreadable)?;
                let instance = ExportedInstance::new(&self.taken, id, InstanceRow::decode(&value)?);
                let item = ContentItem::Instance(Box::new(instance.content()));
                self.instance = Some(instance);
                Ok(Some(item))
            }
            Table::OrchestratorQueue => {
                let id = keys::queued_id(table, &key).ok_or_else(unreadable)?;
                Ok(Some(self.message(id, queue_row::decode_message(&value)?)))
            }
            Table::WorkerQueue => {
                let id = keys::queued_id(table, &key).ok_or_else(unreadable)?;
                let (message, visible_at_ms) = queue_row::decode_activity(&value)?;
                let standing = self.activities.get(&id).copied();
                let standing = standing.unwrap_or(Standing { id, visible_at_ms, attempts: 0 });
                let item = WorkItemContent::standing(standing, message, self.header.taken_at_ms);
                Ok(Some(ContentItem::WorkItem(Box::new(item))))
            }
            _ => {
                let (kind, id) = keys::record_name(&key).ok_or_else(unreadable)?;
                let row = RecordRow::decode(&value)?;
                if self.expired == Expired::LeaveOut && !row.lives(self.header.taken_at_ms) {
                    return Ok(None);
                }
                Ok(Some(ContentItem::Record(Box::new(row.into_record(kind, id)))))
            }
        }
    }

    fn message(&self, id: u64, message: segno::store::OrchestratorMessage) -> ContentItem {
        let visible_at_ms = message.visible_at_ms.unwrap_or(0);
        let standing = self.messages.get(&id).copied();
        let mut standing = standing.unwrap_or(Standing { id, visible_at_ms, attempts: 0 });
        let held_until_ms = self.held.get(&message.instance).copied();
        standing.visible_at_ms = standing.visible_at_ms.max(held_until_ms.unwrap_or(0));
        let mut content = MessageContent::standing(standing, message, self.header.taken_at_ms);
        content.holds_instance = held_until_ms.is_some() && content.message.visible_at_ms == held_until_ms;
        ContentItem::Message(Box::new(content))
    }
}

/// All kinds of records, in the order of their bytes; their keys are in that of their lengths.
fn record_kinds(taken: &StoreSnapshot) -> Result<BTreeSet<String>, RowError> {
    let mut kinds = BTreeSet::new();
    let mut start = keys::table(Table::Records);
    let table = keys::table(Table::Records);
    while let Some(row) = taken.view.rows.scan_from(&table, Bound::Included(&start))?.next() {
        let (key, _) = row?;
        let Some((kind, _)) = keys::record_name(&key) else { break };
        // No id has a byte as high as this one, so it is behind all of the kind.
        start = keys::record(kind, "");
        start.push(u8::MAX);
        kinds.insert(kind.to_owned());
    }
    Ok(kinds)
}

fn standings(taken: &StoreSnapshot, table: Table) -> Result<HashMap<u64, Standing>, RowError> {
    let mut standings = HashMap::new();
    for row in taken.view.rows.scan(&keys::table(table))? {
        let (key, value) = row?;
        if let Some(id) = keys::queued_id(table, &key) {
            // A lock is not part of the content: its holder answers to this store and to no copy.
            let (standing, _lock) = queue_row::decode_standing(id, &value)?;
            standings.insert(id, standing);
        }
    }
    Ok(standings)
}

impl ExportedInstance {
    fn new(taken: &StoreSnapshot, id: &str, row: InstanceRow) -> Self {
        let earlier = match row.execution_count {
            1 => ViewWalk::nowhere(),
            _ => taken.view.walk(&keys::of_instance(Table::Executions, id)),
        };
        let (current, executions_left) = (Some(row.current.clone()), row.execution_count);
        let id = id.to_owned();
        ExportedInstance { id, row, earlier, current, events: VecDeque::new(), executions_left }
    }

    fn content(&self) -> InstanceContent {
        InstanceContent::from(&self.row.info(&self.id))
    }

    fn next_item(&mut self, taken: &StoreSnapshot) -> Result<Option<ContentItem>, RowError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(ContentItem::Event(event)));
        }
        let execution = match self.earlier.next() {
            Some(row) => ExecutionRow::decode(&row?.1)?,
            None => match self.current.take() {
                Some(current) => current,
                None if self.executions_left == 0 => return Ok(None),
                None => return Err(self.differs("executions")),
            },
        };
        self.executions_left =
            self.executions_left.checked_sub(1).ok_or_else(|| self.differs("executions"))?;
        self.events = self.history(taken, execution.execution_id)?;
        if self.events.len() as u64 != execution.event_count {
            return Err(self.differs("events"));
        }
        Ok(Some(ContentItem::Execution(Box::new(ExecutionContent {
            execution_id: execution.execution_id,
            status: execution.status,
            output: execution.output,
            pinned_version: execution.pinned_version,
            incarnation: execution.incarnation,
            started_at_ms: execution.started_at_ms,
            completed_at_ms: execution.completed_at_ms,
        }))))
    }

    fn history(&self, taken: &StoreSnapshot, execution_id: u64) -> Result<VecDeque<StoredEvent>, RowError> {
        let mut events = Vec::new();
        for row in taken.view.rows.scan(&keys::execution(Table::Events, &self.id, execution_id))? {
            queue_row::decode_events(&row?.1, &mut events)?;
        }
        Ok(events.into())
    }

    fn differs(&self, what: &str) -> RowError {
        RowError::Corrupt(format!("the number of {what} of {} is not the one in its row", self.id))
    }
}
