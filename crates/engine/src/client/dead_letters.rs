//! Dead letters: listing, resubmitting, deleting.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::Client;
use super::manage::page_rows;
use crate::dead_letter::{DEAD_LETTER_BODY_KIND, DEAD_LETTER_KIND, DeadLetter, GivenUp};
use crate::error::{Code, Error};
use crate::event::Started;
use crate::store::{
    ErrorKind, ExecutionStatus, Expect, ListRecords, OrchestratorMessage, Record, RecordBatch, RecordWrite,
};

/// Which dead letters to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetterQuery {
    /// Only ids that start with this: see
    /// [`RuntimeOptions::dead_letter_prefix`](crate::RuntimeOptions::dead_letter_prefix).
    pub id_prefix: String,
    /// Only after this one: the last id of the page before.
    pub after_id: Option<String>,
    /// At most this many; 0 is the default of 100, the most is [`MAX_PAGE_ROWS`](crate::limits::MAX_PAGE_ROWS).
    pub limit: usize,
}

/// A dead letter that cannot be read. It can be discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLetter {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// A page of dead letters, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// The letters, each with what can be read of it.
    pub letters: Vec<Result<DeadLetter, UnreadableLetter>>,
    /// The id to continue after; `None` when this is the last page.
    pub next: Option<String>,
}

/// What became of a letter that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResubmittedLetter {
    /// The instance.
    pub instance: String,
    /// The execution that begins; `None` for a message.
    pub execution_id: Option<u64>,
}

/// A resubmission: set options, then await.
#[must_use = "the letter is put back when this is awaited"]
pub struct ResubmitCall {
    client: Client,
    id: String,
    started: Option<Arc<Started>>,
}

impl Client {
    /// A page of dead letters, newest first.
    ///
    /// # Errors
    /// `invalid-option` when the limit is too high.
    pub async fn dead_letters(&self, query: DeadLetterQuery) -> Result<DeadLetters, Error> {
        let limit = page_rows(query.limit)?;
        let request = ListRecords {
            kind: DEAD_LETTER_KIND,
            id_prefix: &query.id_prefix,
            after_id: query.after_id.as_deref(),
            limit: limit + 1,
        };
        let mut records = self.store.list_records(request).await?;
        let is_more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().filter(|_| is_more).map(|record| record.id.clone());
        Ok(DeadLetters { letters: records.iter().map(read).collect(), next })
    }

    /// One dead letter, and what it carried as it was queued.
    ///
    /// # Errors
    /// `not-found` when there is none, `stored-data-unreadable` when it cannot be read.
    pub async fn dead_letter(&self, id: &str) -> Result<(DeadLetter, Option<Bytes>), Error> {
        let (letter, _) = self.letter(id).await?;
        let body = self.store.get_record(DEAD_LETTER_BODY_KIND, id).await?;
        Ok((letter, body.map(|record| record.body)))
    }

    /// Resubmits a dead letter, once: a message is queued again in the commit that removes its letter; for a turn or an
    /// activity the next execution of its instance begins, if none has begun since.
    ///
    /// # Errors
    /// `not-found` when there is no such letter (any more); `dead-letter-settled` when the instance has gone on since, and
    /// those of [`Client::restart`].
    pub fn resubmit_dead_letter(&self, id: impl Into<String>) -> ResubmitCall {
        ResubmitCall { client: self.clone(), id: id.into(), started: None }
    }

    /// Throws a dead letter away, with what it carried.
    ///
    /// # Errors
    /// `not-found` when there is no such letter.
    pub async fn discard_dead_letter(&self, id: &str) -> Result<(), Error> {
        let record = self.letter_record(id).await?;
        self.commit_letter(id, removed(id, record.version)).await
    }

    async fn letter_record(&self, id: &str) -> Result<Record, Error> {
        let record = self.store.get_record(DEAD_LETTER_KIND, id).await?;
        record.ok_or_else(|| no_such_letter(id))
    }

    async fn letter(&self, id: &str) -> Result<(DeadLetter, u64), Error> {
        let record = self.letter_record(id).await?;
        let letter = read(&record).map_err(|unreadable| {
            let message = format!("the dead letter {id:?} cannot be read: {}; discard it", unreadable.reason);
            Error::new(Code::StoredDataUnreadable, message)
        })?;
        Ok((letter, record.version))
    }

