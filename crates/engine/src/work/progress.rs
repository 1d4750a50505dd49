//! The progress of an attempt, kept as a record for the next one.

use std::time::Duration;

use crate::client::Client;
use crate::clock::duration_ms;
use crate::error::Error;
use crate::payload::Payload;
use crate::store::{Expect, ProviderError, RecordBatch, RecordWrite, Store};

/// Kind of the records that keep the progress of running activities, by idempotency key.
const PROGRESS_KIND: &str = "segno.progress";
/// How long the progress of an activity is kept for its next attempt.
const PROGRESS_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The latest progress of an activity, if any was stored.
pub(crate) async fn read(store: &dyn Store, key: &str) -> Result<Option<Payload>, Error> {
    let Some(record) = store.get_record(PROGRESS_KIND, key).await? else { return Ok(None) };
    Payload::stored(&String::from_utf8_lossy(&record.body)).map(Some)
}

/// Progress as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct LastProgress {
    /// What the attempt reported.
    pub value: Payload,
    /// When that was stored, in Unix milliseconds of the store's clock.
    pub stored_at_ms: u64,
}

impl Client {
    /// The latest progress of an activity, by its idempotency key; `None` when none is kept.
    ///
    /// # Errors
    /// Those of the store, and `stored-data-unreadable`.
    pub async fn activity_progress(&self, idempotency_key: &str) -> Result<Option<LastProgress>, Error> {
        let Some(record) = self.store().get_record(PROGRESS_KIND, idempotency_key).await? else {
            return Ok(None);
        };
        let value = Payload::stored(&String::from_utf8_lossy(&record.body))?;
        // Every write sets the same time-to-live, so the expiry shows the time of the write.
        let expires_at_ms = record.expires_at_ms.unwrap_or_default();
        let stored_at_ms = expires_at_ms.saturating_sub(duration_ms(PROGRESS_RETENTION));
        Ok(Some(LastProgress { value, stored_at_ms }))
    }
}

/// What a write expects that comes next after whatever is stored now.
pub(crate) async fn version(store: &dyn Store, key: &str) -> Result<Expect, ProviderError> {
    let record = store.get_record(PROGRESS_KIND, key).await?;
    Ok(record.map_or(Expect::Absent, |record| Expect::Version(record.version)))
}

/// Stores progress over what is expected to be there; returns what the next write is to expect.
pub(crate) async fn store(
    store: &dyn Store,
    key: &str,
    expect: Expect,
    progress: &Payload,
) -> Result<Expect, ProviderError> {
    let batch = RecordBatch { writes: vec![put(key, expect, progress)], ..RecordBatch::default() };
    let versions = store.commit_records(batch).await?;
    Ok(versions.first().map_or(Expect::Absent, |version| Expect::Version(*version)))
}

/// The write that stores progress over what is expected to be there.
pub(crate) fn put(key: &str, expect: Expect, progress: &Payload) -> RecordWrite {
    RecordWrite::Put {
        kind: PROGRESS_KIND.to_owned(),
        id: key.to_owned(),
        expect,
        due_at_ms: None,
        time_to_live: Some(PROGRESS_RETENTION),
        body: progress.as_str().as_bytes().to_vec().into(),
    }
}

/// The write that forgets the progress of an activity that succeeded. The commit that does it holds the lock of the activity, so nothing
/// newer can be there.
pub(crate) fn delete(key: &str) -> RecordWrite {
    RecordWrite::Delete { kind: PROGRESS_KIND.to_owned(), id: key.to_owned(), expect: Expect::Anything }
}
