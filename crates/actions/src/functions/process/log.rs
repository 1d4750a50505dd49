//! What a tool wrote to stderr, kept for a while beside the history.

use segno::store::{Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};
use serde::{Deserialize, Serialize};

use super::super::error::FunctionError;
use super::super::limits::LOG_RETENTION;
use crate::listed::Listed;

/// Kind of the records that keep logs.
const LOG_KIND: &str = "segno.function-log";

/// Which log: of which attempt of which call of which instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogKey {
    /// The instance that made the call.
    pub instance: String,
    /// The idempotency key of the call.
    pub call: String,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl LogKey {
    /// The id of the record. It is never taken apart: the record has the parts.
    fn id(&self) -> String {
        format!("{}/{}/{}", self.instance, self.call, self.attempt)
    }
}

/// The log of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionLog {
    /// Whose log it is.
    pub key: LogKey,
    /// How much the tool wrote in all.
    pub total_bytes: u64,
    /// Whether the beginning is missing.
    pub is_cut: bool,
    /// The end of what the tool wrote, without secrets.
    pub text: String,
}

/// Keeps a log. An attempt that was delivered twice keeps the later one.
pub(super) async fn keep(store: &dyn Store, log: &FunctionLog) -> Result<(), FunctionError> {
    let body = serde_json::to_vec(log)
        .map_err(|error| FunctionError::Unreadable { what: "a log".to_owned(), reason: error.to_string() })?;
    let write = RecordWrite::Put {
        kind: LOG_KIND.to_owned(),
        id: log.key.id(),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: Some(LOG_RETENTION),
        body: body.into(),
    };
    store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await?;
    Ok(())
}

pub(crate) async fn read_log(store: &dyn Store, key: &LogKey) -> Result<Option<FunctionLog>, FunctionError> {
    store.get_record(LOG_KIND, &key.id()).await?.as_ref().map(decode).transpose()
}

/// A row of the logs of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRow {
    /// Where the rows after it begin: its id below that of the instance.
    pub cursor: String,
    /// The log.
    pub log: Listed<FunctionLog>,
    /// Whether it is a log of the instance. Another instance may be called like it with a slash and more.
    pub is_own: bool,
}

/// Logs below the id of an instance after a cursor, by call and by attempt as text, at most so many.
pub(crate) async fn list_logs(
    store: &dyn Store,
    instance: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<LogRow>, FunctionError> {
    let id_prefix = format!("{instance}/");
    let after_id = after.map(|after| format!("{id_prefix}{after}"));
    let request = ListRecords { kind: LOG_KIND, id_prefix: &id_prefix, after_id: after_id.as_deref(), limit };
    let rows = store.list_records(request).await?.into_iter().map(|record| {
        let cursor = record.id.strip_prefix(&id_prefix).unwrap_or(&record.id).to_owned();
        let log = Listed::of(decode(&record), &cursor);
        let is_own = match &log {
            Listed::Readable(log) => log.key.instance == instance,
            Listed::Unreadable(_) => true,
        };
        LogRow { cursor, log, is_own }
    });
    Ok(rows.collect())
}

fn decode(record: &Record) -> Result<FunctionLog, FunctionError> {
    serde_json::from_slice(&record.body).map_err(|error| FunctionError::Unreadable {
        what: format!("the log {:?}", record.id),
        reason: error.to_string(),
    })
}
