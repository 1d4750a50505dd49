//! Which functions there are: those of the configuration, which everybody sees, and stored ones of a namespace and tenant.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::{ErrorKind, Expect, Store};

use super::builder::NodeSharing;
use super::error::FunctionError;
use super::function::Function;
use super::http::Clients;
use super::issue::Issuers;
use super::names::{FunctionName, Scope};
use super::policy::StoredPolicy;
use super::process::{self, FunctionLog, LogKey, LogRow};
use super::rust::RustHandler;
use super::schema::{InputSchema, SchemaCache};
use super::settle::Settlers;
use super::stored;
use crate::listed::Listed;

/// Where a function is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the node's configuration or code. It cannot be changed while the node runs.
    Configured,
    /// In the store, in this version.
    Stored {
        /// Changes with every write.
        version: u64,
    },
}

/// A function with its name and origin.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionedFunction {
    /// Its name.
    pub name: FunctionName,
    /// Where it is declared.
    pub origin: Origin,
    /// The declaration.
    pub function: Function,
}

/// A configured function, checked and compiled once.
pub(super) struct Declared {
    pub(super) function: Function,
    pub(super) schema: Option<InputSchema>,
}

pub(super) struct Inner {
    pub(super) configured: BTreeMap<FunctionName, Arc<Declared>>,
    pub(super) code: HashMap<FunctionName, RustHandler>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) policy: StoredPolicy,
    pub(super) clients: Clients,
    pub(super) settlers: Settlers,
    pub(super) issuers: Issuers,
    pub(super) nodes: NodeSharing,
    /// Compiled schemas of stored functions.
    pub(super) schemas: SchemaCache,
}

/// What waits for a check of an input.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallerKind {
    /// A caller that gives up when it has waited for too long.
    Client,
    /// The loop that fires what is due, which has others to fire.
    Scheduler,
}

/// The functions that a node knows. Cheap to clone.
#[derive(Clone)]
pub struct Functions {
    pub(super) inner: Arc<Inner>,
    pub(super) caller: CallerKind,
}

impl Functions {
    pub(super) fn new(inner: Inner) -> Self {
        Functions { inner: Arc::new(inner), caller: CallerKind::Client }
    }

    /// The same functions for the loop that fires what is due: an input that would wait for long behind others of its
    /// tenant is not checked but refused as `unavailable`, so that what is due can be postponed.
    pub(crate) fn for_scheduler(&self) -> Self {
        Functions { inner: Arc::clone(&self.inner), caller: CallerKind::Scheduler }
    }

    /// One function.
    ///
    /// # Errors
    /// `unknown-function` when there is none, `store` when the store cannot be read.
    pub async fn find(&self, scope: &Scope, name: &FunctionName) -> Result<VersionedFunction, FunctionError> {
        if let Some(declared) = self.inner.configured.get(name) {
            return Ok(configured(name, declared));
        }
        match stored::get(&*self.inner.store, scope, name).await? {
            Some((function, version)) => {
                Ok(VersionedFunction { name: name.clone(), origin: Origin::Stored { version }, function })
            }
            None => Err(unknown(name)),
        }
    }

