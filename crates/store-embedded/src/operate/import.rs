//! An import: content becomes rows, by the same log and checkpoints as everything else. A row marks that the store is being
//! filled; with it the store refuses to work. It goes when everything is there, and the queues are built as when a store is opened.
//! A directory that had no store before has a [marker](crate::operate::fill_marker) besides.

use async_trait::async_trait;
use bytes::Bytes;
use segno::store::core::peek_lock::Standing;
use segno::store::{
    ContentHeader, ContentItem, ContentOrder, ErrorKind, ExecutionContent, Export, Import, InstanceContent,
    MessageContent, ProviderError, Record, StoredEvent, Transfer, WorkItemContent,
};

use crate::checkpoint::recovery;
use crate::commit::shared::IMPORT;
use crate::error::RowError;
use crate::operate::export::SnapshotExport;
use crate::rows::checkpoint_meta::FILLING;
use crate::rows::instance_row::{ExecutionRow, InstanceRow};
use crate::rows::keys::{self, Key, Table};
use crate::rows::queue_row::RecordRow;
use crate::rows::tables::Tables;
use crate::state::machine::{Restored, State};
use crate::store::EmbeddedStore;

/// Rows that one commit removes when an import begins again.
const CLEARED_PER_COMMIT: usize = 5_000;

/// Size at which the events of one row end.
const EVENTS_ROW_BYTES: usize = 64 * 1024;

/// Tables that content is stored in.
const CONTENT_TABLES: [Table; 8] = [
    Table::Instances,
    Table::Executions,
    Table::Events,
    Table::OrchestratorQueue,
    Table::OrchestratorStanding,
    Table::WorkerQueue,
    Table::WorkerStanding,
    Table::Records,
];

#[async_trait]
impl Transfer for EmbeddedStore {
    async fn export(&self) -> Result<Box<dyn Export + '_>, ProviderError> {
        let taken = self.core().read_snapshot("export", self.files()).await?;
        let export = SnapshotExport::new(taken).map_err(|error| error.at("export"))?;
        Ok(Box::new(export))
    }

    async fn import(&self) -> Result<Box<dyn Import + '_>, ProviderError> {
        let (number, was_filling) = self.core().begin_import()?;
        let mark = |state: &mut State, _| {
            state.tables.put(keys::meta(FILLING), Bytes::from_static(&[1]));
            Ok(())
        };
        self.core().commit_here(IMPORT, mark).await?;
        if was_filling {
            while self.core().commit_here(IMPORT, |state, _| state.tables.clear_some()).await? {}
        }
        Ok(Box::new(EmbeddedImport { store: self, number, order: ContentOrder::default(), open: None }))
    }
}

/// An import under way.
struct EmbeddedImport<'a> {
    store: &'a EmbeddedStore,
    number: u64,
    order: ContentOrder,
    open: Option<ImportedInstance>,
}

#[async_trait]
impl Import for EmbeddedImport<'_> {
    async fn put(&mut self, items: Vec<ContentItem>) -> Result<(), ProviderError> {
        self.check_newest()?;
        for item in &items {
            self.order.check(item)?;
        }
        let open = &mut self.open;
        self.store
            .core()
            .commit_here(IMPORT, move |state, _| {
                items.into_iter().for_each(|item| take(&mut state.tables, open, item));
                Ok(())
            })
            .await
    }

    async fn read_back(&mut self) -> Result<Box<dyn Export + '_>, ProviderError> {
        let header = self.close().await?;
        let taken = self.store.core().take_snapshot(IMPORT).await?;
        let export = SnapshotExport::of(taken, header).map_err(|error| error.at(IMPORT))?;
        Ok(Box::new(export))
    }

    async fn finish(mut self: Box<Self>) -> Result<(), ProviderError> {
        self.close().await?;
        let core = self.store.core();
        // Which numbers are used up is written by checkpoints, so one comes before the store counts as whole.
        core.take_snapshot(IMPORT).await?;
        let unmark = |state: &mut State, _| {
            state.tables.delete(keys::meta(FILLING));
            Ok(())
        };
        core.commit_here(IMPORT, unmark).await?;
        let refused = |error: std::io::Error| ProviderError::unavailable(IMPORT, error.to_string());
        self.store.remove_marker().map_err(refused)?;
        core.end_import()
    }
}

