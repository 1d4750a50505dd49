//! One fold: fetch what waits, fold it, publish what changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use segno::store::ErrorKind;

use super::archive::{Moves, PagedRun};
use super::change::Entries;
use super::compactor::{Compactor, Published};
use super::limits::{CACHED_BATCH_BYTES, FOLD_TRIES};
use super::projection::Projection;
use super::publish::Step;
use crate::event::Envelope;
use crate::ids::Ulid;
use crate::log::limits::{MAX_BATCH_BYTES, MAX_BATCH_EVENTS};
use crate::log::{Event, EventRecord, Fetched, check_batch};
use crate::objects::{Put, StorageError};

/// What a fold takes.
#[derive(Default)]
pub(super) struct Intake {
    /// Batches in the order of their first ids.
    batches: Vec<(Ulid, Vec<Event>)>,
    /// A batch that is not in the log yet: it is written together with what it changes.
    appended: Option<(Ulid, Bytes)>,
    has_more: bool,
    quarantined: Vec<(String, String)>,
}

impl<P: Projection> Compactor<P> {
    /// Folds what waits in the log, and publishes it. Nothing is written if nothing waits and
    /// nothing is due.
    ///
    /// # Errors
    /// `LockLost` when a compactor of a higher epoch has taken over: stop. `Unavailable`,
    /// `Conflict`: call again. `Corrupt`.
    pub async fn fold_waiting(&mut self) -> Result<Published, StorageError> {
        for _ in 0..FOLD_TRIES {
            let outcome = self.try_fold_waiting().await;
            match self.settled(outcome)? {
                Some(published) => return Ok(published),
                None => continue,
            }
        }
        Err(self.contended())
    }

    /// Appends a batch of events and folds it in one go: the batch and the files of its changes are
    /// written at the same time, then the manifest. For the one writer that holds the scope; its
    /// ids are above the watermark.
    ///
    /// # Errors
    /// As [`Compactor::fold_waiting`]; `Invalid` when the batch breaks a rule. After any other
    /// error the batch may be in the log: [`Compactor::fold_waiting`] folds it then.
    pub async fn append(&mut self, batch: Vec<Envelope>) -> Result<Published, StorageError> {
        let (first, events, bytes) = self.checked(batch)?;
        let outcome = self.try_append(first, events, bytes.clone()).await;
        if let Some(published) = self.settled(outcome)? {
            return Ok(published);
        }
        // Another compactor of this epoch was first. The batch may not be in the log yet.
        let path = self.context.shelves.paths.batch(first);
        if self.context.shelves.ledger.put_new(&path, bytes).await? == Put::Taken {
            let problem = "another batch has this first id; draw new ids and append again";
            return Err(StorageError::new(ErrorKind::Conflict, &path, problem));
        }
        self.fold_waiting().await
    }

    /// After any failure memory is read again before it is used.
    fn settled(
        &mut self,
        outcome: Result<Option<Published>, StorageError>,
    ) -> Result<Option<Published>, StorageError> {
        match outcome {
            Ok(Some(published)) => return Ok(Some(published)),
            Err(error) if error.kind() == ErrorKind::Invalid => return Err(error),
            // A file is gone because another compactor has published.
            Err(error) if error.kind() != ErrorKind::NotFound => {
                self.is_stale = true;
                return Err(error);
            }
            _ => self.is_stale = true,
        }
        Ok(None)
    }

    async fn try_fold_waiting(&mut self) -> Result<Option<Published>, StorageError> {
        self.reload().await?;
        let intake = self.fetch().await?;
        self.step(intake).await
    }

    /// A batch that keeps the rules: its first id, its events and the bytes of its object.
    fn checked(&self, batch: Vec<Envelope>) -> Result<(Ulid, Vec<Event>, Bytes), StorageError> {
        let invalid = |problem: String| {
            StorageError::new(ErrorKind::Invalid, self.context.shelves.paths.log(), problem)
        };
        let first = batch.first().map(|event| event.event_id);
        let first = first.ok_or_else(|| invalid("a batch has no events; append at least one".to_owned()))?;
        if batch.len() > MAX_BATCH_EVENTS {
            let problem =
                format!("a batch has {} events; append at most {MAX_BATCH_EVENTS} at once", batch.len());
            return Err(invalid(problem));
        }
        check_batch(&self.context.shelves.paths, first, batch.iter()).map_err(invalid)?;
        let (events, bytes) = encode(batch);
        if bytes.len() > MAX_BATCH_BYTES {
            let problem =
                format!("a batch has {} bytes; append at most {MAX_BATCH_BYTES} at once", bytes.len());
            return Err(invalid(problem));
        }
        Ok((first, events, bytes))
    }

    async fn try_append(
        &mut self,
        first: Ulid,
        events: Vec<Event>,
        bytes: Bytes,
    ) -> Result<Option<Published>, StorageError> {
        self.reload().await?;
        let batches = vec![(first, events)];
        self.step(Intake { batches, appended: Some((first, bytes)), ..Intake::default() }).await
    }

