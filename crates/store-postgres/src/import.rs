//! Taking in everything: one transaction, so that nothing of it is there until it is finished, and nothing is left
//! of one that is not.

use async_trait::async_trait;
use segno::store::{
    ContentHeader, ContentItem, ContentOrder, ErrorKind, Export, Import, InstanceContent, ProviderError,
};

use crate::PostgresStore;
use crate::connection::Connection;
use crate::core::Core;
use crate::error::failed;
use crate::export::Content;
use crate::import_batch::{Batch, EventBatch, InstanceRow};
use crate::number::time;

pub(crate) const OPERATION: &str = "import";

/// Tables that must be empty, and that nobody else may have written to in the end.
/// Each with a condition that leaves out its ballast.
const TABLES: [(&str, &str); 7] = [
    ("instance", "true"),
    ("past_execution", "true"),
    ("event_batch", "true"),
    ("turn", "head >= 0"),
    ("message", "id > 0"),
    ("activity", "id > 0"),
    ("record", "version > 0"),
];

/// An import over a connection of its own, which is in a transaction. Dropping it undoes it.
pub(crate) struct OwnImport<'a> {
    store: &'a PostgresStore,
    connection: Connection,
    order: ContentOrder,
    batch: Batch,
    /// The instance whose executions come, until its current one is there.
    instance: Option<Box<InstanceContent>>,
    /// The same with its current execution, while the events of that come.
    current: Option<Box<InstanceRow>>,
    /// Events of the execution that came last.
    events: EventBatch,
    queues_are_built: bool,
}

impl<'a> OwnImport<'a> {
    /// Begins. The connection is in a transaction already.
    pub(crate) async fn begin(
        store: &'a PostgresStore,
        connection: Connection,
    ) -> Result<OwnImport<'a>, ProviderError> {
        let import = OwnImport {
            store,
            connection,
            order: ContentOrder::default(),
            batch: Batch::default(),
            instance: None,
            current: None,
            events: EventBatch::default(),
            queues_are_built: false,
        };
        let schema = import.schema();
        import
            .execute(&format!(
                "DELETE FROM {schema}.record r WHERE r.expires_at_ms <= {schema}.now_ms();
                 CREATE TEMPORARY TABLE segno_import_message (instance_id text COLLATE \"C\", id bigint, is_start boolean,
                     holds_until_ms bigint) ON COMMIT DROP"
            ))
            .await?;
        let queries: Vec<String> = TABLES
            .iter()
            .map(|(table, real)| format!("EXISTS (SELECT 1 FROM {schema}.{table} WHERE {real})"))
            .collect();
        if import.is_true(&format!("SELECT {}", queries.join(" OR "))).await? {
            let text = "the store is not empty; only an empty one takes content: use another schema";
            return Err(ProviderError::new(ErrorKind::Conflict, OPERATION, text));
        }
        Ok(import)
    }

    fn core(&self) -> &Core {
        self.store.core()
    }

    fn schema(&self) -> &'a str {
        self.store.core().schema()
    }

    async fn execute(&self, sql: &str) -> Result<(), ProviderError> {
        self.connection.client().batch_execute(sql).await.map_err(|error| failed(OPERATION, &error))
    }

    async fn is_true(&self, sql: &str) -> Result<bool, ProviderError> {
        let row = self.connection.client().query_typed_one(sql, &[]).await;
        Ok(row.map_err(|error| failed(OPERATION, &error))?.get(0))
    }

    fn put_one(&mut self, item: ContentItem) {
        match item {
            ContentItem::Header(_) => {}
            ContentItem::Instance(instance) => {
                self.end_instance();
                self.events = EventBatch::of(&instance.instance_id);
                self.instance = Some(instance);
            }
            ContentItem::Execution(execution) => {
                self.end_execution();
                self.events.execution_id = execution.execution_id;
                let is_current = |instance: &mut Box<InstanceContent>| {
                    instance.current_execution_id == execution.execution_id
                };
                match self.instance.take_if(is_current) {
                    Some(instance) => {
                        let row = InstanceRow { instance: *instance, current: *execution, last_event_id: 0 };
                        self.current = Some(Box::new(row));
                    }
                    None => self.batch.add_past_execution(&self.events.instance_id, *execution),
                }
            }
            ContentItem::Event(event) => {
                if let Some(current) =
                    self.current.as_mut().filter(|row| row.current.execution_id == self.events.execution_id)
                {
                    current.last_event_id = event.event_id;
                }
                self.events.add(event);
                if self.events.is_full() {
                    self.end_execution();
                }
            }
            ContentItem::Message(message) => self.batch.add_message(*message),
            ContentItem::WorkItem(item) => self.batch.add_work_item(*item),
            ContentItem::Record(record) => self.batch.add_record(*record),
        }
    }

    /// What was gathered of an execution's events goes into the batch.
    fn end_execution(&mut self) {
        if let Some(events) = self.events.take() {
            self.batch.add_events(events);
        }
    }

    fn end_instance(&mut self) {
        self.end_execution();
        if let Some(row) = self.current.take() {
            self.batch.add_instance(*row);
        }
    }

    async fn insert_batch(&mut self) -> Result<(), ProviderError> {
        std::mem::take(&mut self.batch).insert(&self.connection, self.schema()).await
    }

    /// Makes the rows that say who can be fetched, once all messages are there. Nothing can be put after it.
    async fn end(&mut self) -> Result<ContentHeader, ProviderError> {
        let header = self.order.check_end()?;
        if !self.queues_are_built {
            self.queues_are_built = true;
            self.end_instance();
            self.insert_batch().await?;
            let schema = self.schema();
            self.execute(&format!(
                "INSERT INTO {schema}.turn (instance_id, pin_key, ready, head, next_at_ms, not_before_ms, start_id)
                 SELECT m.instance_id, coalesce(i.pin_key, ''),
                        bool_or(NOT m.late) AND coalesce(n.holds_until_ms, 0) = 0,
                        coalesce(min(m.id) FILTER (WHERE NOT m.late), 0),
                        greatest(coalesce(n.holds_until_ms, 0),
                                 CASE WHEN bool_or(NOT m.late) THEN 0 ELSE min(m.visible_at_ms) END),
                        coalesce(n.holds_until_ms, 0), n.start_id
                   FROM {schema}.message m
                   LEFT JOIN {schema}.instance i ON i.instance_id = m.instance_id
                   LEFT JOIN (SELECT s.instance_id, max(s.holds_until_ms) AS holds_until_ms,
                                     max(s.id) FILTER (WHERE s.is_start) AS start_id
                                FROM segno_import_message s GROUP BY s.instance_id) n ON n.instance_id = m.instance_id
                  WHERE m.id > 0 GROUP BY m.instance_id, i.pin_key, n.holds_until_ms, n.start_id"
            ))
            .await?;
        }
        Ok(header)
    }
}

