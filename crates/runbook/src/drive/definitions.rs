//! Published versions of runbooks, parsed and kept in memory. A version never changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use segno::store::Store;
use segno_actions::functions::Scope;
use segno_actions::schedule::Zones;

use super::error::DriveError;
use super::place::{RUNBOOKS, version_id};
use super::published::RunbookRow;
use crate::definition::Definition;

/// Most versions that are kept in memory.
const MAX_CACHED: usize = 256;

/// Definitions of a batch's runbook by version.
pub(super) type LoadedDefinitions = BTreeMap<u32, Arc<Definition>>;

/// The published versions of a store. Cheap to clone; clones share what was parsed.
#[derive(Clone)]
pub struct Definitions {
    store: Arc<dyn Store>,
    zones: Arc<Zones>,
    cached: Arc<Mutex<HashMap<String, Arc<Definition>>>>,
}

impl Definitions {
    /// The versions of a store. Blackouts are read with these time zones.
    pub fn new(store: Arc<dyn Store>, zones: Arc<Zones>) -> Self {
        Definitions { store, zones, cached: Arc::default() }
    }

    /// Time zones of blackouts.
    pub fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// One version of a runbook.
    ///
    /// # Errors
    /// When it does not exist or cannot be read, or the store cannot be used.
    pub async fn get(
        &self,
        scope: &Scope,
        runbook: &str,
        version: u32,
    ) -> Result<Arc<Definition>, DriveError> {
        let id = version_id(scope, runbook, version);
        if let Some(definition) = self.lock().get(&id) {
            return Ok(Arc::clone(definition));
        }
        let unusable =
            |problem: String| DriveError::Definition { runbook: runbook.to_owned(), version, problem };
        let record = self.store.get_record(RUNBOOKS, &id).await?;
        let record = record.ok_or_else(|| unusable("there is no such version".to_owned()))?;
        let row = RunbookRow::read(&record).map_err(|error| unusable(error.to_string()))?;
        let parsed = crate::yaml::parse_published(row.yaml_content.as_bytes(), &self.zones)
            .map_err(|error| unusable(error.to_string()))?;
        let definition = Arc::new(parsed.definition);
        let mut cached = self.lock();
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(id, Arc::clone(&definition));
        Ok(definition)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Definition>>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
