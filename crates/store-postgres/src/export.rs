//! Giving out everything that the store holds: cursors in one transaction, which sees one moment.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use segno::store::{
    ContentHeader, ContentItem, ExecutionContent, Export, InstanceContent, MessageContent,
    OrchestratorMessage, ProviderError, Record, ScheduledActivityIdentifier, StartGuard, StoredEvent,
    TimerIdentifier, WorkItemContent, WorkerMessage,
};
use tokio_postgres::Row;

use crate::answer::{body, get, optional_body, pairs, pinned_version};
use crate::columns::tag;
use crate::connection::Connection;
use crate::error::failed;
use crate::number::{status, unsigned};

pub(crate) const OPERATION: &str = "export";

/// Rows that a cursor gives at a time.
const ROWS: usize = 200;

/// Items and bytes after which a batch ends.
const MAX_ITEMS: usize = 500;
const MAX_BYTES: usize = 1024 * 1024;

/// An export over a connection of its own, which is in a transaction.
pub(crate) struct OwnExport {
    pub(crate) connection: Connection,
    pub(crate) content: Content,
}

#[async_trait]
impl Export for OwnExport {
    async fn next_items(&mut self) -> Result<Vec<ContentItem>, ProviderError> {
        self.content.next_items(&self.connection).await
    }
}

/// Everything in the store, as the transaction of a connection sees it.
pub(crate) struct Content {
    header: Option<ContentHeader>,
    instances: Cursor,
    executions: Cursor,
    events: Cursor,
    messages: Cursor,
    work: Cursor,
    records: Cursor,
    /// Whose executions are being given out.
    instance: Option<String>,
    /// Events of the execution that was given out last.
    its_events: VecDeque<StoredEvent>,
}

impl Content {
    /// Opens the cursors. `header` says which moment the times are seen from.
    pub(crate) async fn open(
        connection: &Connection,
        schema: &str,
        header: ContentHeader,
    ) -> Result<Content, ProviderError> {
        let taken = header.taken_at_ms;
        let instances = format!(
            "SELECT i.instance_id, i.name, i.version, i.parent_id, i.execution_id, i.created_at_ms,
                    i.updated_at_ms, i.revision, i.custom_status, i.custom_status_version, i.labels
               FROM {schema}.instance i ORDER BY i.instance_id"
        );
        let executions = format!(
            "SELECT e.instance_id, e.execution_id, e.status::bigint, e.output, e.pinned_version, e.incarnation,
                    e.started_at_ms, e.completed_at_ms
               FROM {schema}.execution e ORDER BY e.instance_id, e.execution_id"
        );
        let events = format!(
            "SELECT b.instance_id, b.execution_id, b.ids, b.data
               FROM {schema}.event_batch b ORDER BY b.instance_id, b.execution_id, b.last_id"
        );
        // A fetch that is under way has been an attempt.
        let messages = format!(
            "SELECT m.id, m.instance_id, m.timer_execution_id, m.timer_id, m.body, t.start_id IS NOT DISTINCT FROM m.id,
                    m.attempts + CASE WHEN t.lock_token IS NOT NULL
                        AND m.id = ANY (coalesce(t.fetched, '{{}}') || coalesce(t.fetched_late, '{{}}')) THEN 1 ELSE 0 END,
                    greatest(m.visible_at_ms, t.not_before_ms), t.not_before_ms
               FROM {schema}.message m JOIN {schema}.turn t ON t.instance_id = m.instance_id WHERE m.id > 0 ORDER BY m.id"
        );
        let work = format!(
            "SELECT a.id, a.instance_id, a.execution_id, a.activity_id, a.session_id, a.lane, a.visible_at_ms, a.body,
                    CASE WHEN NOT a.ready AND a.lock_token IS NULL AND a.next_at_ms > {taken} THEN a.next_at_ms END,
                    a.attempts
               FROM {schema}.activity a WHERE a.id > 0 ORDER BY a.id"
        );
        let records = format!(
            "SELECT r.kind, r.id, r.version, r.due_at_ms, r.expires_at_ms, r.body FROM {schema}.record r
              WHERE r.version > 0 AND (r.expires_at_ms IS NULL OR r.expires_at_ms > {taken}) ORDER BY r.kind, r.id"
        );
        Ok(Content {
            header: Some(header),
            instances: Cursor::open(connection, "segno_instances", &instances).await?,
            executions: Cursor::open(connection, "segno_executions", &executions).await?,
            events: Cursor::open(connection, "segno_events", &events).await?,
            messages: Cursor::open(connection, "segno_messages", &messages).await?,
            work: Cursor::open(connection, "segno_work", &work).await?,
            records: Cursor::open(connection, "segno_records", &records).await?,
            instance: None,
            its_events: VecDeque::new(),
        }
        .seen_from(taken))
    }

