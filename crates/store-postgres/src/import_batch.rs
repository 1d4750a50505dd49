//! Rows that an import gathers and inserts table by table, a few thousand in one statement.

use segno::store::{
    ExecutionContent, InstanceContent, MessageContent, ProviderError, Record, StartGuard, StoredEvent,
    WorkItemContent,
};
use tokio_postgres::types::Type;

use crate::columns::{Parameter, lane};
use crate::connection::Connection;
use crate::error::failed;
use crate::import::OPERATION;
use crate::number::{bits, status_code, time};
use crate::version_key::version_key;

/// Rows and bytes after which a batch is inserted.
const MAX_ROWS: usize = 4_000;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Events and bytes that go into one row.
const MAX_EVENTS: usize = 64;
const MAX_EVENT_BYTES: usize = 6 * 1024;

/// An instance with its current execution, which share a row.
pub(crate) struct InstanceRow {
    pub(crate) instance: InstanceContent,
    pub(crate) current: ExecutionContent,
    pub(crate) last_event_id: u64,
}

/// Events of one execution, in one row.
#[derive(Default)]
pub(crate) struct EventBatch {
    pub(crate) instance_id: String,
    pub(crate) execution_id: u64,
    events: Vec<StoredEvent>,
    bytes: usize,
}

impl EventBatch {
    /// None yet, of an instance.
    pub(crate) fn of(instance_id: &str) -> Self {
        EventBatch { instance_id: instance_id.to_owned(), ..EventBatch::default() }
    }

    pub(crate) fn add(&mut self, event: StoredEvent) {
        self.bytes += event.data.len();
        self.events.push(event);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.events.len() >= MAX_EVENTS || self.bytes >= MAX_EVENT_BYTES
    }

    /// Takes the events out; what comes next belongs to the same execution.
    pub(crate) fn take(&mut self) -> Option<EventBatch> {
        if self.events.is_empty() {
            return None;
        }
        let next = EventBatch {
            instance_id: self.instance_id.clone(),
            execution_id: self.execution_id,
            ..EventBatch::default()
        };
        Some(std::mem::replace(self, next))
    }
}

/// What is to be inserted, by table.
#[derive(Default)]
pub(crate) struct Batch {
    instances: Vec<InstanceRow>,
    past_executions: Vec<(String, ExecutionContent)>,
    events: Vec<EventBatch>,
    messages: Vec<MessageContent>,
    work: Vec<WorkItemContent>,
    records: Vec<Record>,
    rows: usize,
    bytes: usize,
}

/// One column of some rows.
fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// A list of texts as the database writes it, for a column of lists, which cannot be sent as such.
fn list_literal<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> =
        texts.map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("{{{}}}", quoted.join(","))
}

impl Batch {
    pub(crate) fn add_instance(&mut self, row: InstanceRow) {
        self.count(row.current.output.as_ref().map_or(0, |output| output.len()));
        self.instances.push(row);
    }

    pub(crate) fn add_past_execution(&mut self, instance_id: &str, execution: ExecutionContent) {
        self.count(execution.output.as_ref().map_or(0, |output| output.len()));
        self.past_executions.push((instance_id.to_owned(), execution));
    }

    pub(crate) fn add_events(&mut self, events: EventBatch) {
        self.count(events.bytes);
        self.events.push(events);
    }

    pub(crate) fn add_message(&mut self, message: MessageContent) {
        self.count(message.message.body.len());
        self.messages.push(message);
    }

    pub(crate) fn add_work_item(&mut self, item: WorkItemContent) {
        self.count(item.message.body.len());
        self.work.push(item);
    }

    pub(crate) fn add_record(&mut self, record: Record) {
        self.count(record.body.len());
        self.records.push(record);
    }

    fn count(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    /// Inserts everything.
    pub(crate) async fn insert(self, connection: &Connection, schema: &str) -> Result<(), ProviderError> {
        let target = Target { connection, schema };
        target.insert_instances(&self.instances).await?;
        target.insert_labels(&self.instances).await?;
        target.insert_past_executions(&self.past_executions).await?;
        target.insert_events(&self.events).await?;
        target.insert_messages(&self.messages).await?;
        target.insert_work(&self.work).await?;
        target.insert_records(&self.records).await
    }
}

/// Where rows go.
struct Target<'a> {
    connection: &'a Connection,
    schema: &'a str,
}

