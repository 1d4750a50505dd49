//! Taking in everything: one transaction, so that nothing of it is there until it is finished, and nothing is left
//! of one that is not.

use async_trait::async_trait;
use segno::store::{
    ContentHeader, ContentItem, ContentOrder, ErrorKind, ExecutionContent, Export, Import, InstanceContent,
    MessageContent, ProviderError, Record, StartGuard, WorkItemContent,
};
use tokio_postgres::types::{ToSql, Type};

use crate::PostgresStore;
use crate::columns::lane;
use crate::connection::Connection;
use crate::core::Core;
use crate::error::failed;
use crate::export::Content;
use crate::number::{bits, status_code, time};
use crate::version_key::version_key;

pub(crate) const OPERATION: &str = "import";

/// Tables that must be empty, and that nobody else may have written to in the end.
/// Each with a condition that leaves out its ballast.
const TABLES: [(&str, &str); 7] = [
    ("instance", "true"),
    ("execution", "true"),
    ("event", "true"),
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
    /// The instance whose executions come, until its current one is there.
    instance: Option<Box<InstanceContent>>,
    instance_id: String,
    execution_id: u64,
    queues_are_built: bool,
}

/// A value and its type.
type Value<'a> = (&'a (dyn ToSql + Sync), Type);

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
            instance: None,
            instance_id: String::new(),
            execution_id: 0,
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

    async fn insert(&self, sql: &str, values: &[Value<'_>]) -> Result<(), ProviderError> {
        let sql = sql.replace("@schema@", self.schema());
        let done = self.connection.client().execute_typed(&sql, values).await;
        done.map(drop).map_err(|error| failed(OPERATION, &error))
    }

    async fn is_true(&self, sql: &str) -> Result<bool, ProviderError> {
        let row = self.connection.client().query_typed_one(sql, &[]).await;
        Ok(row.map_err(|error| failed(OPERATION, &error))?.get(0))
    }

    async fn put_one(&mut self, item: ContentItem, batch: &mut Batch) {
        match item {
            ContentItem::Header(_) => {}
            ContentItem::Instance(instance) => {
                self.instance_id.clone_from(&instance.instance_id);
                self.instance = Some(instance);
            }
            ContentItem::Execution(execution) => {
                self.execution_id = execution.execution_id;
                let is_current = |instance: &mut Box<InstanceContent>| {
                    instance.current_execution_id == execution.execution_id
                };
                if let Some(instance) = self.instance.take_if(is_current) {
                    batch.instances.push((*instance, (*execution).clone()));
                }
                batch.executions.push((self.instance_id.clone(), *execution));
            }
            ContentItem::Event(event) => {
                batch.events.push((self.instance_id.clone(), self.execution_id, event));
            }
            ContentItem::Message(message) => batch.messages.push(*message),
            ContentItem::WorkItem(item) => batch.work.push(*item),
            ContentItem::Record(record) => batch.records.push(*record),
        }
    }

    async fn insert_instances(
        &self,
        rows: &[(InstanceContent, ExecutionContent)],
    ) -> Result<(), ProviderError> {
        let sql = "INSERT INTO @schema@.instance (instance_id, current_execution_id, status, created_at_ms, updated_at_ms,
                       completed_at_ms, revision, name, version, parent_id, pin_key, custom_status_version, custom_status,
                       labels)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let label =
            "INSERT INTO @schema@.label (key, value, created_at_ms, instance_id) VALUES ($1, $2, $3, $4)";
        for (instance, execution) in rows {
            let labels: Vec<&str> =
                instance.labels.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]).collect();
            let pin = execution.pinned_version.as_ref().map_or_else(String::new, version_key);
            let created = time(instance.created_at_ms);
            self.insert(
                sql,
                &[
                    (&instance.instance_id, Type::TEXT),
                    (&bits(instance.current_execution_id), Type::INT8),
                    (&status_code(execution.status), Type::INT2),
                    (&created, Type::INT8),
                    (&time(instance.updated_at_ms), Type::INT8),
                    (&execution.completed_at_ms.map(time), Type::INT8),
                    (&bits(instance.revision), Type::INT8),
                    (&instance.orchestration_name, Type::TEXT),
                    (&instance.orchestration_version, Type::TEXT),
                    (&instance.parent_instance_id, Type::TEXT),
                    (&pin, Type::TEXT),
                    (&bits(instance.custom_status_version), Type::INT8),
                    (&instance.custom_status.as_deref(), Type::BYTEA),
                    (&labels, Type::TEXT_ARRAY),
                ],
            )
            .await?;
            for (key, value) in &instance.labels {
                let id = &instance.instance_id;
                self.insert(
                    label,
                    &[(key, Type::TEXT), (value, Type::TEXT), (&created, Type::INT8), (id, Type::TEXT)],
                )
                .await?;
            }
        }
        Ok(())
    }

    async fn insert_executions(&self, rows: &[(String, ExecutionContent)]) -> Result<(), ProviderError> {
        let sql = "INSERT INTO @schema@.execution (instance_id, execution_id, status, started_at_ms, completed_at_ms,
                       pinned_version, incarnation, output) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        for (instance_id, execution) in rows {
            self.insert(
                sql,
                &[
                    (instance_id, Type::TEXT),
                    (&bits(execution.execution_id), Type::INT8),
                    (&status_code(execution.status), Type::INT2),
                    (&time(execution.started_at_ms), Type::INT8),
                    (&execution.completed_at_ms.map(time), Type::INT8),
                    (&execution.pinned_version.as_ref().map(ToString::to_string), Type::TEXT),
                    (&execution.incarnation.map(bits), Type::INT8),
                    (&execution.output.as_deref(), Type::BYTEA),
                ],
            )
            .await?;
        }
        Ok(())
    }

    async fn insert_events(&self, batch: &Batch) -> Result<(), ProviderError> {
        if batch.events.is_empty() {
            return Ok(());
        }
        let instances: Vec<&str> = batch.events.iter().map(|(id, ..)| id.as_str()).collect();
        let executions: Vec<i64> =
            batch.events.iter().map(|(_, execution_id, _)| bits(*execution_id)).collect();
        let ids: Vec<i64> = batch.events.iter().map(|(.., event)| bits(event.event_id)).collect();
        let data: Vec<&[u8]> = batch.events.iter().map(|(.., event)| event.data.as_ref()).collect();
        let sql = "INSERT INTO @schema@.event (instance_id, execution_id, event_id, data)
                   SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[])";
        self.insert(
            sql,
            &[
                (&instances, Type::TEXT_ARRAY),
                (&executions, Type::INT8_ARRAY),
                (&ids, Type::INT8_ARRAY),
                (&data, Type::BYTEA_ARRAY),
            ],
        )
        .await
    }

    async fn insert_messages(&self, rows: &[MessageContent]) -> Result<(), ProviderError> {
        let sql = "INSERT INTO @schema@.message (id, instance_id, late, visible_at_ms, attempts, timer_execution_id,
                       timer_id, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let note = "INSERT INTO segno_import_message VALUES ($1, $2, $3, $4)";
        for row in rows {
            let (id, message) = (bits(row.id), &row.message);
            let attempts = i32::try_from(row.attempts).unwrap_or(i32::MAX);
            let visible = message.visible_at_ms.map(time);
            self.insert(
                sql,
                &[
                    (&id, Type::INT8),
                    (&message.instance, Type::TEXT),
                    (&visible.is_some(), Type::BOOL),
                    (&visible.unwrap_or(0), Type::INT8),
                    (&attempts, Type::INT4),
                    (&message.timer.map(|timer| bits(timer.execution_id)), Type::INT8),
                    (&message.timer.map(|timer| bits(timer.timer_id)), Type::INT8),
                    (&message.body.as_ref(), Type::BYTEA),
                ],
            )
            .await?;
            let is_start = message.guard == StartGuard::IfAbsent;
            if is_start || row.holds_instance {
                let holds_until = visible.filter(|_| row.holds_instance);
                self.insert(
                    note,
                    &[
                        (&message.instance, Type::TEXT),
                        (&id, Type::INT8),
                        (&is_start, Type::BOOL),
                        (&holds_until, Type::INT8),
                    ],
                )
                .await?;
            }
        }
        Ok(())
    }

    async fn insert_work(&self, rows: &[WorkItemContent]) -> Result<(), ProviderError> {
        let sql = "INSERT INTO @schema@.activity (id, instance_id, execution_id, activity_id, lane, session_id, ready,
                       next_at_ms, attempts, visible_at_ms, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        for row in rows {
            let (message, delayed) = (&row.message, row.delayed_until_ms.map(time));
            self.insert(
                sql,
                &[
                    (&bits(row.id), Type::INT8),
                    (&message.activity.instance, Type::TEXT),
                    (&bits(message.activity.execution_id), Type::INT8),
                    (&bits(message.activity.activity_id), Type::INT8),
                    (&lane(message.tag.as_deref()), Type::TEXT),
                    (&message.session_id, Type::TEXT),
                    (&delayed.is_none(), Type::BOOL),
                    (&delayed.unwrap_or(0), Type::INT8),
                    (&i32::try_from(row.attempts).unwrap_or(i32::MAX), Type::INT4),
                    (&message.visible_at_ms.map(time), Type::INT8),
                    (&message.body.as_ref(), Type::BYTEA),
                ],
            )
            .await?;
        }
        Ok(())
    }

    async fn insert_records(&self, rows: &[Record]) -> Result<(), ProviderError> {
        let sql = "INSERT INTO @schema@.record (kind, id, version, due_at_ms, expires_at_ms, body)
                   VALUES ($1, $2, $3, $4, $5, $6)";
        for record in rows {
            self.insert(
                sql,
                &[
                    (&record.kind, Type::TEXT),
                    (&record.id, Type::TEXT),
                    (&bits(record.version), Type::INT8),
                    (&record.due_at_ms.map(time), Type::INT8),
                    (&record.expires_at_ms.map(time), Type::INT8),
                    (&record.body.as_ref(), Type::BYTEA),
                ],
            )
            .await?;
        }
        Ok(())
    }

    /// Makes the rows that say who can be fetched, once all messages are there. Nothing can be put after it.
    async fn end(&mut self) -> Result<ContentHeader, ProviderError> {
        let header = self.order.check_end()?;
        if !self.queues_are_built {
            self.queues_are_built = true;
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

/// What one call puts, by table.
#[derive(Default)]
struct Batch {
    instances: Vec<(InstanceContent, ExecutionContent)>,
    executions: Vec<(String, ExecutionContent)>,
    events: Vec<(String, u64, segno::store::StoredEvent)>,
    messages: Vec<MessageContent>,
    work: Vec<WorkItemContent>,
    records: Vec<Record>,
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
        let mut batch = Batch::default();
        for item in items {
            self.order.check(&item)?;
            self.put_one(item, &mut batch).await;
        }
        self.insert_instances(&batch.instances).await?;
        self.insert_executions(&batch.executions).await?;
        self.insert_events(&batch).await?;
        self.insert_messages(&batch.messages).await?;
        self.insert_work(&batch.work).await?;
        self.insert_records(&batch.records).await
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
                    events = w.events + (SELECT count(*) FROM {schema}.event),
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
