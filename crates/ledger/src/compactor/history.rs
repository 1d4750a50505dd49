//! All events of a run, or of a scope: from joined segments, and from batches that are not joined
//! yet.

use std::collections::BTreeMap;

use super::compactor::Compactor;
use super::projection::Projection;
use crate::event::Envelope;
use crate::ids::Ulid;
use crate::log::{EVENTS, Event, EventRecord, Fetched, decode_events};
use crate::manifest::{Group, Place};
use crate::objects::StorageError;

/// Events that a replay folds at once.
const REPLAY_EVENTS: usize = 4_096;

impl<P: Projection> Compactor<P> {
    /// All events of a run, sorted by their ids; `waiting` are those that no manifest has yet.
    pub(super) async fn events_of_run(
        &mut self,
        run_id: &str,
        waiting: &[&EventRecord],
    ) -> Result<Vec<Envelope>, StorageError> {
        let mut events = BTreeMap::new();
        let days: Vec<String> = self.catalog.days().cloned().collect();
        for day in days {
            self.joined_events(&day, Some(run_id), &mut events).await?;
        }
        self.load_batches().await?;
        let folded = self.batches.folded.values().flatten().flatten();
        for record in folded.chain(waiting.iter().copied()) {
            if record.run_id.as_deref() == Some(run_id) {
                add(record, &mut events)?;
            }
        }
        Ok(events.into_values().collect())
    }

    /// Folds the whole log into an empty projection: what the tables would be if they were made
    /// anew.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub async fn replay(&mut self) -> Result<P, StorageError> {
        self.reload().await?;
        self.load_batches().await?;
        let mut replayed = P::load(&self.context.scope, crate::tables::Rows::default(), None);
        let mut unjoined = BTreeMap::new();
        for record in self.batches.folded.values().flatten().flatten() {
            add(record, &mut unjoined)?;
        }
        let days: Vec<String> = self.catalog.days().cloned().collect();
        for day in days {
            let mut events = BTreeMap::new();
            self.joined_events(&day, None, &mut events).await?;
            // Batches that are not joined may have events of any day.
            let newest = events.keys().next_back().copied().unwrap_or(Ulid::MIN);
            let later = unjoined.split_off(&newest.successor());
            events.append(&mut unjoined);
            unjoined = later;
            fold(&mut replayed, events);
        }
        fold(&mut replayed, unjoined);
        Ok(replayed)
    }

    async fn joined_events(
        &self,
        day: &str,
        run_id: Option<&str>,
        events: &mut BTreeMap<Ulid, Envelope>,
    ) -> Result<(), StorageError> {
        let group = Group { table: EVENTS.to_owned(), place: Place::Day(day.to_owned()) };
        for file in self.catalog.pieces(&group).iter().filter_map(|piece| piece.rows.as_ref()) {
            let bytes = self.context.log.segment(&file.path).await?;
            if crate::manifest::sha256(&bytes) != file.sha256 {
                return Err(StorageError::corrupt(
                    &file.path,
                    "its SHA-256 is not the one that its manifest has",
                ));
            }
            let decoded = decode_events(&bytes, run_id);
            for event in decoded.map_err(|damaged| StorageError::damaged(&file.path, &damaged))? {
                events.insert(event.envelope.event_id, event.envelope);
            }
        }
        Ok(())
    }

    /// Reads the events of folded batches that are not in memory.
    pub(super) async fn load_batches(&mut self) -> Result<(), StorageError> {
        let missing = self.batches.folded.iter().filter(|(_, records)| records.is_none());
        let missing: Vec<Ulid> = missing.map(|(first, _)| *first).collect();
        for fetched in self.context.log.fetch(&missing).await? {
            match fetched {
                Fetched::Events(first, events) => {
                    let records = events.into_iter().map(|event| event.record).collect();
                    self.batches.remember(first, records);
                }
                Fetched::Broken(path, problem) => return Err(StorageError::corrupt(path, problem)),
                Fetched::Gone => {
                    let problem = "a folded batch is gone; read the newest manifest";
                    return Err(StorageError::new(
                        segno::store::ErrorKind::NotFound,
                        self.context.shelves.paths.log(),
                        problem,
                    ));
                }
            }
        }
        Ok(())
    }
}

fn add(record: &EventRecord, events: &mut BTreeMap<Ulid, Envelope>) -> Result<(), StorageError> {
    let read = Event::read(record.json.clone());
    let event = read.map_err(|problem| StorageError::corrupt(record.event_id, problem))?;
    events.insert(record.event_id, event.envelope);
    Ok(())
}

fn fold<P: Projection>(projection: &mut P, events: BTreeMap<Ulid, Envelope>) {
    let events: Vec<Envelope> = events.into_values().collect();
    for chunk in events.chunks(REPLAY_EVENTS) {
        // They are in the order of their ids, so none is late.
        projection.fold(chunk);
    }
}