    fn seen_from(mut self, taken_at_ms: u64) -> Self {
        self.messages.taken_at_ms = taken_at_ms;
        self
    }

    /// The next items; empty at the end.
    pub(crate) async fn next_items(
        &mut self,
        connection: &Connection,
    ) -> Result<Vec<ContentItem>, ProviderError> {
        let mut items = Vec::new();
        let mut bytes = 0;
        while items.len() < MAX_ITEMS
            && bytes < MAX_BYTES
            && let Some(item) = self.next(connection).await?
        {
            bytes += item.size_bytes();
            items.push(item);
        }
        Ok(items)
    }

    async fn next(&mut self, connection: &Connection) -> Result<Option<ContentItem>, ProviderError> {
        if let Some(header) = self.header.take() {
            return Ok(Some(ContentItem::Header(header)));
        }
        if let Some(item) = self.next_of_instances(connection).await? {
            return Ok(Some(item));
        }
        if let Some(row) = self.messages.next(connection).await? {
            return message(&row, self.messages.taken_at_ms).map(Some);
        }
        if let Some(row) = self.work.next(connection).await? {
            return work_item(&row).map(Some);
        }
        match self.records.next(connection).await? {
            Some(row) => record(&row).map(Some),
            None => Ok(None),
        }
    }

    /// Instances, executions and events are three streams in the same order: each event follows its execution, each
    /// execution its instance.
    async fn next_of_instances(
        &mut self,
        connection: &Connection,
    ) -> Result<Option<ContentItem>, ProviderError> {
        if let Some(event) = self.its_events.pop_front() {
            return Ok(Some(ContentItem::Event(event)));
        }
        if let Some(instance) = &self.instance {
            if let Some(row) = self.executions.peek(connection).await?
                && get::<&str>(row, 0)? == instance
            {
                let (item, execution_id) = (execution(row)?, get(row, 1)?);
                self.executions.skip();
                self.its_events = history(&mut self.events, connection, instance, execution_id).await?;
                return Ok(Some(item));
            }
            self.instance = None;
        }
        let Some(row) = self.instances.next(connection).await? else { return Ok(None) };
        self.instance = Some(get(&row, 0)?);
        instance(&row).map(Some)
    }
}

/// The history of the execution that comes next, in order.
async fn history(
    batches: &mut Cursor,
    connection: &Connection,
    instance: &str,
    execution_id: i64,
) -> Result<VecDeque<StoredEvent>, ProviderError> {
    let mut events = Vec::new();
    while let Some(row) = batches.peek(connection).await?
        && get::<&str>(row, 0)? == instance
        && get::<i64>(row, 1)? == execution_id
    {
        let (ids, data): (Vec<i64>, Vec<&[u8]>) = (get(row, 2)?, get(row, 3)?);
        let batch = ids.into_iter().zip(data);
        events.extend(
            batch
                .map(|(id, data)| StoredEvent { event_id: unsigned(id), data: Bytes::copy_from_slice(data) }),
        );
        batches.skip();
    }
    // Batches may overlap when events were appended outside a turn.
    events.sort_by_key(|event| event.event_id);
    Ok(events.into())
}

/// A cursor in the transaction of a connection.
struct Cursor {
    name: &'static str,
    rows: VecDeque<Row>,
    has_ended: bool,
    taken_at_ms: u64,
}

impl Cursor {
    async fn open(connection: &Connection, name: &'static str, sql: &str) -> Result<Cursor, ProviderError> {
        let declare = format!("DECLARE {name} NO SCROLL CURSOR FOR {sql}");
        connection.client().batch_execute(&declare).await.map_err(|error| failed(OPERATION, &error))?;
        Ok(Cursor { name, rows: VecDeque::new(), has_ended: false, taken_at_ms: 0 })
    }

    async fn peek(&mut self, connection: &Connection) -> Result<Option<&Row>, ProviderError> {
        if self.rows.is_empty() && !self.has_ended {
            let fetch = format!("FETCH FORWARD {ROWS} FROM {}", self.name);
            let rows = connection.client().query_typed(&fetch, &[]).await;
            let rows = rows.map_err(|error| failed(OPERATION, &error))?;
            self.has_ended = rows.len() < ROWS;
            self.rows = rows.into();
        }
        Ok(self.rows.front())
    }

