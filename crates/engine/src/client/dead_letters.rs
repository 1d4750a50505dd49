//! Messages that were parked because they could not be taken.

use super::Client;
use crate::dead_letter::{DEAD_LETTER_KIND, DeadLetter, Queue};
use crate::error::{Code, Error};
use crate::limits::MAX_PAGE_ROWS;
use crate::store::{ErrorKind, Expect, ListRecords, OrchestratorMessage, RecordBatch, RecordWrite};

/// A page of dead letters, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// The letters.
    pub letters: Vec<DeadLetter>,
    /// The id to continue after; `None` when this is the last page.
    pub next: Option<String>,
}

impl Client {
    /// A page of dead letters.
    ///
    /// # Errors
    /// `stored-data-unreadable` when one of them cannot be read.
    pub async fn dead_letters(&self, after_id: Option<&str>) -> Result<DeadLetters, Error> {
        let request = ListRecords { kind: DEAD_LETTER_KIND, id_prefix: "", after_id, limit: MAX_PAGE_ROWS };
        let records = self.store.list_records(request).await?;
        let next = (records.len() == MAX_PAGE_ROWS)
            .then(|| records.last().map(|record| record.id.clone()))
            .flatten();
        let letters: Result<Vec<DeadLetter>, String> =
            records.iter().map(|record| DeadLetter::from_record(&record.id, &record.body)).collect();
        let letters = letters.map_err(|reason| {
            Error::new(Code::StoredDataUnreadable, format!("a dead letter cannot be read: {reason}"))
        })?;
        Ok(DeadLetters { letters, next })
    }

    /// Puts a dead letter back into its queue, once.
    ///
    /// # Errors
    /// `not-found` when there is no such letter.
    pub async fn resubmit_dead_letter(&self, id: &str) -> Result<(), Error> {
        let (letter, version) = self.dead_letter(id).await?;
        let mut batch = RecordBatch { writes: vec![delete(id, version)], ..RecordBatch::default() };
        match letter.queue {
            Queue::Orchestrator => {
                batch.orchestrator_items.push(OrchestratorMessage::new(letter.instance, letter.body));
            }
            Queue::Worker => batch.worker_items.push(letter.worker_message()),
        }
        self.commit_dead_letter(id, batch).await
    }

    /// Throws a dead letter away.
    ///
    /// # Errors
    /// `not-found` when there is no such letter.
    pub async fn discard_dead_letter(&self, id: &str) -> Result<(), Error> {
        let (_, version) = self.dead_letter(id).await?;
        let batch = RecordBatch { writes: vec![delete(id, version)], ..RecordBatch::default() };
        self.commit_dead_letter(id, batch).await
    }

    async fn dead_letter(&self, id: &str) -> Result<(DeadLetter, u64), Error> {
        let record = self.store.get_record(DEAD_LETTER_KIND, id).await?;
        let record = record.ok_or_else(|| no_such_letter(id))?;
        let letter = DeadLetter::from_record(id, &record.body)
            .map_err(|reason| Error::new(Code::StoredDataUnreadable, reason))?;
        Ok((letter, record.version))
    }

    async fn commit_dead_letter(&self, id: &str, batch: RecordBatch) -> Result<(), Error> {
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(no_such_letter(id)),
            Err(error) => Err(error.into()),
        }
    }
}

fn delete(id: &str, version: u64) -> RecordWrite {
    RecordWrite::Delete {
        kind: DEAD_LETTER_KIND.to_owned(),
        id: id.to_owned(),
        expect: Expect::Version(version),
    }
}

fn no_such_letter(id: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!("there is no dead letter with the id {id:?}; it may have been taken already"),
    )
}
