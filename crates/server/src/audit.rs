//! Who changed what. An entry is on the disk before the answer leaves; entries of one moment share a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite, Store};
use segno_api::audit::AuditEntry;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::access::{Caller, timestamp};
use crate::app::App;
use crate::problem::{Code, Refusal};
use crate::request_id;
use crate::scope::Scope;

/// Kind of the records.
const KIND: &str = "segno.audit";

/// Entries that wait for their commit.
const MAX_WAITING: usize = 4_096;

/// Most entries of one commit.
const MAX_BATCH: usize = 512;

#[derive(Serialize, Deserialize)]
struct StoredEntry {
    at_ms: u64,
    key: Option<String>,
    operation: String,
    path: String,
    status: u16,
    request_id: String,
}

struct Waiting {
    write: RecordWrite,
    done: oneshot::Sender<bool>,
}

/// The log.
pub struct AuditLog {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    retention: Duration,
    /// Entries so far: tells those of one millisecond apart.
    count: AtomicU64,
    queue: mpsc::Sender<Waiting>,
}

impl AuditLog {
    /// A log in a store. Its task ends when the log is dropped.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        retention: Duration,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        tokio::spawn(write_down(store, waiting));
        AuditLog { clock, ids, retention, count: AtomicU64::new(0), queue }
    }

    async fn add(&self, scope: &Scope, entry: StoredEntry) -> Result<(), Refusal> {
        let failed =
            || Refusal::new(Code::Unavailable, "it was done, but could not be written into the audit log");
        let body = serde_json::to_vec(&entry).map_err(|_| failed())?;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let unique = self.ids.new_uuid().simple().to_string();
        let write = RecordWrite::Put {
            kind: KIND.to_owned(),
            id: entry_id(scope, entry.at_ms, number, &unique),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(self.retention),
            body: body.into(),
        };
        let (done, committed) = oneshot::channel();
        self.queue.send(Waiting { write, done }).await.map_err(|_| failed())?;
        if committed.await.unwrap_or(false) { Ok(()) } else { Err(failed()) }
    }
}

/// A page of entries of a scope, newest first.
///
/// # Errors
/// When the store is away.
pub async fn list(
    store: &dyn Store,
    scope: &Scope,
    after_id: Option<&str>,
    limit: usize,
) -> Result<Vec<AuditEntry>, Refusal> {
    let after = after_id.map(|id| scope.stored(id));
    let request = ListRecords { kind: KIND, id_prefix: scope.prefix(), after_id: after.as_deref(), limit };
    let records = store.list_records(request).await?;
    let entries = records.iter().filter_map(|record| {
        let entry: StoredEntry = serde_json::from_slice(&record.body).ok()?;
        Some(AuditEntry {
            id: scope.shown(&record.id)?.to_owned(),
            at: timestamp(entry.at_ms),
            key: entry.key,
            operation: entry.operation,
            path: entry.path,
            namespace: scope.namespace().to_owned(),
            tenant: scope.tenant().to_owned(),
            status: entry.status,
            request_id: entry.request_id,
        })
    });
    Ok(entries.collect())
}

/// Ids ascend from new to old, so that a listing by id begins with the newest.
fn entry_id(scope: &Scope, at_ms: u64, number: u64, unique: &str) -> String {
    scope.stored(&format!("{:016x}-{:016x}-{unique}", u64::MAX - at_ms, u64::MAX - number))
}

async fn write_down(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<Waiting>) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let (writes, dones): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|entry| (entry.write, entry.done)).unzip();
        let committed = store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await;
        if let Err(error) = &committed {
            tracing::error!(%error, "the audit log could not be written");
        }
        for done in dones {
            // A caller that has gone away does not wait for it.
            let _ = done.send(committed.is_ok());
        }
    }
}

/// Writes down every request that changes something, after it was answered and before the answer leaves.
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let route =
        request.extensions().get::<MatchedPath>().map_or_else(String::new, |path| path.as_str().to_owned());
    let operation = format!("{} {route}", request.method());
    let path = request.uri().path().to_owned();
    let key = request.extensions().get::<Caller>().and_then(|caller| caller.key_id().map(str::to_owned));
    let (mut parts, body) = request.into_parts();
    let scope = match Scope::of_request(&mut parts).await {
        Ok(scope) => scope,
        Err(refusal) => return refusal.into_response(),
    };
    let response = next.run(Request::from_parts(parts, body)).await;
    let entry = StoredEntry {
        at_ms: app.audit.clock.now_ms(),
        key,
        operation,
        path,
        status: response.status().as_u16(),
        request_id: request_id::current().unwrap_or_default(),
    };
    match app.audit.add(&scope, entry).await {
        Ok(()) => response,
        Err(refusal) => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_from_new_to_old() {
        let scope = Scope::new("shop", "eu").unwrap();
        let ids = [(2, 5, "a"), (2, 4, "b"), (1, 9, "c")]
            .map(|(at_ms, number, unique)| entry_id(&scope, at_ms, number, unique));
        assert!(ids.is_sorted(), "{ids:?}");
    }
}