    fn skip(&mut self) {
        self.rows.pop_front();
    }

    async fn next(&mut self, connection: &Connection) -> Result<Option<Row>, ProviderError> {
        self.peek(connection).await?;
        Ok(self.rows.pop_front())
    }
}

fn instance(row: &Row) -> Result<ContentItem, ProviderError> {
    Ok(ContentItem::Instance(Box::new(InstanceContent {
        instance_id: get(row, 0)?,
        orchestration_name: get::<Option<&str>>(row, 1)?.map(Arc::from),
        orchestration_version: get::<Option<&str>>(row, 2)?.map(Arc::from),
        parent_instance_id: get(row, 3)?,
        current_execution_id: unsigned(get(row, 4)?),
        created_at_ms: unsigned(get(row, 5)?),
        updated_at_ms: unsigned(get(row, 6)?),
        revision: unsigned(get(row, 7)?),
        custom_status: optional_body(row, 8)?,
        custom_status_version: unsigned(get(row, 9)?),
        labels: pairs(get(row, 10)?),
    })))
}

fn execution(row: &Row) -> Result<ContentItem, ProviderError> {
    Ok(ContentItem::Execution(Box::new(ExecutionContent {
        execution_id: unsigned(get(row, 1)?),
        status: status(OPERATION, get(row, 2)?)?,
        output: optional_body(row, 3)?,
        pinned_version: pinned_version(get(row, 4)?)?,
        incarnation: get::<Option<i64>>(row, 5)?.map(i64::cast_unsigned),
        started_at_ms: unsigned(get(row, 6)?),
        completed_at_ms: get::<Option<i64>>(row, 7)?.map(unsigned),
    })))
}

fn message(row: &Row, taken_at_ms: u64) -> Result<ContentItem, ProviderError> {
    let (execution, timer): (Option<i64>, Option<i64>) = (get(row, 2)?, get(row, 3)?);
    let timer = execution.zip(timer).map(|(execution_id, timer_id)| TimerIdentifier {
        execution_id: execution_id.cast_unsigned(),
        timer_id: timer_id.cast_unsigned(),
    });
    let (visible, not_before): (i64, i64) = (get(row, 7)?, get(row, 8)?);
    let visible_at_ms = Some(unsigned(visible)).filter(|at_ms| *at_ms > taken_at_ms);
    let attempts: i32 = get(row, 6)?;
    Ok(ContentItem::Message(Box::new(MessageContent {
        id: unsigned(get(row, 0)?),
        message: OrchestratorMessage {
            instance: get(row, 1)?,
            visible_at_ms,
            timer,
            guard: if get(row, 5)? { StartGuard::IfAbsent } else { StartGuard::None },
            body: body(row, 4)?,
        },
        attempts: u32::try_from(attempts).unwrap_or(0),
        holds_instance: visible_at_ms.is_some() && visible == not_before,
    })))
}

fn work_item(row: &Row) -> Result<ContentItem, ProviderError> {
    let attempts: i32 = get(row, 9)?;
    Ok(ContentItem::WorkItem(Box::new(WorkItemContent {
        id: unsigned(get(row, 0)?),
        message: WorkerMessage {
            activity: ScheduledActivityIdentifier {
                instance: get(row, 1)?,
                execution_id: get::<i64>(row, 2)?.cast_unsigned(),
                activity_id: get::<i64>(row, 3)?.cast_unsigned(),
            },
            session_id: get(row, 4)?,
            tag: tag(get(row, 5)?),
            visible_at_ms: get::<Option<i64>>(row, 6)?.map(unsigned),
            body: body(row, 7)?,
        },
        delayed_until_ms: get::<Option<i64>>(row, 8)?.map(unsigned),
        attempts: u32::try_from(attempts).unwrap_or(0),
    })))
}

fn record(row: &Row) -> Result<ContentItem, ProviderError> {
    Ok(ContentItem::Record(Box::new(Record {
        kind: get(row, 0)?,
        id: get(row, 1)?,
        version: unsigned(get(row, 2)?),
        due_at_ms: get::<Option<i64>>(row, 3)?.map(unsigned),
        expires_at_ms: get::<Option<i64>>(row, 4)?.map(unsigned),
        body: body(row, 5)?,
    })))
}