    /// What waits in the log; objects that are no batches are moved out of it.
    async fn fetch(&mut self) -> Result<Intake, StorageError> {
        let mut known: BTreeSet<Ulid> = self.batches.folded.keys().copied().collect();
        known.extend(&self.batches.joined);
        let waiting = self.context.log.waiting(&known).await?;
        self.batches.joined.retain(|first| waiting.present.contains(first));
        let mut intake = Intake { has_more: waiting.has_more, ..Intake::default() };
        for path in waiting.foreign {
            self.context.log.quarantine(&path).await?;
            intake.quarantined.push((path.to_string(), "its name or size is not that of a batch".to_owned()));
        }
        for fetched in self.context.log.fetch(&waiting.batches).await? {
            match fetched {
                Fetched::Events(first, events) => intake.batches.push((first, events)),
                Fetched::Broken(path, problem) => {
                    self.context.log.quarantine(&path).await?;
                    intake.quarantined.push((path.to_string(), problem));
                }
                Fetched::Gone => (),
            }
        }
        Ok(intake)
    }

    /// Folds and publishes. Nothing as result: another compactor was first.
    async fn step(&mut self, intake: Intake) -> Result<Option<Published>, StorageError> {
        let now_ms = self.context.clock.now_ms();
        let mut published = Published {
            manifest_id: self.published.manifest_id,
            has_more: intake.has_more,
            quarantined: intake.quarantined,
            ..Published::default()
        };
        let mut moves = Moves::default();
        let mut step = Step { now_ms, appended: intake.appended, ..Step::default() };
        let mut paged = HashMap::new();
        if !intake.batches.is_empty() {
            let (events, batches) = sorted(intake.batches);
            published.events = events.len();
            published.rebuilt_runs = self.fold(&events, &batches, &mut paged).await?;
            step.note_events(&events);
            step.batches = batches;
        }
        published.failed = self.projection.failed_runs();
        if self.is_observed {
            published.changed = self.projection.changed_runs();
        }
        // Runs leave before changes are taken, so that rows that no file has need no tombstone.
        if self.is_archive_due(now_ms) {
            self.archive(&paged, &mut moves);
        }
        let mut delta = Entries::of_changes(&self.projection.take_changes());
        self.page_out(paged, &mut delta, &mut moves);
        self.adopt_merges();
        self.expire_days(now_ms).await?;
        let is_merge_due = self.is_delta_merge_due(&delta, now_ms);
        let has_changes = !delta.is_empty() || !moves.days.is_empty() || self.catalog.base_changed;
        if step.batches.is_empty() && !has_changes && !is_merge_due && self.catalog.months_changed.is_empty()
        {
            self.checked_at_ms = now_ms;
            self.background.delete_due(now_ms);
            return Ok(Some(published));
        }
        step.delta = delta;
        step.days = moves.days;
        step.is_merge_due = is_merge_due;
        if !self.publish(step).await? {
            return Ok(None);
        }
        published.manifest_id = self.published.manifest_id;
        published.wrote = true;
        self.checked_at_ms = now_ms;
        self.background.delete_due(now_ms);
        self.start_merge();
        Ok(Some(published))
    }

    /// Folds events into the projection. Runs of which an event arrived late are rebuilt; the
    /// result is how many.
    async fn fold(
        &mut self,
        events: &[Envelope],
        batches: &[(Ulid, Vec<EventRecord>)],
        paged: &mut HashMap<Arc<str>, PagedRun>,
    ) -> Result<usize, StorageError> {
        self.page_in(self.projection.absent_runs(events), paged).await?;
        let late = self.projection.fold(events);
        if late.is_empty() {
            return Ok(0);
        }
        self.page_in(late.clone(), paged).await?;
        let waiting: Vec<&EventRecord> = batches.iter().flat_map(|(_, records)| records).collect();
        for run_id in &late {
            let history = self.events_of_run(run_id, &waiting).await?;
            self.projection.rebuild_run(run_id, &history);
        }
        Ok(late.len())
    }
}

impl super::compactor::Batches {
    /// Keeps the events of a batch in memory until it is joined, if there is room.
    pub(super) fn remember(&mut self, first: Ulid, records: Vec<EventRecord>) {
        let bytes: usize = records.iter().map(|record| record.json.len()).sum();
        let fits = self.cached_bytes + bytes <= CACHED_BATCH_BYTES;
        self.cached_bytes += bytes;
        self.folded.insert(first, fits.then_some(records));
    }
}

/// The events of all batches in the order of their ids, each once, and what is kept of each batch.
fn sorted(batches: Vec<(Ulid, Vec<Event>)>) -> (Vec<Envelope>, Vec<(Ulid, Vec<EventRecord>)>) {
    let mut envelopes = Vec::new();
    let mut kept = Vec::with_capacity(batches.len());
    for (first, events) in batches {
        let mut records = Vec::with_capacity(events.len());
        for event in events {
            envelopes.push(event.envelope);
            records.push(event.record);
        }
        kept.push((first, records));
    }
    envelopes.sort_by_key(|envelope| envelope.event_id);
    envelopes.dedup_by_key(|envelope| envelope.event_id);
    (envelopes, kept)
}

/// A batch as the bytes of its object, and its events with their JSON.
fn encode(batch: Vec<Envelope>) -> (Vec<Event>, Bytes) {
    let mut bytes = vec![b'['];
    let event = |envelope: Envelope| {
        let json = serde_json::to_string(&envelope).expect("envelopes have text keys only");
        if bytes.len() > 1 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(json.as_bytes());
        Event::new(envelope, json.into())
    };
    let events = batch.into_iter().map(event).collect();
    bytes.push(b']');
    (events, Bytes::from(bytes))
}
