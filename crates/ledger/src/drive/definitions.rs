//! Published DAGs: a head for each name, and versions that never change. Parsed versions are kept in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use segno::store::{Expect, Record, RecordWrite, Store};
use segno_actions::functions::{Scope, compute};
use segno_actions::schedule::Zones;
use serde::{Deserialize, Serialize};

use super::error::LedgerError;
use super::limits::MAX_INLINE_DOCUMENT_BYTES;
use super::place::{HEADS, VERSIONS, head_id, version_id};
use crate::plan::{Parsed, parse};

/// Most versions that are kept in memory.
const MAX_CACHED: usize = 256;

/// A DAG by name: which version is active, and whether it is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagHead {
    /// The name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The version that new runs follow.
    pub active_version: u32,
    /// Whether its schedule and its sensors start no runs.
    #[serde(default)]
    pub paused: bool,
    /// Whether it was deleted. Its name keeps counting versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// When it was published first.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// Who changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// A version of a DAG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagVersion {
    /// Name of the DAG.
    pub name: String,
    /// The version, from 1.
    pub version: u32,
    /// The DAG as it was published.
    pub source: String,
    /// When it was published.
    pub created_at: Timestamp,
    /// Who published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

impl DagHead {
    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    pub(super) fn write(&self, scope: &Scope, expect: Expect) -> RecordWrite {
        put(HEADS, head_id(scope, &self.name), expect, self)
    }
}

impl DagVersion {
    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    pub(super) fn write(&self, scope: &Scope) -> RecordWrite {
        put(VERSIONS, version_id(scope, &self.name, self.version), Expect::Absent, self)
    }
}

fn put(kind: &str, id: String, expect: Expect, value: &impl Serialize) -> RecordWrite {
    RecordWrite::Put {
        kind: kind.to_owned(),
        id,
        expect,
        due_at_ms: None,
        time_to_live: None,
        body: serde_json::to_vec(value).expect("it has plain fields").into(),
    }
}

/// The published versions of a store. Cheap to clone; clones share what was parsed.
#[derive(Clone)]
pub struct Definitions {
    store: Arc<dyn Store>,
    zones: Arc<Zones>,
    cached: Arc<Mutex<HashMap<String, Arc<Parsed>>>>,
}

impl Definitions {
    /// The versions of a store, read with these time zones.
    pub(super) fn new(store: Arc<dyn Store>, zones: Arc<Zones>) -> Self {
        Definitions { store, zones, cached: Arc::default() }
    }

    /// What a document says. A large one is read on the threads that tenants share fairly.
    ///
    /// # Errors
    /// `invalid-dag` with all problems, `unavailable`.
    pub(super) async fn parse(&self, scope: &Scope, source: &[u8]) -> Result<Parsed, LedgerError> {
        if source.len() <= MAX_INLINE_DOCUMENT_BYTES {
            return Ok(parse(source, &self.zones)?);
        }
        let (source, zones) = (source.to_vec(), Arc::clone(&self.zones));
        let parsed = compute(scope, move || parse(&source, &zones)).await;
        Ok(parsed.map_err(|_| LedgerError::Busy)??)
    }

    /// The head of a DAG with the version of its record; nothing for one that was deleted.
    pub(super) async fn head(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<(DagHead, u64)>, LedgerError> {
        Ok(self.any_head(scope, name).await?.filter(|(head, _)| !head.deleted))
    }

    /// The same, also of one that was deleted.
    pub(super) async fn any_head(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<(DagHead, u64)>, LedgerError> {
        let id = head_id(scope, name);
        let Some(record) = self.store.get_record(HEADS, &id).await? else { return Ok(None) };
        let head = DagHead::read(&record).map_err(|error| LedgerError::unreadable(HEADS, &id, &error))?;
        Ok(Some((head, record.version)))
    }

    /// A version; the active one if none is named.
    pub(super) async fn version(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u32>,
    ) -> Result<DagVersion, LedgerError> {
        let unknown = || LedgerError::UnknownDag { name: name.to_owned(), version };
        let number = match version {
            Some(number) => number,
            None => self.head(scope, name).await?.ok_or_else(unknown)?.0.active_version,
        };
        let id = version_id(scope, name, number);
        let record = self.store.get_record(VERSIONS, &id).await?.ok_or_else(unknown)?;
        DagVersion::read(&record).map_err(|error| LedgerError::unreadable(VERSIONS, &id, &error))
    }

    /// A version, parsed; the active one if none is named.
    pub(super) async fn parsed(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u32>,
    ) -> Result<(u32, Arc<Parsed>), LedgerError> {
        let unknown = || LedgerError::UnknownDag { name: name.to_owned(), version };
        let number = match version {
            Some(number) => number,
            None => self.head(scope, name).await?.ok_or_else(unknown)?.0.active_version,
        };
        let id = version_id(scope, name, number);
        if let Some(parsed) = self.lock().get(&id) {
            return Ok((number, Arc::clone(parsed)));
        }
        let stored = self.version(scope, name, Some(number)).await?;
        let parsed = Arc::new(self.parse(scope, stored.source.as_bytes()).await?);
        let mut cached = self.lock();
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(id, Arc::clone(&parsed));
        Ok((number, parsed))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Parsed>>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
