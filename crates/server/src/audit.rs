//! The audit log: which key changed what. Entries of one moment share a commit.
//!
//! **Invariant.** The log never changes an answer: what an operation returned is what its caller gets. The reasons are in
//! `docs/adr/0028-audit-does-not-answer.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use segno::clock::{self, Clock};
use segno::ids::IdSource;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite, Store};
use segno_actions::{Keep, Listed, Unreadable, free_text};
use segno_api::audit::AuditEntry;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::access::{Caller, timestamp};
use crate::app::App;
use crate::problem::Refusal;
use crate::refused::{self, RefusalBudget};
use crate::request_id;
use crate::scope::Scope;
use crate::telemetry::{AUDIT_DROPPED, AUDIT_FAILURES, AUDIT_SKIPPED};

/// Kind of the records.
pub(crate) const KIND: &str = "segno.audit";

/// Entries that wait for their commit.
const MAX_WAITING: usize = 4_096;

/// Most entries of one commit.
const MAX_BATCH: usize = 512;

/// The answer to a successful operation waits so long for its entry.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Between two tries to write entries.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Header of a request with the reason of its change.
const REASON: HeaderName = HeaderName::from_static("segno-reason");

/// Longest reason in that header, in bytes of its decoded text.
const MAX_REASON_BYTES: usize = 1_000;

/// Header of a success whose entry is not durable (yet).
const WARNING: HeaderName = HeaderName::from_static("segno-warning");

#[derive(Serialize, Deserialize)]
pub(crate) struct StoredEntry {
    pub(crate) at_ms: u64,
    pub(crate) key: Option<String>,
    pub(crate) operation: String,
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) request_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

struct Waiting {
    write: RecordWrite,
    /// `None` when the caller does not wait.
    written: Option<oneshot::Sender<()>>,
}

/// The log.
pub struct AuditLog {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    keep: Keep,
    /// Entries so far: tells those of one millisecond apart.
    count: AtomicU64,
    queue: mpsc::Sender<Waiting>,
    refusals: RefusalBudget,
}

/// What is known of an entry before the operation is done. As an extension of a request, for operations that write their entry in
/// their own commit.
#[derive(Clone)]
pub struct Draft {
    scope: Scope,
    key: Option<String>,
    operation: String,
    path: String,
    reason: Option<String>,
}

/// As an extension of an answer: the reason that the body of its request gave.
#[derive(Clone)]
struct Reason(String);

/// An answer whose audit entry has the reason that the body of its request gave, if it gave one.
pub fn with_reason(mut response: Response, reason: Option<String>) -> Response {
    if let Some(reason) = reason {
        response.extensions_mut().insert(Reason(reason));
    }
    response
}

/// The reason that a request gives in the header [`REASON`], for routes whose bodies have none. Its value is percent-encoded,
/// because browsers send Latin-1 only.
fn reason_of(parts: &Parts) -> Result<Option<String>, Refusal> {
    let Some(value) = parts.headers.get(REASON) else { return Ok(None) };
    let text = percent_encoding::percent_decode(value.as_bytes()).decode_utf8();
    let Ok(text) = text else { return Err(Refusal::field("Segno-Reason", "is not percent-encoded UTF-8")) };
    match free_text::problem(&text, MAX_REASON_BYTES) {
        Some(problem) => Err(Refusal::field("Segno-Reason", problem)),
        None => Ok(Some(text.into_owned()).filter(|text| !text.is_empty())),
    }
}

impl Draft {
    /// What is known of a request in a tenant.
    pub fn of(parts: &Parts, scope: Scope) -> Self {
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let key = parts.extensions.get::<Caller>().and_then(|caller| caller.key_id().map(str::to_owned));
        Draft {
            scope,
            key,
            operation: format!("{} {route}", parts.method),
            path: parts.uri.path().to_owned(),
            reason: None,
        }
    }

    /// The same with the reason of the change.
    pub fn because(self, reason: &str) -> Self {
        Draft { reason: Some(reason.to_owned()), ..self }
    }

    /// The same with the tenant that the request names, which is not that of the entry.
    pub fn naming(mut self, scope: &Scope) -> Self {
        self.path = format!("{}?namespace={}&tenant={}", self.path, scope.namespace(), scope.tenant());
        self
    }
}

/// As an extension of an answer: its operation has written the entry in its own commit.
#[derive(Clone, Copy)]
pub struct Audited;

