//! Which processes are alive. Each has an id of its own, fresh at every start, and a record of that id that it renews. What a
//! process has claimed is void once its record is gone.
//!
//! A process that dies leaves its record until that expires. The next one removes it earlier if it is known that the old
//! process cannot be alive: because it had the same name, or because the store lets in one process at a time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use segno::clock::{self, Clock};
use segno::store::{ErrorKind, Expect, ListRecords, ProviderError, RecordBatch, RecordWrite, Store};
use segno_runbook::drive::Processes;
use tokio_util::sync::CancellationToken;

use crate::listen::until_stopped;

/// Kind of the records. Their ids are incarnations, their bodies the places that processes of one node share.
const KIND: &str = "segno.incarnation";

/// A record is renewed this often.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// A record that is not renewed is gone after so long.
const LIFE: Duration = Duration::from_secs(20);

/// Most records that a start looks at: far more than there are nodes.
const MAX_LOOKED_AT: usize = 1_000;

/// Where a process runs: only one that is alive has a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The store lets in one process at a time.
    TheOnlyOne,
    /// A node of this name, which the settings give to no other.
    Named(String),
    /// One of many, without a name that lasts.
    Unnamed,
}

impl Place {
    fn text(&self) -> Option<String> {
        match self {
            Place::TheOnlyOne => Some("only".to_owned()),
            Place::Named(name) => Some(format!("node {name}")),
            Place::Unnamed => None,
        }
    }
}

/// One start of a process.
pub struct Incarnation {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    id: String,
    place: String,
}

impl Incarnation {
    /// Begins an incarnation, and ends those that were in its place before.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn begin(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        id: String,
        place: Place,
    ) -> Result<Self, ProviderError> {
        let mut writes = Vec::new();
        if let Some(place) = place.text() {
            let request = ListRecords { kind: KIND, id_prefix: "", after_id: None, limit: MAX_LOOKED_AT };
            // One that cannot be read ends by itself, when its time is over.
            let before = store.list_records_around_damage(request).await?.records.into_iter();
            writes.extend(before.filter(|record| record.body == place.as_bytes()).map(|record| {
                RecordWrite::Delete { kind: KIND.to_owned(), id: record.id, expect: Expect::Anything }
            }));
        }
        let begun = Incarnation { store, clock, id, place: place.text().unwrap_or_default() };
        writes.push(begun.renewal());
        match begun.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            // Its place is on a damaged block, which keeps nothing else from being served.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                tracing::error!(%error, "this process could not show that it is alive");
                Ok(begun)
            }
            written => written.map(|_| begun),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether another incarnation is alive, as far as the store knows.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn is_alive(&self, id: &str) -> Result<bool, ProviderError> {
        Ok(id == self.id || self.store.get_record(KIND, id).await?.is_some())
    }

    /// Renews the record until it is time to stop.
    pub async fn keep(self: Arc<Self>, stopping: CancellationToken) {
        while until_stopped(&stopping, clock::sleep(&*self.clock, RENEW_EVERY)).await.is_some() {
            let batch = RecordBatch { writes: vec![self.renewal()], ..RecordBatch::default() };
            if let Err(error) = self.store.commit_records(batch).await {
                tracing::warn!(%error, "this process could not show that it is alive; trying again");
            }
        }
    }

    fn renewal(&self) -> RecordWrite {
        RecordWrite::Put {
            kind: KIND.to_owned(),
            id: self.id.clone(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(LIFE),
            body: self.place.clone().into(),
        }
    }
}

#[async_trait]
impl Processes for Incarnation {
    fn id(&self) -> &str {
        Incarnation::id(self)
    }

    async fn is_alive(&self, id: &str) -> Result<bool, ProviderError> {
        Incarnation::is_alive(self, id).await
    }
}

#[async_trait]
impl segno_ledger::drive::Processes for Incarnation {
    fn id(&self) -> &str {
        Incarnation::id(self)
    }

    async fn is_alive(&self, id: &str) -> Result<bool, ProviderError> {
        Incarnation::is_alive(self, id).await
    }
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno_testkit::clock::VirtualClock;

    use super::*;

    #[tokio::test]
    async fn an_incarnation_is_gone_when_its_place_is_taken_or_it_is_silent() {
        let clock = VirtualClock::new();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let begin = async |id: &str, place: Place| {
            Incarnation::begin(store.clone(), clock.clone(), id.to_owned(), place).await.unwrap()
        };
        let named = Place::Named("a".to_owned());
        let (one, other) = (begin("1", named.clone()).await, begin("2", Place::Named("b".to_owned())).await);
        let (unnamed, again) = (begin("3", Place::Unnamed).await, begin("4", named).await);
        let alive = async |by: &Incarnation| {
            let mut alive = Vec::new();
            for id in ["1", "2", "3", "4"] {
                if by.is_alive(id).await.unwrap() {
                    alive.push(id);
                }
            }
            alive.concat()
        };
        assert_eq!(alive(&again).await, "234");
        assert_eq!(alive(&one).await, "1234", "it knows of itself that it is alive");
        clock.advance(LIFE);
        assert_eq!((alive(&other).await, alive(&unnamed).await), ("2".to_owned(), "3".to_owned()));
        begin("5", Place::TheOnlyOne).await;
        begin("6", Place::TheOnlyOne).await;
        assert!(!other.is_alive("5").await.unwrap() && other.is_alive("6").await.unwrap());
    }
}