    async fn commit_letter(&self, id: &str, batch: RecordBatch) -> Result<(), Error> {
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(no_such_letter(id)),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins the next execution of an instance that failed for a letter. It cannot begin twice: only the execution that the
    /// letter is about may be followed.
    async fn restart_for(&self, letter: &DeadLetter, started: Option<Arc<Started>>) -> Result<u64, Error> {
        let Some(execution_id) = letter.execution_id else {
            return Err(settled(letter, "the letter names no execution of it"));
        };
        let info = self.store.get_instance_info(&letter.instance).await?;
        let request_id = request_of(&letter.id);
        if info.current_execution_id != execution_id {
            // Another try of the same resubmission may have begun it, and not have removed the letter.
            let is_ours =
                info.current_execution_id == execution_id + 1 && self.is_begun_by(&info, request_id).await?;
            return match is_ours {
                true => Ok(info.current_execution_id),
                false => Err(settled(letter, &format!("it is in execution {}", info.current_execution_id))),
            };
        }
        if info.status != ExecutionStatus::Failed {
            return Err(settled(letter, &format!("it is {}", info.status)));
        }
        let mut call =
            self.restart(letter.instance.clone()).after_execution(execution_id).request_id(request_id);
        if let Some(started) = started {
            call = call.begin_with(started);
        }
        Ok(call.await?.execution_id)
    }
}

impl ResubmitCall {
    /// Begins with the name, input and labels of this start instead of those of the last one, if an execution begins.
    pub fn begin_with(mut self, started: Arc<Started>) -> Self {
        self.started = Some(started);
        self
    }

    async fn send(self) -> Result<ResubmittedLetter, Error> {
        let ResubmitCall { client, id, started } = self;
        let (letter, version) = client.letter(&id).await?;
        let mut batch = removed(&id, version);
        let instance = letter.instance.clone();
        let execution_id = match letter.what {
            GivenUp::Message => {
                let body = client.store.get_record(DEAD_LETTER_BODY_KIND, &id).await?;
                let body = body.ok_or_else(|| no_such_letter(&id))?.body;
                batch.orchestrator_items.push(OrchestratorMessage::new(instance.clone(), body));
                None
            }
            GivenUp::Turn | GivenUp::Activity => Some(client.restart_for(&letter, started).await?),
        };
        match client.commit_letter(&id, batch).await {
            // Another resubmission has removed it, and so begun the same execution.
            Err(error) if error.code() == Code::NotFound && execution_id.is_some() => {}
            done => done?,
        }
        Ok(ResubmittedLetter { instance, execution_id })
    }
}

impl IntoFuture for ResubmitCall {
    type Output = Result<ResubmittedLetter, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

fn read(record: &Record) -> Result<DeadLetter, UnreadableLetter> {
    DeadLetter::from_record(record).map_err(|reason| UnreadableLetter { id: record.id.clone(), reason })
}

/// The removal of a letter, if it is still the one that was read.
fn removed(id: &str, version: u64) -> RecordBatch {
    let delete =
        |kind: &str, expect| RecordWrite::Delete { kind: kind.to_owned(), id: id.to_owned(), expect };
    let writes = vec![
        delete(DEAD_LETTER_KIND, Expect::Version(version)),
        delete(DEAD_LETTER_BODY_KIND, Expect::Anything),
    ];
    RecordBatch { writes, ..RecordBatch::default() }
}

/// The request that a resubmission is: its letter ends with a unique id.
fn request_of(id: &str) -> Uuid {
    let unique = id.rsplit('-').next().unwrap_or_default();
    unique.parse().unwrap_or_else(|_| Uuid::nil())
}

fn no_such_letter(id: &str) -> Error {
    let message =
        format!("there is no dead letter with the id {id:?}; it may have been resubmitted or discarded");
    Error::new(Code::NotFound, message)
}

fn settled(letter: &DeadLetter, why: &str) -> Error {
    let message = format!(
        "instance {:?} has gone on since the {} was given up: {why}; nothing is left to resubmit, discard the letter",
        letter.instance, letter.what
    );
    Error::new(Code::DeadLetterSettled, message)
}
