//! The fourth facet: giving out and taking in everything.
//!
//! An export is a copy of the state made at once, which shares its payloads with the state. An import fills a state of its
//! own, which takes the place of the empty one when it is finished.

use std::vec;

use async_trait::async_trait;

use super::MemoryStore;
use super::instance_table::{Execution, InstanceTable};
use super::record_table::RecordTable;
use super::state::State;
use crate::store::core::orchestrator_queue::OrchestratorQueue;
use crate::store::core::peek_lock::Standing;
use crate::store::core::worker_queue::WorkerQueue;
use crate::store::{
    ContentHeader, ContentItem, ContentOrder, ErrorKind, Export, Import, InstanceContent, MessageContent,
    OrchestratorMessage, ProviderError, Record, Transfer, WorkItemContent,
};

/// Items in one batch of an export.
const ITEMS_PER_BATCH: usize = 1_000;

impl State {
    /// Everything, in the order of a transfer.
    fn content(&self, taken_at_ms: u64) -> Vec<ContentItem> {
        let header = ContentHeader {
            taken_at_ms,
            last_message_id: self.orchestrations.last_message_id(),
            last_work_item_id: self.work.last_item_id(),
            last_record_version: self.records.last_version(),
        };
        let mut items = vec![ContentItem::Header(header)];
        items.extend(self.instances.content());
        let messages = self.orchestrations.content(taken_at_ms).into_iter();
        items.extend(messages.map(|message| ContentItem::Message(Box::new(message))));
        let work = self.work.content(taken_at_ms).into_iter();
        items.extend(work.map(|item| ContentItem::WorkItem(Box::new(item))));
        let records = self.records.content(taken_at_ms);
        items.extend(records.map(|record| ContentItem::Record(Box::new(record))));
        items
    }

    /// Takes over everything that an import brought.
    fn take_over(&mut self, brought: Brought, now_ms: u64) {
        let Brought { header, instances, messages, work, records, .. } = brought;
        let last_message_id = header.last_message_id.max(self.orchestrations.last_message_id());
        let last_item_id = header.last_work_item_id.max(self.work.last_item_id());
        let last_version = header.last_record_version.max(self.records.last_version());
        self.instances = instances;
        self.orchestrations = OrchestratorQueue::after(last_message_id);
        self.work = WorkerQueue::after(last_item_id);
        self.records = RecordTable::after(last_version);
        let mut held = Vec::new();
        for content in messages {
            let instance = content.message.instance.clone();
            let held_until_ms = content.message.visible_at_ms.filter(|_| content.holds_instance);
            held.extend(held_until_ms.map(|until_ms| (instance, until_ms)));
            let instances = &self.instances;
            let pin = |instance: &str| instances.info(instance).and_then(|info| info.pinned_version.clone());
            let (standing, message) = standing_of(content);
            self.orchestrations.restore(standing, message, now_ms, pin);
        }
        for (instance, until_ms) in held.into_iter().filter(|(_, until_ms)| *until_ms > now_ms) {
            self.orchestrations.hold_back(&instance, until_ms);
        }
        for WorkItemContent { id, message, delayed_until_ms, attempts } in work {
            let standing = Standing { id, visible_at_ms: delayed_until_ms.unwrap_or(0), attempts };
            self.work.restore(standing, message, now_ms);
        }
        for record in records {
            self.records.restore(record);
        }
        for id in self.instances.index().ids() {
            if let Some(info) = self.instances.info(id) {
                self.watches.answer(info);
            }
        }
    }
}

fn standing_of(content: MessageContent) -> (Standing, OrchestratorMessage) {
    let MessageContent { id, message, attempts, .. } = content;
    (Standing { id, visible_at_ms: message.visible_at_ms.unwrap_or(0), attempts }, message)
}

