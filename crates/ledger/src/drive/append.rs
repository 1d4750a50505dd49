//! Appending: what waits in the outbox and what the holder decided become one object of the log, with ids above all that are
//! folded, and are folded and published in the same step.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use segno_actions::functions::Scope;

use super::error::DriveError;
use super::holder::{Held, Renewed};
use super::ledger::{LedgerOptions, timestamp};
use super::limits::APPEND_BYTES;
use super::outbox::{self, Waiting, WaitingEvent};
use crate::event::{Envelope, EventData, Header};
use crate::fold::ChangedRun;
use crate::ids::Ulids;
use crate::log::limits::MAX_BATCH_EVENTS;
use crate::telemetry;

/// Bytes that an event without a plan or an output has at most, about.
const SMALL_EVENT_BYTES: usize = 1024;

/// Makes envelopes.
pub(super) struct Writer {
    ids: Ulids,
    tenant: Arc<str>,
    workspace: Arc<str>,
}

impl Writer {
    pub(super) fn new(scope: &Scope, options: &LedgerOptions) -> Self {
        Writer {
            ids: Ulids::new(Arc::clone(&options.clock), Arc::clone(&options.ids)),
            tenant: scope.tenant.as_str().into(),
            workspace: scope.namespace.as_str().into(),
        }
    }

    fn envelope(&self, event: WaitingEvent, written_at_ms: u64) -> Envelope {
        let header = Header {
            tenant_id: Arc::clone(&self.tenant),
            workspace_id: Arc::clone(&self.workspace),
            timestamp: timestamp(written_at_ms),
        };
        let mut envelope = Envelope::new(&header, self.ids.next_id(), event.data);
        if let Some(key) = event.key {
            envelope.idempotency_key = key;
        }
        envelope
    }
}

/// What is appended, and what is done about the records that it came from.
struct Batch {
    events: Vec<(WaitingEvent, u64)>,
    read: Vec<String>,
    unreadable: Vec<Waiting>,
}

impl Held {
    /// Appends and folds what waits. Returns how many events that were.
    pub(super) async fn append(&mut self, waiting: Vec<Waiting>, now_ms: u64) -> Result<usize, DriveError> {
        let batch = self.gather(waiting, now_ms);
        for waiting in batch.unreadable {
            let problem = waiting.events.as_ref().err().map(String::as_str).unwrap_or_default();
            tracing::error!(id = %waiting.id, problem, "events that cannot be read are put aside");
            metrics::counter!(telemetry::DEAD_LETTERS).increment(1);
            self.commit.writes.push(outbox::put_aside(waiting));
        }
        let count = batch.events.len();
        let corrected: Vec<Arc<str>> =
            batch.events.iter().filter_map(|(event, _)| corrected(event)).collect();
        let mut events = batch.events.into_iter().peekable();
        while events.peek().is_some() {
            self.append_part(&mut events).await?;
        }
        for id in &batch.read {
            self.services.ledger.published(id);
        }
        for run_id in corrected {
            self.checks.hurry(&run_id, now_ms);
        }
        self.commit.writes.extend(batch.read.into_iter().map(outbox::delete));
        Ok(count)
    }

    /// The events of this round, in the order in which they are appended.
    fn gather(&mut self, waiting: Vec<Waiting>, now_ms: u64) -> Batch {
        let mut batch = Batch { events: Vec::new(), read: Vec::new(), unreadable: Vec::new() };
        let mut ended: HashSet<(Arc<str>, Arc<str>, u32)> = HashSet::new();
        for waiting in waiting {
            match waiting.events {
                Err(_) => batch.unreadable.push(waiting),
                Ok(events) => {
                    for event in events {
                        if let EventData::TaskFinished(finished) = &event.data {
                            let attempt = &finished.attempt;
                            let (run, task) = (Arc::clone(&attempt.run_id), Arc::clone(&attempt.task_key));
                            ended.insert((run, task, attempt.attempt));
                        }
                        batch.events.push((event, waiting.written_at_ms));
                    }
                    batch.read.push(waiting.id);
                }
            }
        }
        let is_due = !batch.events.is_empty() || !self.own.is_empty() || self.dispatches.is_overdue(now_ms);
        if is_due {
            // An attempt that has ended needs no acknowledgement of its dispatch.
            let acknowledgements = self.dispatches.take_accepted().into_iter().filter(|accepted| {
                match (&accepted.run_id, &accepted.task_key, accepted.attempt) {
                    (Some(run), Some(task), Some(attempt)) => {
                        !ended.contains(&(Arc::clone(run), Arc::clone(task), attempt))
                    }
                    _ => true,
                }
            });
            let own = std::mem::take(&mut self.own).into_iter().chain(acknowledgements.map(Into::into));
            batch.events.splice(0..0, own.map(|event| (event, now_ms)));
        }
        batch
    }