impl Target<'_> {
    async fn insert(&self, sql: &str, values: &[Parameter<'_>]) -> Result<(), ProviderError> {
        let sql = sql.replace("@schema@", self.schema);
        let done = self.connection.client().execute_typed(&sql, values).await;
        done.map(drop).map_err(|error| failed(OPERATION, &error))
    }

    async fn insert_instances(&self, rows: &[InstanceRow]) -> Result<(), ProviderError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO @schema@.instance (instance_id, created_at_ms, updated_at_ms, revision, name, version,
                       parent_id, custom_status_version, custom_status, labels, execution_id, status, started_at_ms,
                       completed_at_ms, last_event_id, incarnation, pinned_version, pin_key, output)
                   SELECT a, b, c, d, e, f, g, h, i, j::text[], k, l, m, n, o, p, q, r, s
                     FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
                          AS x(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)";
        let labels = |row: &InstanceRow| {
            list_literal(row.instance.labels.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]))
        };
        let pin =
            |row: &InstanceRow| row.current.pinned_version.as_ref().map_or_else(String::new, version_key);
        let values: &[Parameter<'_>] = &[
            (&column(rows, |row| row.instance.instance_id.as_str()), Type::TEXT_ARRAY),
            (&column(rows, |row| time(row.instance.created_at_ms)), Type::INT8_ARRAY),
            (&column(rows, |row| time(row.instance.updated_at_ms)), Type::INT8_ARRAY),
            (&column(rows, |row| bits(row.instance.revision)), Type::INT8_ARRAY),
            (&column(rows, |row| row.instance.orchestration_name.as_deref()), Type::TEXT_ARRAY),
            (&column(rows, |row| row.instance.orchestration_version.as_deref()), Type::TEXT_ARRAY),
            (&column(rows, |row| row.instance.parent_instance_id.as_deref()), Type::TEXT_ARRAY),
            (&column(rows, |row| bits(row.instance.custom_status_version)), Type::INT8_ARRAY),
            (&column(rows, |row| row.instance.custom_status.as_deref()), Type::BYTEA_ARRAY),
            (&column(rows, labels), Type::TEXT_ARRAY),
            (&column(rows, |row| bits(row.current.execution_id)), Type::INT8_ARRAY),
            (&column(rows, |row| status_code(row.current.status)), Type::INT2_ARRAY),
            (&column(rows, |row| time(row.current.started_at_ms)), Type::INT8_ARRAY),
            (&column(rows, |row| row.current.completed_at_ms.map(time)), Type::INT8_ARRAY),
            (&column(rows, |row| bits(row.last_event_id)), Type::INT8_ARRAY),
            (&column(rows, |row| row.current.incarnation.map(bits)), Type::INT8_ARRAY),
            (
                &column(rows, |row| row.current.pinned_version.as_ref().map(ToString::to_string)),
                Type::TEXT_ARRAY,
            ),
            (&column(rows, pin), Type::TEXT_ARRAY),
            (&column(rows, |row| row.current.output.as_deref()), Type::BYTEA_ARRAY),
        ];
        self.insert(sql, values).await
    }

    async fn insert_labels(&self, rows: &[InstanceRow]) -> Result<(), ProviderError> {
        let labels: Vec<(&str, &str, i64, &str)> = rows
            .iter()
            .map(|row| &row.instance)
            .flat_map(|row| row.labels.iter().map(move |(key, value)| (row, key, value)))
            .map(|(row, key, value)| {
                (key.as_str(), value.as_str(), time(row.created_at_ms), row.instance_id.as_str())
            })
            .collect();
        if labels.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO @schema@.label (key, value, created_at_ms, instance_id) SELECT * FROM unnest($1, $2, $3, $4)";
        let values: &[Parameter<'_>] = &[
            (&column(&labels, |label| label.0), Type::TEXT_ARRAY),
            (&column(&labels, |label| label.1), Type::TEXT_ARRAY),
            (&column(&labels, |label| label.2), Type::INT8_ARRAY),
            (&column(&labels, |label| label.3), Type::TEXT_ARRAY),
        ];
        self.insert(sql, values).await
    }

    async fn insert_past_executions(&self, rows: &[(String, ExecutionContent)]) -> Result<(), ProviderError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO @schema@.past_execution (instance_id, execution_id, status, started_at_ms, completed_at_ms,
                       incarnation, pinned_version, output)
                   SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)";
        let values: &[Parameter<'_>] = &[
            (&column(rows, |(instance_id, _)| instance_id.as_str()), Type::TEXT_ARRAY),
            (&column(rows, |(_, row)| bits(row.execution_id)), Type::INT8_ARRAY),
            (&column(rows, |(_, row)| status_code(row.status)), Type::INT2_ARRAY),
            (&column(rows, |(_, row)| time(row.started_at_ms)), Type::INT8_ARRAY),
            (&column(rows, |(_, row)| row.completed_at_ms.map(time)), Type::INT8_ARRAY),
            (&column(rows, |(_, row)| row.incarnation.map(bits)), Type::INT8_ARRAY),
            (
                &column(rows, |(_, row)| row.pinned_version.as_ref().map(ToString::to_string)),
                Type::TEXT_ARRAY,
            ),
            (&column(rows, |(_, row)| row.output.as_deref()), Type::BYTEA_ARRAY),
        ];
        self.insert(sql, values).await
    }

    async fn insert_events(&self, batches: &[EventBatch]) -> Result<(), ProviderError> {
        if batches.is_empty() {
            return Ok(());
        }
        // Each event names its batch by the place of that.
        let events: Vec<(i32, &StoredEvent)> = (1..)
            .zip(batches)
            .flat_map(|(place, batch)| batch.events.iter().map(move |event| (place, event)))
            .collect();
        let sql = "INSERT INTO @schema@.event_batch (instance_id, execution_id, last_id, ids, data)
                   SELECT b.instance_id, b.execution_id, e.last_id, e.ids, e.data
                     FROM unnest($1, $2) WITH ORDINALITY AS b(instance_id, execution_id, place)
                     JOIN (SELECT n.place, max(n.id) AS last_id, array_agg(n.id) AS ids, array_agg(n.data) AS data
                             FROM (SELECT * FROM unnest($3, $4, $5) AS n(place, id, data) ORDER BY 1, 2) n
                            GROUP BY n.place) e ON e.place = b.place";
        let values: &[Parameter<'_>] = &[
            (&column(batches, |batch| batch.instance_id.as_str()), Type::TEXT_ARRAY),
            (&column(batches, |batch| bits(batch.execution_id)), Type::INT8_ARRAY),
            (&column(&events, |(place, _)| *place), Type::INT4_ARRAY),
            (&column(&events, |(_, event)| bits(event.event_id)), Type::INT8_ARRAY),
            (&column(&events, |(_, event)| event.data.as_ref()), Type::BYTEA_ARRAY),
        ];
        self.insert(sql, values).await
    }

    async fn insert_messages(&self, rows: &[MessageContent]) -> Result<(), ProviderError> {
        if rows.is_empty() {
            return Ok(());
        }
        let visible = |row: &MessageContent| row.message.visible_at_ms.map(time);
        let sql = "INSERT INTO @schema@.message (id, instance_id, late, visible_at_ms, attempts, timer_execution_id,
                       timer_id, body) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)";
        let values: &[Parameter<'_>] = &[
            (&column(rows, |row| bits(row.id)), Type::INT8_ARRAY),
            (&column(rows, |row| row.message.instance.as_str()), Type::TEXT_ARRAY),
            (&column(rows, |row| visible(row).is_some()), Type::BOOL_ARRAY),
            (&column(rows, |row| visible(row).unwrap_or(0)), Type::INT8_ARRAY),
            (&column(rows, |row| attempts(row.attempts)), Type::INT4_ARRAY),
            (&column(rows, |row| row.message.timer.map(|timer| bits(timer.execution_id))), Type::INT8_ARRAY),
            (&column(rows, |row| row.message.timer.map(|timer| bits(timer.timer_id))), Type::INT8_ARRAY),
            (&column(rows, |row| row.message.body.as_ref()), Type::BYTEA_ARRAY),
        ];
        self.insert(sql, values).await?;
        let is_start = |row: &MessageContent| row.message.guard == StartGuard::IfAbsent;
        let noted: Vec<&MessageContent> =
            rows.iter().filter(|row| is_start(row) || row.holds_instance).collect();
        let values: &[Parameter<'_>] = &[
            (&column(&noted, |row| row.message.instance.as_str()), Type::TEXT_ARRAY),
            (&column(&noted, |row| bits(row.id)), Type::INT8_ARRAY),
            (&column(&noted, |row| is_start(row)), Type::BOOL_ARRAY),
            (&column(&noted, |row| visible(row).filter(|_| row.holds_instance)), Type::INT8_ARRAY),
        ];
        self.insert("INSERT INTO segno_import_message SELECT * FROM unnest($1, $2, $3, $4)", values).await
    }

    async fn insert_work(&self, rows: &[WorkItemContent]) -> Result<(), ProviderError> {
        if rows.is_empty() {
            return Ok(());
        }
        let delayed = |row: &WorkItemContent| row.delayed_until_ms.map(time);
        let sql =
            "INSERT INTO @schema@.activity (id, instance_id, execution_id, activity_id, lane, session_id,
                       ready, next_at_ms, attempts, visible_at_ms, body)
                   SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let values: &[Parameter<'_>] = &[
            (&column(rows, |row| bits(row.id)), Type::INT8_ARRAY),
            (&column(rows, |row| row.message.activity.instance.as_str()), Type::TEXT_ARRAY),
            (&column(rows, |row| bits(row.message.activity.execution_id)), Type::INT8_ARRAY),
            (&column(rows, |row| bits(row.message.activity.activity_id)), Type::INT8_ARRAY),
            (&column(rows, |row| lane(row.message.tag.as_deref())), Type::TEXT_ARRAY),
            (&column(rows, |row| row.message.session_id.as_deref()), Type::TEXT_ARRAY),
            (&column(rows, |row| delayed(row).is_none()), Type::BOOL_ARRAY),
            (&column(rows, |row| delayed(row).unwrap_or(0)), Type::INT8_ARRAY),
            (&column(rows, |row| attempts(row.attempts)), Type::INT4_ARRAY),
            (&column(rows, |row| row.message.visible_at_ms.map(time)), Type::INT8_ARRAY),
            (&column(rows, |row| row.message.body.as_ref()), Type::BYTEA_ARRAY),
        ];
        self.insert(sql, values).await
    }

    async fn insert_records(&self, rows: &[Record]) -> Result<(), ProviderError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO @schema@.record (kind, id, version, due_at_ms, expires_at_ms, body)
                   SELECT * FROM unnest($1, $2, $3, $4, $5, $6)";
        let values: &[Parameter<'_>] = &[
            (&column(rows, |row| row.kind.as_str()), Type::TEXT_ARRAY),
            (&column(rows, |row| row.id.as_str()), Type::TEXT_ARRAY),
            (&column(rows, |row| bits(row.version)), Type::INT8_ARRAY),
            (&column(rows, |row| row.due_at_ms.map(time)), Type::INT8_ARRAY),
            (&column(rows, |row| row.expires_at_ms.map(time)), Type::INT8_ARRAY),
            (&column(rows, |row| row.body.as_ref()), Type::BYTEA_ARRAY),
        ];
        self.insert(sql, values).await
    }
}

fn attempts(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_the_database_reads_them() {
        for (texts, literal) in [
            (&[][..], r#"{}"#),
            (&["a", "b c"], r#"{"a","b c"}"#),
            (&["", r#"say "hi""#, r"back\slash", "{,}"], r#"{"","say \"hi\"","back\\slash","{,}"}"#),
        ] {
            assert_eq!(list_literal(texts.iter().copied()), literal);
        }
    }
}