/// What an import brought so far.
#[derive(Debug, Default)]
struct Brought {
    header: ContentHeader,
    instances: InstanceTable,
    /// The instance whose executions come.
    open: Option<(InstanceContent, Vec<Execution>)>,
    messages: Vec<MessageContent>,
    work: Vec<WorkItemContent>,
    records: Vec<Record>,
}

impl Brought {
    fn take(&mut self, item: ContentItem) {
        match item {
            ContentItem::Header(header) => self.header = header,
            ContentItem::Instance(instance) => {
                self.close();
                self.open = Some((*instance, Vec::new()));
            }
            ContentItem::Execution(execution) => {
                let (_, executions) = self.open.as_mut().expect("an execution follows its instance");
                executions.push(Execution::restored(*execution));
            }
            ContentItem::Event(event) => {
                let (_, executions) = self.open.as_mut().expect("an event follows its instance");
                executions.last_mut().expect("an event follows its execution").events.push(event);
            }
            ContentItem::Message(message) => self.messages.push(*message),
            ContentItem::WorkItem(item) => self.work.push(*item),
            ContentItem::Record(record) => self.records.push(*record),
        }
    }

    /// Puts the instance that came last where it belongs.
    fn close(&mut self) {
        if let Some((instance, executions)) = self.open.take() {
            self.instances.restore(&instance, executions);
        }
    }

    fn content(&self) -> Vec<ContentItem> {
        let mut items = vec![ContentItem::Header(self.header)];
        items.extend(self.instances.content());
        items.extend(self.messages.iter().cloned().map(|message| ContentItem::Message(Box::new(message))));
        items.extend(self.work.iter().cloned().map(|item| ContentItem::WorkItem(Box::new(item))));
        items.extend(self.records.iter().cloned().map(|record| ContentItem::Record(Box::new(record))));
        items
    }
}

struct MemoryExport {
    items: vec::IntoIter<ContentItem>,
}

#[async_trait]
impl Export for MemoryExport {
    async fn next_items(&mut self) -> Result<Vec<ContentItem>, ProviderError> {
        Ok(self.items.by_ref().take(ITEMS_PER_BATCH).collect())
    }
}

struct MemoryImport<'a> {
    store: &'a MemoryStore,
    order: ContentOrder,
    brought: Brought,
}

fn not_empty() -> ProviderError {
    let text =
        "the store is not empty; an import needs a store without instances, queued messages and records";
    ProviderError::new(ErrorKind::Conflict, "import", text)
}

#[async_trait]
impl Import for MemoryImport<'_> {
    async fn put(&mut self, items: Vec<ContentItem>) -> Result<(), ProviderError> {
        for item in items {
            self.order.check(&item)?;
            self.brought.take(item);
        }
        Ok(())
    }

    async fn read_back(&mut self) -> Result<Box<dyn Export + '_>, ProviderError> {
        self.order.check_end()?;
        self.brought.close();
        Ok(Box::new(MemoryExport { items: self.brought.content().into_iter() }))
    }

    async fn finish(mut self: Box<Self>) -> Result<(), ProviderError> {
        self.order.check_end()?;
        self.brought.close();
        let brought = self.brought;
        self.store.change(|state, now_ms| {
            if !state.is_empty(now_ms) {
                return Err(not_empty());
            }
            state.take_over(brought, now_ms);
            Ok(())
        })
    }
}

#[async_trait]
impl Transfer for MemoryStore {
    async fn export(&self) -> Result<Box<dyn Export + '_>, ProviderError> {
        let items = self.change(|state, now_ms| state.content(now_ms));
        Ok(Box::new(MemoryExport { items: items.into_iter() }))
    }

    async fn import(&self) -> Result<Box<dyn Import + '_>, ProviderError> {
        if !self.change(|state, now_ms| state.is_empty(now_ms)) {
            return Err(not_empty());
        }
        let order = ContentOrder::default();
        Ok(Box::new(MemoryImport { store: self, order, brought: Brought::default() }))
    }
}