impl EmbeddedImport<'_> {
    /// Fails when another import has begun again meanwhile.
    fn check_newest(&self) -> Result<(), ProviderError> {
        if self.store.core().lock().imports == self.number {
            return Ok(());
        }
        let text = "another import into this store has begun meanwhile; only that one can go on";
        Err(ProviderError::new(ErrorKind::Conflict, IMPORT, text))
    }

    /// Writes the instance that came last. Nothing comes after it.
    async fn close(&mut self) -> Result<ContentHeader, ProviderError> {
        self.check_newest()?;
        let header = self.order.check_end()?;
        let open = self.open.take();
        let close = |state: &mut State, _| {
            open.into_iter().for_each(|open| open.close(&mut state.tables));
            Ok(())
        };
        self.store.core().commit_here(IMPORT, close).await?;
        Ok(header)
    }
}

/// An instance whose executions and events are coming.
struct ImportedInstance {
    content: InstanceContent,
    execution: Option<ExecutionRow>,
    executions: u64,
    event_count: u64,
    /// Events that are not in a row yet.
    events: Vec<StoredEvent>,
    events_bytes: usize,
}

fn take(tables: &mut Tables, open: &mut Option<ImportedInstance>, item: ContentItem) {
    match item {
        ContentItem::Header(header) => {
            let meta = &mut tables.meta;
            meta.last_message_id = meta.last_message_id.max(header.last_message_id);
            meta.last_item_id = meta.last_item_id.max(header.last_work_item_id);
            meta.last_record_version = meta.last_record_version.max(header.last_record_version);
        }
        ContentItem::Instance(content) => {
            if let Some(before) = open.replace(ImportedInstance::new(*content)) {
                before.close(tables);
            }
        }
        ContentItem::Execution(execution) => {
            open.as_mut().expect("an execution follows its instance").next_execution(tables, *execution);
        }
        ContentItem::Event(event) => {
            open.as_mut().expect("an event follows its instance").next_event(tables, event);
        }
        ContentItem::Message(content) => {
            let MessageContent { id, message, attempts, holds_instance } = *content;
            let visible_at_ms = message.visible_at_ms.unwrap_or(0);
            tables.insert_message(id, &message, visible_at_ms);
            if attempts > 0 || holds_instance {
                let standing = Standing { id, visible_at_ms, attempts };
                tables.put_standing(Table::OrchestratorStanding, standing);
            }
        }
        ContentItem::WorkItem(content) => {
            let WorkItemContent { id, message, delayed_until_ms, attempts } = *content;
            let visible_at_ms = delayed_until_ms.unwrap_or(0);
            tables.insert_activity(id, &message, visible_at_ms);
            if attempts > 0 {
                tables.put_standing(Table::WorkerStanding, Standing { id, visible_at_ms, attempts });
            }
        }
        ContentItem::Record(record) => {
            let Record { kind, id, version, due_at_ms, expires_at_ms, body } = *record;
            let row = RecordRow { version, due_at_ms, expires_at_ms, body };
            tables.set_record((&kind, &id), None, Some(&row));
        }
    }
}

impl ImportedInstance {
    fn new(content: InstanceContent) -> Self {
        ImportedInstance {
            content,
            execution: None,
            executions: 0,
            event_count: 0,
            events: Vec::new(),
            events_bytes: 0,
        }
    }

    fn next_execution(&mut self, tables: &mut Tables, content: ExecutionContent) {
        self.end_events_row(tables);
        self.executions += 1;
        let execution = ExecutionRow {
            execution_id: content.execution_id,
            status: content.status,
            output: content.output,
            pinned_version: content.pinned_version,
            incarnation: content.incarnation,
            started_at_ms: content.started_at_ms,
            completed_at_ms: content.completed_at_ms,
            event_count: 0,
            last_event_id: 0,
        };
        if let Some(earlier) = self.execution.replace(execution) {
            tables.put_execution(&self.content.instance_id, &earlier);
        }
    }

