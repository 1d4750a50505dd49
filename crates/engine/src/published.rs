//! Which orchestrations the nodes of a store have: expiring records that every node renews, so that a server can refuse a start that no
//! node could run.
//!
//! There is one record per name, whatever the number of nodes: a node renews what no other node has renewed lately. A record lives
//! for [`PUBLISHED_FOR`] after the last node that had the name, so that restarting or replacing all nodes makes no name unknown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{self, Clock, duration_ms};
use crate::error::Error;
use crate::names;
use crate::registry::Registry;
use crate::schemas::OrchestrationSchemas;
use crate::store::{Expect, ListRecords, ProviderError, Record, RecordBatch, RecordWrite, Store};

/// Kind of the records; their id is the name.
pub const PUBLISHED_KIND: &str = "segno.orchestration";

/// How long a name is known after a node last had it.
pub const PUBLISHED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Before the next try when the store did not take the names.
const RETRY: Duration = Duration::from_secs(60);

/// Most names in one commit.
const NAMES_PER_COMMIT: usize = 500;

/// An orchestration that a node has, or had within [`PUBLISHED_FOR`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedOrchestration {
    /// Its name.
    pub name: String,
    /// Versions on the node that published it last, ascending.
    pub versions: Vec<String>,
    /// Schemas that it declares.
    pub schemas: OrchestrationSchemas,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Body {
    versions: Vec<String>,
    #[serde(default, skip_serializing_if = "OrchestrationSchemas::is_empty")]
    schemas: OrchestrationSchemas,
}

impl PublishedOrchestration {
    /// The content of a record of [`PUBLISHED_KIND`]. One that cannot be read has no versions: the name is what matters.
    pub fn from_record(record: Record) -> Self {
        let body: Option<Body> = serde_json::from_slice(&record.body).ok();
        let body = body.unwrap_or(Body { versions: Vec::new(), schemas: OrchestrationSchemas::new() });
        PublishedOrchestration { name: record.id, versions: body.versions, schemas: body.schemas }
    }
}

/// Whether a node has an orchestration of this name, or had it within [`PUBLISHED_FOR`].
///
/// # Errors
/// `invalid-name` when nothing can have this name, and those of the store.
pub async fn is_published(store: &dyn Store, name: &str) -> Result<bool, Error> {
    names::check_name("orchestration name", name)?;
    Ok(store.get_record(PUBLISHED_KIND, name).await?.is_some())
}

/// One published orchestration.
///
/// # Errors
/// `invalid-name` when nothing can have this name, and those of the store.
pub async fn published_as(store: &dyn Store, name: &str) -> Result<Option<PublishedOrchestration>, Error> {
    names::check_name("orchestration name", name)?;
    Ok(store.get_record(PUBLISHED_KIND, name).await?.map(PublishedOrchestration::from_record))
}

/// Published orchestrations, by name; at most `limit` after a name.
///
/// # Errors
/// Those of the store.
pub async fn published(
    store: &dyn Store,
    after_name: Option<&str>,
    limit: usize,
) -> Result<Vec<PublishedOrchestration>, ProviderError> {
    let request = ListRecords { kind: PUBLISHED_KIND, id_prefix: "", after_id: after_name, limit };
    let records = store.list_records(request).await?;
    Ok(records.into_iter().map(PublishedOrchestration::from_record).collect())
}

/// Publishes the names of one node.
pub(crate) struct Publisher {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Names with their stored form.
    names: BTreeMap<String, Vec<u8>>,
    every: Duration,
}

impl Publisher {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        registry: &Registry,
        every: Duration,
    ) -> Self {
        let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, version) in registry.orchestration_names() {
            versions.entry(name).or_default().push(version.to_string());
        }
        let body = |name: &str, versions| {
            let schemas = registry.schemas().get(name).cloned().unwrap_or_default();
            serde_json::to_vec(&Body { versions, schemas }).unwrap_or_default()
        };
        let names = versions.into_iter().map(|(name, versions)| {
            let body = body(&name, versions);
            (name, body)
        });
        let names = names.collect();
        Publisher { store, clock, names, every: every.min(PUBLISHED_FOR / 4) }
    }

    /// Publishes for as long as the node runs.
    pub(crate) async fn run(self) {
        loop {
            let pause = match self.publish().await {
                Ok(()) => self.every,
                Err(error) => {
                    tracing::warn!(%error, "the names of this node's orchestrations could not be published");
                    RETRY.min(self.every)
                }
            };
            clock::sleep(&*self.clock, pause).await;
        }
    }

    /// Renews what no node has renewed since the last time.
    async fn publish(&self) -> Result<(), ProviderError> {
        let renewed_after_ms = self
            .store
            .now_ms()
            .await?
            .saturating_add(duration_ms(PUBLISHED_FOR))
            .saturating_sub(duration_ms(self.every));
        let mut writes = Vec::new();
        for (name, body) in &self.names {
            let known = self.store.get_record(PUBLISHED_KIND, name).await?;
            let is_fresh = |record: &Record| {
                record.body == *body && record.expires_at_ms.is_none_or(|at_ms| at_ms > renewed_after_ms)
            };
            if !known.as_ref().is_some_and(is_fresh) {
                writes.push(put(name, body));
            }
        }
        for writes in writes.chunks(NAMES_PER_COMMIT) {
            let batch = RecordBatch { writes: writes.to_vec(), ..RecordBatch::default() };
            self.store.commit_records(batch).await?;
        }
        Ok(())
    }
}

fn put(name: &str, body: &[u8]) -> RecordWrite {
    RecordWrite::Put {
        kind: PUBLISHED_KIND.to_owned(),
        id: name.to_owned(),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: Some(PUBLISHED_FOR),
        body: body.to_vec().into(),
    }
}