    /// Appends as many events as one object takes.
    async fn append_part(
        &mut self,
        events: &mut std::iter::Peekable<impl Iterator<Item = (WaitingEvent, u64)>>,
    ) -> Result<(), DriveError> {
        if let Some(watermark) = self.compactor.watermark() {
            self.writer.ids.raise_above(watermark);
        }
        let (mut part, mut bytes, mut oldest_ms) = (Vec::new(), 0, u64::MAX);
        while let Some((event, _)) = events.peek() {
            bytes += event.bytes();
            if !part.is_empty() && (bytes > APPEND_BYTES || part.len() >= MAX_BATCH_EVENTS) {
                break;
            }
            if let Some((event, written_at_ms)) = events.next() {
                oldest_ms = oldest_ms.min(written_at_ms);
                part.push(self.writer.envelope(event, written_at_ms));
            }
        }
        let (count, begun_ms) = (part.len(), self.now_ms());
        self.compactor.observe(self.services.announcer.is_wanted());
        let renewed =
            Renewed { lease: &mut self.lease, ledger: &self.services.ledger, ahead_ms: self.ahead_ms };
        let appended: BoxFuture<'_, _> = self.compactor.append(part).boxed();
        let published = renewed.during(appended).await??;
        self.announce(&published.changed);
        self.notify(published.failed).await?;
        let now_ms = self.now_ms();
        metrics::counter!(telemetry::EVENTS).increment(count as u64);
        metrics::counter!(telemetry::FOLDS).increment(1);
        let since = |at_ms: u64| Duration::from_millis(now_ms.saturating_sub(at_ms));
        metrics::histogram!(telemetry::FOLD_SECONDS).record(since(begun_ms));
        metrics::histogram!(telemetry::VISIBILITY_SECONDS).record(since(oldest_ms));
        Ok(())
    }

    fn announce(&self, changed: &[ChangedRun]) {
        for ChangedRun { run, tasks } in changed {
            self.services.announcer.changed(&self.scope, run, tasks);
        }
    }

    /// Folds what others have appended.
    pub(super) async fn fold_waiting(&mut self) -> Result<(), DriveError> {
        loop {
            self.compactor.observe(self.services.announcer.is_wanted());
            let renewed =
                Renewed { lease: &mut self.lease, ledger: &self.services.ledger, ahead_ms: self.ahead_ms };
            let folded: BoxFuture<'_, _> = self.compactor.fold_waiting().boxed();
            let published = renewed.during(folded).await??;
            self.announce(&published.changed);
            self.notify(published.failed).await?;
            for (path, problem) in &published.quarantined {
                tracing::error!(path, problem, "an object of the log that is no batch was moved out of it");
            }
            if !published.has_more {
                return Ok(());
            }
        }
    }
}

/// The run whose attempts may be no longer wanted after an event.
fn corrected(event: &WaitingEvent) -> Option<Arc<str>> {
    match &event.data {
        EventData::RunCancelRequested(event) => Some(Arc::clone(&event.run_id)),
        EventData::TaskCleared(event) => Some(Arc::clone(&event.run_id)),
        EventData::TaskMarked(event) => Some(Arc::clone(&event.run_id)),
        _ => None,
    }
}

impl WaitingEvent {
    /// About as many bytes as its JSON has.
    fn bytes(&self) -> usize {
        let json = |value: &dyn erased::Json| value.json_bytes();
        match &self.data {
            EventData::PlanCreated(event) => json(&**event),
            EventData::TasksAdded(event) => json(&**event),
            EventData::TaskFinished(event) => json(&**event),
            EventData::TaskMarked(event) => json(&**event),
            EventData::BackfillCreated(event) => json(&**event),
            _ => SMALL_EVENT_BYTES,
        }
    }
}

/// Sizes of events as JSON.
mod erased {
    use serde::Serialize;

    /// Something whose size as JSON is wanted.
    pub(super) trait Json {
        fn json_bytes(&self) -> usize;
    }

    impl<T: Serialize> Json for T {
        fn json_bytes(&self) -> usize {
            let mut counter = Counter(0);
            // Counting does not fail; a value without a JSON form is refused when it is appended.
            let _ = serde_json::to_writer(&mut counter, self);
            counter.0
        }
    }

    struct Counter(usize);

    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
