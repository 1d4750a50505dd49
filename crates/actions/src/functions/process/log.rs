//! What a tool wrote to stderr, kept for a while beside the history.

use segno::store::{Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};
use serde::{Deserialize, Serialize};

use super::super::error::FunctionError;
use super::super::limits::LOG_RETENTION;

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

/// The logs of one instance, at most so many.
pub(crate) async fn list_logs(
    store: &dyn Store,
    instance: &str,
    limit: usize,
) -> Result<Vec<FunctionLog>, FunctionError> {
    let id_prefix = format!("{instance}/");
    let mut logs = Vec::new();
    let mut after_id: Option<String> = None;
    loop {
        let request =
            ListRecords { kind: LOG_KIND, id_prefix: &id_prefix, after_id: after_id.as_deref(), limit };
        let page = store.list_records(request).await?;
        for record in &page {
            let log = decode(record)?;
            // Another instance may be called like this one with a slash and more.
            if log.key.instance == instance && logs.len() < limit {
                logs.push(log);
            }
        }
        match page.last() {
            Some(last) if logs.len() < limit => after_id = Some(last.id.clone()),
            _ => return Ok(logs),
        }
    }
}

fn decode(record: &Record) -> Result<FunctionLog, FunctionError> {
    serde_json::from_slice(&record.body).map_err(|error| FunctionError::Unreadable {
        what: format!("the log {:?}", record.id),
        reason: error.to_string(),
    })
}
