//! Rows of the outbox: claimed, sent, marked.
//!
//! A claim makes the rows due later, so that of several nodes one sends them. A node that dies
//! after it has sent leaves them unmarked; they are sent again under the same ids.

use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{DueRecords, ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite};
use segno_actions::functions::{FunctionError, PoolName};

use super::{Backoff, BusEdge};
use crate::bus::{BusError, JOBS, Message, ORCHESTRATOR_EVENTS, TopicName};
use crate::drive::{BusInbox, OUTBOX, OutboxRow, batch_of_row, events_folder, jobs_folder};

/// Most rows that are sent at once.
const SENT_AT_ONCE: usize = 100;

/// Longest wait for a row that has to be sent.
const WAIT: Duration = Duration::from_secs(30);

/// How long a node has to send what it has claimed.
const CLAIM: Duration = Duration::from_secs(60);

/// How often a paused pool is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Pause after another node was first.
const SHORT_PAUSE: Duration = Duration::from_millis(50);

/// A row of this node, for a while.
struct Claimed {
    id: String,
    version: u64,
    row: OutboxRow,
}

/// Why rows could not be sent.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error(transparent)]
    Store(#[from] ProviderError),
    #[error(transparent)]
    Pool(#[from] FunctionError),
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl BusEdge {
    /// Sends the jobs of a pool, as fast as it allows and not while it is paused.
    pub(super) async fn send_jobs(&self, pool: &PoolName) {
        let mut backoff = Backoff::new();
        loop {
            match self.send_some_jobs(pool).await {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    let pause = backoff.pause();
                    tracing::warn!(%pool, %error, ?pause, "jobs cannot be sent; trying again");
                    self.sleep(pause).await;
                }
            }
        }
    }

    /// Sends messages of the topic `orchestrator-events`.
    pub(super) async fn send_events(&self) {
        let folder = events_folder(&self.scope);
        let topic = TopicName::new(ORCHESTRATOR_EVENTS).expect("names of the program are valid");
        let mut backoff = Backoff::new();
        loop {
            let sent = async {
                let claimed = self.claim(&folder, SENT_AT_ONCE).await?;
                if claimed.is_empty() {
                    return Ok(());
                }
                self.send(&topic, &claimed).await?;
                self.write_each(claimed.iter().map(delete).collect()).await?;
                Ok::<_, SendError>(())
            };
            match sent.await {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    let pause = backoff.pause();
                    tracing::warn!(%error, ?pause, "events cannot be sent; trying again");
                    self.sleep(pause).await;
                }
            }
        }
    }

    async fn send_some_jobs(&self, pool: &PoolName) -> Result<(), SendError> {
        let room = self.pools.headroom(&self.scope, pool).await?;
        if room.calls == 0 {
            self.sleep(room.rest.map_or(LOOK_EVERY, |rest| rest.min(LOOK_EVERY))).await;
            return Ok(());
        }
        let folder = jobs_folder(&self.scope, pool.as_str());
        let mut claimed = self.claim(&folder, SENT_AT_ONCE.min(room.calls)).await?;
        if claimed.is_empty() {
            return Ok(());
        }
        let admission = self.pools.admit(&self.scope, pool, claimed.len()).await?;
        let refused = claimed.split_off(admission.calls.min(claimed.len()));
        self.release(&refused).await?;
        if claimed.is_empty() {
            self.sleep(admission.delay.map_or(LOOK_EVERY, |delay| delay.min(LOOK_EVERY))).await;
            return Ok(());
        }
        let topic = TopicName::new(JOBS).expect("names of the program are valid");
        match self.send(&topic, &claimed).await {
            Ok(()) => {
                let now = crate::drive::timestamp(self.store.now_ms().await?);
                let sent = claimed.into_iter().map(|claimed| {
                    let row = OutboxRow { sent_at: Some(now), ..claimed.row };
                    row.write(claimed.id, Expect::Version(claimed.version), None)
                });
                self.write_each(sent.collect()).await?;
                Ok(())
            }
            Err(SendError::Bus(error)) if error.kind() == ErrorKind::Invalid => {
                self.send_one_by_one(&topic, (pool, &folder), claimed).await
            }
            Err(error) => {
                // Should this fail too, the rows are due again when the claim ends.
                let _ = self.release(&claimed).await;
                Err(error)
            }
        }
    }

    /// Sends jobs of which one cannot be sent. That one fails; the others go out.
    async fn send_one_by_one(
        &self,
        topic: &TopicName,
        (pool, folder): (&PoolName, &str),
        claimed: Vec<Claimed>,
    ) -> Result<(), SendError> {
        let inbox = BusInbox::new(self.store.clone(), self.scope.clone());
        for one in claimed {
            let problem = match self.bus.send(topic, vec![one.row.message.clone()]).await {
                Err(error) if error.kind() == ErrorKind::Invalid => error.to_string(),
                sent => {
                    sent?;
                    let now = crate::drive::timestamp(self.store.now_ms().await?);
                    let row = OutboxRow { sent_at: Some(now), ..one.row };
                    self.write_each(vec![row.write(one.id, Expect::Version(one.version), None)]).await?;
                    continue;
                }
            };
            tracing::warn!(%pool, job = %one.row.message.message_id, %problem, "a job cannot be sent");
            match batch_of_row(folder, &self.scope, &one.id) {
                Some(place) => {
                    let job = (one.row.message.message_id.as_str(), problem.as_str());
                    inbox.fail_job(&place, pool.as_str(), job).await?;
                }
                None => self.write_each(vec![delete(&one)]).await?,
            }
        }
        Ok(())
    }

    async fn send(&self, topic: &TopicName, claimed: &[Claimed]) -> Result<(), SendError> {
        let messages: Vec<Message> = claimed.iter().map(|claimed| claimed.row.message.clone()).collect();
        Ok(self.bus.send(topic, messages).await?)
    }

    /// Waits for rows that have to be sent and claims them; none if another node was first.
    async fn claim(&self, folder: &str, limit: usize) -> Result<Vec<Claimed>, SendError> {
        let request = DueRecords { kind: OUTBOX, id_prefix: folder, now_ms: None, limit, poll_timeout: WAIT };
        let mut claimed = Vec::new();
        let mut writes = Vec::new();
        let until_ms = self.store.now_ms().await?.saturating_add(duration_ms(CLAIM));
        for record in self.store.due_records(request).await? {
            match OutboxRow::read(&record) {
                Ok(row) => {
                    let expect = Expect::Version(record.version);
                    writes.push(row.write(record.id.clone(), expect, Some(until_ms)));
                    claimed.push(Claimed { id: record.id, version: 0, row });
                }
                Err(error) => self.drop_unreadable(&record, &error).await?,
            }
        }
        if claimed.is_empty() {
            return Ok(claimed);
        }
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(versions) => {
                for (claimed, version) in claimed.iter_mut().zip(versions) {
                    claimed.version = version;
                }
                Ok(claimed)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.sleep(SHORT_PAUSE).await;
                Ok(Vec::new())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A row that cannot be read would be due for ever. Its step sends its job again when its call
    /// is looked after.
    async fn drop_unreadable(&self, record: &Record, error: &serde_json::Error) -> Result<(), SendError> {
        tracing::warn!(id = %record.id, %error, "a row of the outbox cannot be read; it is deleted");
        let expect = Expect::Version(record.version);
        let gone = RecordWrite::Delete { kind: OUTBOX.to_owned(), id: record.id.clone(), expect };
        Ok(self.write_each(vec![gone]).await?)
    }

    /// Gives claimed rows back: they are due at once.
    async fn release(&self, claimed: &[Claimed]) -> Result<(), SendError> {
        if claimed.is_empty() {
            return Ok(());
        }
        let now_ms = self.store.now_ms().await?;
        let free = |claimed: &Claimed| {
            claimed.row.write(claimed.id.clone(), Expect::Version(claimed.version), Some(now_ms))
        };
        Ok(self.write_each(claimed.iter().map(free).collect()).await?)
    }

    /// Commits writes together; one by one if a row was changed meanwhile: its result was taken, or
    /// it was cancelled.
    async fn write_each(&self, writes: Vec<RecordWrite>) -> Result<(), ProviderError> {
        let commit = |writes| self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() });
        match commit(writes.clone()).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            done => return done.map(drop),
        }
        for write in writes {
            match commit(vec![write]).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => drop(done?),
            }
        }
        Ok(())
    }
}

fn delete(claimed: &Claimed) -> RecordWrite {
    let expect = Expect::Version(claimed.version);
    RecordWrite::Delete { kind: OUTBOX.to_owned(), id: claimed.id.clone(), expect }
}
