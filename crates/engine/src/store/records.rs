//! Versioned documents with an optional due time: the third facet of a store.
//!
//! Everything outside the engine that must be stored (actions, schedules, batches, keys, claims, dead
//! letters) is a record. One commit changes any number of them and enqueues work, all or nothing.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::error::ProviderError;
use super::message::{OrchestratorMessage, WorkerMessage};

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What sort of thing it is; records of a kind are listed and due together.
    pub kind: String,
    /// Its name within the kind.
    pub id: String,
    /// Grows with every write of any record of the store, so a version never comes back.
    pub version: u64,
    /// When it wants attention, in Unix milliseconds.
    pub due_at_ms: Option<u64>,
    /// When it ceases to exist, in Unix milliseconds of the store's clock.
    pub expires_at_ms: Option<u64>,
    /// The document; opaque.
    pub body: Bytes,
}

/// What must be true of a record for a write to go ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expect {
    /// Write whatever is there.
    #[default]
    Anything,
    /// Nothing may be there (an expired record is nothing).
    Absent,
    /// Exactly this version must be there.
    Version(u64),
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordWrite {
    /// Create or replace.
    Put {
        /// Kind of the record.
        kind: String,
        /// Id of the record.
        id: String,
        /// Condition on what is there now.
        expect: Expect,
        /// New due time, in Unix milliseconds.
        due_at_ms: Option<u64>,
        /// Life from now, by the store's clock; `None` is for ever.
        time_to_live: Option<Duration>,
        /// The new document.
        body: Bytes,
    },
    /// Remove. Removing what is not there is fine unless a version is expected.
    Delete {
        /// Kind of the record.
        kind: String,
        /// Id of the record.
        id: String,
        /// Condition on what is there now.
        expect: Expect,
    },
}

impl RecordWrite {
    /// Kind and id of the record that this touches.
    pub fn key(&self) -> (&str, &str) {
        match self {
            RecordWrite::Put { kind, id, .. } | RecordWrite::Delete { kind, id, .. } => (kind, id),
        }
    }
}

/// Changes that happen together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordBatch {
    /// Record changes; a key may occur once.
    pub writes: Vec<RecordWrite>,
    /// Messages for the orchestrator queue.
    pub orchestrator_items: Vec<OrchestratorMessage>,
    /// Messages for the worker queue.
    pub worker_items: Vec<WorkerMessage>,
    /// What becomes of the batch when a guard forbids a message.
    pub guards: Guards,
}

/// What becomes of a batch with a message that its [`StartGuard`](super::StartGuard) forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Guards {
    /// The message is left out and the rest is done: starting twice is starting once.
    #[default]
    LeaveOut,
    /// The batch is refused with the error of the guard. Messages are judged in order, each after those before it.
    Refuse,
}

/// The folder of an id: its text up to and including the last slash; empty without one. What is due in a folder is found at
/// a cost that does not depend on other folders ([`DueRecords::id_prefix`]).
pub fn folder_of(id: &str) -> &str {
    id.rfind('/').map_or("", |slash| &id[..=slash])
}

/// Which records to list: those of a kind whose id starts with a prefix, in id order.
#[derive(Debug, Clone, Default)]
pub struct ListRecords<'a> {
    /// Kind of the records.
    pub kind: &'a str,
    /// Only ids that start with this.
    pub id_prefix: &'a str,
    /// Only ids after this one: the last id of the page before.
    pub after_id: Option<&'a str>,
    /// At most this many.
    pub limit: usize,
}

/// The readable ones of the requested records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadableRecords {
    /// The records, ascending by id.
    pub records: Vec<Record>,
    /// Why others are missing, once for each range whose ids cannot be read either; without stored
    /// data, and without a path or address of the machine.
    pub damaged: Vec<String>,
}

/// Which due records to return.
#[derive(Debug, Clone, Default)]
pub struct DueRecords<'a> {
    /// Kind of the records.
    pub kind: &'a str,
    /// Only ids that start with this.
    pub id_prefix: &'a str,
    /// Due at or before this time; `None` is the store's now, and then the call may wait.
    pub now_ms: Option<u64>,
    /// At most this many.
    pub limit: usize,
    /// With `now_ms: None`: how long to wait for a record to become due before answering with none.
    pub poll_timeout: Duration,
}

/// Versioned documents with due times.
#[async_trait]
pub trait Records: Send + Sync + 'static {
    /// One record; `None` when absent or expired.
    async fn get_record(&self, kind: &str, id: &str) -> Result<Option<Record>, ProviderError>;

    /// Records of a kind by id prefix, ascending by id, a page at a time. Expired ones are left out.
    async fn list_records(&self, request: ListRecords<'_>) -> Result<Vec<Record>, ProviderError>;

    /// The same past damage, for showing what there is: unreadable records are reported, and
    /// do not hide those behind them, so a page with fewer records than `limit` is the last all the
    /// same. A store that does not read past damage answers as [`Records::list_records`] does.
    async fn list_records_around_damage(
        &self,
        request: ListRecords<'_>,
    ) -> Result<ReadableRecords, ProviderError>;

    /// Due records of a kind by id prefix, ordered by due time, then id. Touches due rows only. Expired ones are left out.
    ///
    /// A prefix that ends with a slash is a *folder*: its cost does not grow with records of other folders, nor with what is
    /// due later. It grows with the folders below it. A call that waits is woken by what concerns its prefix.
    async fn due_records(&self, request: DueRecords<'_>) -> Result<Vec<Record>, ProviderError>;

    /// The earliest due time of a kind.
    async fn next_due_ms(&self, kind: &str) -> Result<Option<u64>, ProviderError>;

    /// Applies a batch, all or nothing. Returns the version of each write in order (0 for a delete).
    ///
    /// # Errors
    /// `Conflict` when an expectation does not hold, `Invalid` when a key occurs twice; with [`Guards::Refuse`] also
    /// `Conflict` or `NotFound` when a guard forbids a message. Nothing is changed then.
    async fn commit_records(&self, batch: RecordBatch) -> Result<Vec<u64>, ProviderError>;
}
