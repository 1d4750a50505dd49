//! Appending to the log.

use bytes::Bytes;
use segno::store::ErrorKind;

use super::batch::check;
use super::limits::{MAX_BATCH_BYTES, MAX_BATCH_EVENTS};
use crate::event::Envelope;
use crate::ids::Ulid;
use crate::objects::{Objects, Paths, Put, StorageError};

/// Appends batches. Any number of writers may append at once.
#[derive(Debug, Clone)]
pub struct LogWriter {
    objects: Objects,
    paths: Paths,
}

impl LogWriter {
    /// A writer of a scope, in the store of the log.
    pub fn new(objects: Objects, paths: Paths) -> Self {
        LogWriter { objects, paths }
    }

    /// Appends a batch of events of ascending ids: all of them or none. It is durable when this
    /// returns; the result is the id of the first event.
    ///
    /// Appending the same batch again is the same append, so a caller repeats the call when the
    /// outcome is unknown.
    ///
    /// # Errors
    /// `Invalid` when the batch breaks a rule or a limit, `Conflict` when another batch has its
    /// first id, `Unavailable` when the outcome is unknown.
    pub async fn append(&self, batch: &[Envelope]) -> Result<Ulid, StorageError> {
        let invalid = |problem: String| StorageError::new(ErrorKind::Invalid, self.paths.log(), problem);
        let first = batch.first().map(|event| event.event_id);
        let first = first.ok_or_else(|| invalid("a batch has no events; append at least one".to_owned()))?;
        if batch.len() > MAX_BATCH_EVENTS {
            let problem =
                format!("a batch has {} events; append at most {MAX_BATCH_EVENTS} at once", batch.len());
            return Err(invalid(problem));
        }
        check(&self.paths, first, batch.iter()).map_err(invalid)?;
        let bytes = Bytes::from(Envelope::encode_batch(batch));
        if bytes.len() > MAX_BATCH_BYTES {
            let problem =
                format!("a batch has {} bytes; append at most {MAX_BATCH_BYTES} at once", bytes.len());
            return Err(invalid(problem));
        }
        let path = self.paths.batch(first);
        match self.objects.put_new(&path, bytes).await? {
            Put::Done => Ok(first),
            Put::Taken => Err(StorageError::new(
                ErrorKind::Conflict,
                &path,
                "another batch has this first id; draw new ids and append again",
            )),
        }
    }
}