/// As an extension of an answer: its operation was a worker's, which the log leaves out like all work.
#[derive(Clone, Copy)]
pub struct Unaudited;

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entered {
    /// It is durable.
    Written,
    /// It is not durable yet. The log keeps trying while the process lives.
    Delayed,
    /// It will not be written.
    Dropped,
}

impl AuditLog {
    /// A log in a store. Its task ends when the log is dropped.
    pub fn start(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>, keep: Keep) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        tokio::spawn(write_down(store, clock.clone(), waiting));
        AuditLog { clock, ids, keep, count: AtomicU64::new(0), queue, refusals: RefusalBudget::default() }
    }

    /// Enters a refused request, within the bounds of its key.
    pub fn note_refused(&self, draft: &Draft, status: StatusCode) {
        self.note(&draft.scope, &self.entry(draft, status));
    }

    /// Whether a key has an entry about a refused request left in this minute; takes it.
    pub fn has_room_for(&self, key: Option<&str>) -> bool {
        self.refusals.take(key, self.clock.now_ms())
    }

    /// Queues an entry without waiting for it. An entry that finds the queue full is dropped and
    /// counted, and so is a refusal beyond the bounds of its key. An entry about a failure of the
    /// server has no such bounds: the operation may have been done.
    fn note(&self, scope: &Scope, entry: &StoredEntry) {
        if entry.status < 500 && !self.has_room_for(entry.key.as_deref()) {
            metrics::counter!(AUDIT_SKIPPED).increment(1);
            return;
        }
        let queued = self.queue.try_send(Waiting { write: self.write(scope, entry), written: None });
        if queued.is_err() {
            dropped(entry);
        }
    }

    /// Queues an entry and waits until it is durable, for as long as an answer may be delayed by
    /// it.
    async fn add(&self, scope: &Scope, entry: &StoredEntry) -> Entered {
        let (done, written) = oneshot::channel();
        let waiting = Waiting { write: self.write(scope, entry), written: Some(done) };
        if self.queue.try_send(waiting).is_err() {
            dropped(entry);
            return Entered::Dropped;
        }
        match clock::timeout(&*self.clock, MAX_WAIT, written).await {
            Some(Ok(())) => Entered::Written,
            Some(Err(_)) => Entered::Dropped,
            None => Entered::Delayed,
        }
    }

    /// The write of an entry, for the commit of an operation that is answered with this status if it is done.
    pub fn write_of(&self, draft: &Draft, status: StatusCode) -> RecordWrite {
        self.write(&draft.scope, &self.entry(draft, status))
    }

    fn entry(&self, draft: &Draft, status: StatusCode) -> StoredEntry {
        StoredEntry {
            at_ms: self.clock.now_ms(),
            key: draft.key.clone(),
            operation: draft.operation.clone(),
            path: draft.path.clone(),
            status: status.as_u16(),
            request_id: request_id::current().unwrap_or_default(),
            reason: draft.reason.clone(),
        }
    }

    fn write(&self, scope: &Scope, entry: &StoredEntry) -> RecordWrite {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let unique = self.ids.new_uuid().simple().to_string();
        RecordWrite::Put {
            kind: KIND.to_owned(),
            id: entry_id(scope, entry.at_ms, number, &unique),
            expect: Expect::Anything,
            due_at_ms: self.keep.due_at_ms(timestamp(entry.at_ms)),
            time_to_live: self.keep.life(),
            body: serde_json::to_vec(entry).unwrap_or_default().into(),
        }
    }
}

/// The cursor of the place before all entries of a time and earlier: where a listing of what came before it begins.
pub fn before_time(until_ms: u64) -> String {
    // Behind all ids of that millisecond, which go on with a dash.
    format!("{:016x}~", u64::MAX - until_ms)
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
) -> Result<Vec<Listed<AuditEntry>>, Refusal> {
    let after = after_id.map(|id| scope.stored(id));
    let request = ListRecords { kind: KIND, id_prefix: scope.prefix(), after_id: after.as_deref(), limit };
    let records = store.list_records(request).await?;
    let entries = records.iter().filter_map(|record| {
        let id = scope.shown(&record.id)?.to_owned();
        let entry: StoredEntry = match serde_json::from_slice(&record.body) {
            Ok(entry) => entry,
            Err(error) => return Some(Listed::Unreadable(Unreadable { id, reason: error.to_string() })),
        };
        Some(Listed::Readable(shown(scope, id, entry)))
    });
    Ok(entries.collect())
}