    /// Functions after a name, configured and stored ones, by name. The last name of a page is the cursor of the next.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<&FunctionName>,
        limit: usize,
    ) -> Result<Vec<Listed<VersionedFunction>>, FunctionError> {
        let mut page: BTreeMap<String, Listed<VersionedFunction>> = BTreeMap::new();
        for row in stored::list(&*self.inner.store, scope, after, limit).await? {
            match row {
                Listed::Readable((name, function, version)) => {
                    let origin = Origin::Stored { version };
                    let function = VersionedFunction { name: name.clone(), origin, function };
                    page.insert(name.to_string(), Listed::Readable(function));
                }
                Listed::Unreadable(row) => {
                    page.insert(row.id.clone(), Listed::Unreadable(row));
                }
            }
        }
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (name, declared) in self.inner.configured.range((from, Bound::Unbounded)).take(limit) {
            page.insert(name.to_string(), Listed::Readable(configured(name, declared)));
        }
        Ok(page.into_values().take(limit).collect())
    }

    /// Stores a new function and returns its version.
    ///
    /// # Errors
    /// `function-exists` when the name is taken, `invalid-function` and `function-not-permitted` for what it says.
    pub async fn create(
        &self,
        scope: &Scope,
        name: &FunctionName,
        function: &Function,
    ) -> Result<u64, FunctionError> {
        self.check_stored(scope, name, function).await?;
        stored::put(&*self.inner.store, scope, name, function, Expect::Absent).await.map_err(|error| {
            let exists = FunctionError::Exists {
                function: name.to_string(),
                hint: "; replace it, or choose another name",
            };
            if error.kind() == ErrorKind::Conflict { exists } else { error }
        })
    }

    /// Replaces a stored function whose version the caller knows, and returns its new version.
    ///
    /// # Errors
    /// `function-changed` when it has another version by now, `unknown-function` when it is gone, and those of
    /// [`Functions::create`].
    pub async fn replace(
        &self,
        scope: &Scope,
        name: &FunctionName,
        function: &Function,
        version: u64,
    ) -> Result<u64, FunctionError> {
        self.check_stored(scope, name, function).await?;
        let expect = Expect::Version(version);
        match stored::put(&*self.inner.store, scope, name, function, expect).await {
            Err(error) if error.kind() == ErrorKind::Conflict => Err(self.changed(scope, name).await?),
            other => other,
        }
    }

    /// Removes a stored function, of a known version if one is given. Calls that wait to be run will fail.
    ///
    /// # Errors
    /// `unknown-function` when there is none, `function-changed` when it has another version, `function-exists` when it
    /// is a configured one.
    pub async fn delete(
        &self,
        scope: &Scope,
        name: &FunctionName,
        version: Option<u64>,
    ) -> Result<(), FunctionError> {
        self.check_not_configured(name)?;
        let version = match version {
            Some(version) => version,
            // One that cannot be read can be removed all the same.
            None => stored::version(&*self.inner.store, scope, name).await?.ok_or_else(|| unknown(name))?,
        };
        match stored::delete(&*self.inner.store, scope, name, version).await {
            Err(error) if error.kind() == ErrorKind::Conflict => Err(self.changed(scope, name).await?),
            other => other,
        }
    }

    /// The log of one attempt of a tool, if it wrote one and it is still kept.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn read_log(&self, key: &LogKey) -> Result<Option<FunctionLog>, FunctionError> {
        process::read_log(&*self.inner.store, key).await
    }

    /// Logs of an instance after a cursor, at most so many. There are others among them of instances whose ids begin with
    /// this one and a slash.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn list_logs(
        &self,
        instance: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LogRow>, FunctionError> {
        process::list_logs(&*self.inner.store, instance, after, limit).await
    }

    async fn check_stored(
        &self,
        scope: &Scope,
        name: &FunctionName,
        function: &Function,
    ) -> Result<(), FunctionError> {
        self.check_not_configured(name)?;
        self.inner.policy.check(scope, function)?;
        function.check_settings()?;
        let Some(schema) = function.input_schema.clone() else { return Ok(()) };
        let (inner, owner) = (Arc::clone(&self.inner), scope.clone());
        self.on_schema_thread(scope, move || inner.schemas.get(&owner, &schema).map(|_| ())).await
    }

    fn check_not_configured(&self, name: &FunctionName) -> Result<(), FunctionError> {
        if !self.inner.configured.contains_key(name) {
            return Ok(());
        }
        let hint = " in the configuration, which cannot be changed from here; choose another name";
        Err(FunctionError::Exists { function: name.to_string(), hint })
    }

    /// What a refused write means.
    async fn changed(&self, scope: &Scope, name: &FunctionName) -> Result<FunctionError, FunctionError> {
        let there = stored::version(&*self.inner.store, scope, name).await?.is_some();
        Ok(if there { FunctionError::Changed { function: name.to_string() } } else { unknown(name) })
    }
}

fn configured(name: &FunctionName, declared: &Declared) -> VersionedFunction {
    VersionedFunction { name: name.clone(), origin: Origin::Configured, function: declared.function.clone() }
}

fn unknown(name: &FunctionName) -> FunctionError {
    FunctionError::Unknown { function: name.to_string() }
}