/// A content over a connection that belongs to an import.
struct BorrowedExport<'a> {
    connection: &'a Connection,
    content: Content,
}

#[async_trait]
impl Export for BorrowedExport<'_> {
    async fn next_items(&mut self) -> Result<Vec<ContentItem>, ProviderError> {
        self.content.next_items(self.connection).await
    }
}

#[async_trait]
impl Import for OwnImport<'_> {
    async fn put(&mut self, items: Vec<ContentItem>) -> Result<(), ProviderError> {
        for item in items {
            self.order.check(&item)?;
            self.put_one(item);
        }
        if self.batch.is_full() {
            self.insert_batch().await?;
        }
        Ok(())
    }

    async fn read_back(&mut self) -> Result<Box<dyn Export + '_>, ProviderError> {
        let header = self.end().await?;
        let content = Content::open(&self.connection, self.schema(), header).await?;
        Ok(Box::new(BorrowedExport { connection: &self.connection, content }))
    }

    async fn finish(mut self: Box<Self>) -> Result<(), ProviderError> {
        let header = self.end().await?;
        let schema = self.schema();
        let tables: Vec<String> = TABLES.iter().map(|(table, _)| format!("{schema}.{table}")).collect();
        self.execute(&format!("CLOSE ALL; LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", tables.join(", ")))
            .await?;
        // Rows that this transaction did not write.
        let strangers: Vec<String> = TABLES
            .iter()
            .map(|(table, real)| {
                format!(
                    "EXISTS (SELECT 1 FROM {schema}.{table}
                              WHERE {real} AND xmin::text <> (pg_current_xact_id()::text::bigint % 4294967296)::text)"
                )
            })
            .collect();
        if self.is_true(&format!("SELECT {}", strangers.join(" OR "))).await? {
            let text =
                "something else was stored during the import; nothing was taken in, use an empty schema";
            return Err(ProviderError::new(ErrorKind::Conflict, OPERATION, text));
        }
        let raise = |sequence: &str, last: u64| {
            let last = time(last);
            format!(
                "SELECT setval('{schema}.{sequence}', {last}) FROM {schema}.{sequence} s
                  WHERE {last} > CASE WHEN s.is_called THEN s.last_value ELSE 0 END"
            )
        };
        let raised = [
            raise("message_id", header.last_message_id),
            raise("activity_id", header.last_work_item_id),
            raise("record_version", header.last_record_version),
        ];
        self.execute(&format!(
            "{};
             UPDATE {schema}.writer w
                SET executions = w.executions + (SELECT count(*) FROM {schema}.execution),
                    events = w.events + (SELECT coalesce(sum(cardinality(b.ids)), 0) FROM {schema}.event_batch b),
                    instances = ARRAY(SELECT w.instances[c.code + 1] + (SELECT count(*) FROM {schema}.instance i
                                       WHERE i.status = c.code) FROM generate_series(0, 6) AS c(code) ORDER BY c.code)
              WHERE w.writer_id = 0;
             COMMIT",
            raised.join("; ")
        ))
        .await?;
        self.core().look_at_everything();
        Ok(())
    }
}