/// An entry as callers see it.
pub(crate) fn shown(scope: &Scope, id: String, entry: StoredEntry) -> AuditEntry {
    AuditEntry {
        id,
        at: timestamp(entry.at_ms),
        key: entry.key,
        operation: entry.operation,
        path: entry.path,
        namespace: scope.namespace().to_owned(),
        tenant: scope.tenant().to_owned(),
        status: entry.status,
        request_id: entry.request_id,
        reason: entry.reason,
    }
}

/// Ids ascend from new to old, so that a listing by id begins with the newest.
fn entry_id(scope: &Scope, at_ms: u64, number: u64, unique: &str) -> String {
    scope.stored(&format!("{:016x}-{:016x}-{unique}", u64::MAX - at_ms, u64::MAX - number))
}

fn dropped(entry: &StoredEntry) {
    metrics::counter!(AUDIT_DROPPED).increment(1);
    let StoredEntry { operation, path, status, request_id, .. } = entry;
    tracing::error!(
        operation,
        path,
        status,
        request_id,
        "an entry of the audit log was dropped: its queue is full"
    );
}

/// Writes what is queued. A batch that fails is written again until it is durable: its ids are its
/// own, so twice is once.
async fn write_down(store: Arc<dyn Store>, clock: Arc<dyn Clock>, mut waiting: mpsc::Receiver<Waiting>) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let (writes, callers): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|entry| (entry.write, entry.written)).unzip();
        if commit(&*store, &*clock, writes).await {
            for caller in callers.into_iter().flatten() {
                // A caller that has stopped waiting does not need it.
                let _ = caller.send(());
            }
        }
    }
}

/// Whether entries were written, in as many tries as it took.
async fn commit(store: &dyn Store, clock: &dyn Clock, writes: Vec<RecordWrite>) -> bool {
    loop {
        let batch = RecordBatch { writes: writes.clone(), ..RecordBatch::default() };
        let Err(error) = store.commit_records(batch).await else { return true };
        metrics::counter!(AUDIT_FAILURES).increment(1);
        let entries = writes.len();
        if error.is_retryable() {
            tracing::warn!(%error, entries, "the audit log could not be written; trying again");
        } else {
            tracing::error!(%error, entries, "entries of the audit log were dropped: they could not be written");
            metrics::counter!(AUDIT_DROPPED).increment(entries as u64);
            return false;
        }
        clock::sleep(clock, RETRY_PAUSE).await;
    }
}

/// Writes an entry for every request that changes something. The answer is always the operation's
/// own.
///
/// A success waits until its entry is durable, for a limited time; after that it leaves with the
/// header [`WARNING`]. A refusal does not wait: it has changed nothing, and must not be delayed by
/// a store that fails.
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let scope = match Scope::of_request(&mut parts).await {
        Ok(scope) => scope,
        Err(refusal) => {
            refused::note(&app, &mut parts, None, &refusal).await;
            return refusal.into_response();
        }
    };
    let mut draft = Draft::of(&parts, scope);
    match reason_of(&parts) {
        Ok(reason) => draft.reason = reason,
        Err(refusal) => {
            app.audit.note_refused(&draft, refusal.status());
            return refusal.into_response();
        }
    }
    parts.extensions.insert(draft.clone());
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let extensions = response.extensions();
    if extensions.get::<Audited>().is_some() || extensions.get::<Unaudited>().is_some() {
        return response;
    }
    if let Some(Reason(reason)) = extensions.get::<Reason>() {
        draft.reason = Some(reason.clone());
    }
    let (scope, entry) = (&draft.scope, app.audit.entry(&draft, response.status()));
    if !response.status().is_success() {
        app.audit.note(scope, &entry);
        return response;
    }
    let warning = match app.audit.add(scope, &entry).await {
        Entered::Written => return response,
        Entered::Delayed => "audit-entry-delayed",
        Entered::Dropped => "audit-entry-dropped",
    };
    response.headers_mut().insert(WARNING, HeaderValue::from_static(warning));
    response
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

    #[test]
    fn a_listing_of_what_came_before_a_time_leaves_out_that_time() {
        let scope = Scope::new("shop", "eu").unwrap();
        let place = scope.stored(&before_time(2_000));
        assert!(entry_id(&scope, 2_000, 0, "a") < place && entry_id(&scope, 2_001, 9, "b") < place);
        assert!(entry_id(&scope, 1_999, 9, "c") > place);
    }
}