    fn next_event(&mut self, tables: &mut Tables, event: StoredEvent) {
        let execution = self.execution.as_mut().expect("an event follows its execution");
        execution.event_count += 1;
        execution.last_event_id = event.event_id;
        self.event_count += 1;
        self.events_bytes += event.data.len();
        self.events.push(event);
        if self.events_bytes >= EVENTS_ROW_BYTES {
            self.end_events_row(tables);
        }
    }

    fn end_events_row(&mut self, tables: &mut Tables) {
        let Some(execution) = &self.execution else { return };
        tables.insert_events(&self.content.instance_id, execution.execution_id, &self.events);
        self.events.clear();
        self.events_bytes = 0;
    }

    /// Writes the row of the instance: everything of it has come.
    fn close(mut self, tables: &mut Tables) {
        self.end_events_row(tables);
        let Some(current) = self.execution else { return };
        let content = self.content;
        let row = InstanceRow {
            created_at_ms: content.created_at_ms,
            updated_at_ms: content.updated_at_ms,
            revision: content.revision,
            name: content.orchestration_name,
            version: content.orchestration_version,
            parent: content.parent_instance_id,
            custom_status: content.custom_status,
            custom_status_version: content.custom_status_version,
            labels: content.labels,
            execution_count: self.executions,
            event_count: self.event_count,
            current,
        };
        tables.put_instance(&content.instance_id, None, row);
    }
}

impl crate::commit::shared::Core {
    /// Refuses everything but the import from now on. Returns the number of the import, and whether that was so before:
    /// content of an import that was not finished may be there.
    fn begin_import(&self) -> Result<(u64, bool), ProviderError> {
        let mut shared = self.lock();
        shared.check_open(IMPORT)?;
        let now_ms = self.clock.now_ms();
        shared.state.advance(now_ms);
        let is_empty = shared.state.is_empty(now_ms).map_err(|error| error.at(IMPORT))?;
        if !shared.is_filling && !is_empty {
            let text = "the store is not empty; an import needs a store without instances, queued messages and records";
            return Err(ProviderError::new(ErrorKind::Conflict, IMPORT, text));
        }
        shared.imports += 1;
        Ok((shared.imports, std::mem::replace(&mut shared.is_filling, true)))
    }

    /// The store is whole and works from now on.
    fn end_import(&self) -> Result<(), ProviderError> {
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        let restored = {
            let tables = &shared.state.tables;
            recovery::restore(&tables.rows, &tables.meta, now_ms)
        };
        let restored = restored.and_then(Restored::whole).map_err(|error| error.at(IMPORT))?;
        shared.state.restart(restored);
        shared.state.answer_watches();
        shared.is_filling = false;
        Ok(())
    }
}

impl Tables {
    /// Removes some of the content; `false` when there was none.
    fn clear_some(&mut self) -> Result<bool, ProviderError> {
        let mut found: Vec<Key> = Vec::new();
        for table in CONTENT_TABLES {
            let prefix = keys::table(table);
            let rows = self.rows.scan(&prefix).map_err(|error| error.at(IMPORT))?;
            for row in rows.take(CLEARED_PER_COMMIT - found.len()) {
                found.push(row.map_err(|error| error.at(IMPORT))?.0);
            }
        }
        let any = !found.is_empty();
        for key in found {
            self.remove_logged(key).map_err(|error| error.at(IMPORT))?;
        }
        Ok(any)
    }
}

impl State {
    /// Whether nothing is stored and nothing waits.
    fn is_empty(&self, now_ms: u64) -> Result<bool, RowError> {
        let queued = [self.orchestrations.depths(), self.work.depths()];
        let queued: u64 = queued.iter().map(|depths| depths.visible + depths.delayed + depths.locked).sum();
        if queued > 0 || self.tables.meta.counters.metrics().total_instances > 0 {
            return Ok(false);
        }
        for row in self.tables.rows.scan(&keys::table(Table::Records))? {
            if RecordRow::decode(&row?.1)?.lives(now_ms) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Answers the watches on an instance with its current state.
    fn answer_watches(&mut self) {
        for instance in self.watches.watched() {
            // A row that cannot be read stays for a reader to complain about.
            if let Ok(Some(row)) = self.tables.instance(&instance) {
                self.watches.answer(&row.info(&instance));
            }
        }
    }
}
