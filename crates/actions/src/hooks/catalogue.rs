//! [`Hooks`]: the routes of a store, declared, found and deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use segno::Payload;
use segno::clock::{Clock, SystemClock};
use segno::ids::{IdSource, SystemIds};
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};
use serde_json::Value;
use uuid::Uuid;

use super::error::HookError;
use super::hook::Hook;
use super::id::newest_first;
use super::limits::{DEFAULT_MAX_EVENTS, DEFAULT_RETENTION, MAX_HOOKS_PER_TENANT};
use super::log::EventLog;
use super::records::{HOOK, decode, hook_id, put};
use crate::functions::{FunctionError, Functions, HookName, InvokeRequest, Scope, SecretReference};
use crate::listed::Listed;

/// What a node says about all routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSettings {
    /// How long payloads are kept if their route does not say.
    pub retention: Duration,
    /// Largest body if the route does not say; a route cannot say more.
    pub max_body_bytes: usize,
    /// About how many events of a tenant are kept.
    pub max_events: usize,
    /// How long events are kept.
    pub event_retention: Duration,
}

impl Default for HookSettings {
    fn default() -> Self {
        HookSettings {
            retention: DEFAULT_RETENTION,
            max_body_bytes: 1024 * 1024,
            max_events: DEFAULT_MAX_EVENTS,
            event_retention: DEFAULT_RETENTION,
        }
    }
}

/// A declared route, as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Whose it is.
    pub scope: Scope,
    /// Its name.
    pub name: HookName,
    /// Changes with every write.
    pub version: u64,
    /// The declaration.
    pub hook: Hook,
}

pub(super) struct Inner {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) functions: Functions,
    pub(super) settings: HookSettings,
    pub(super) log: EventLog,
    ids: Arc<dyn IdSource>,
    /// Ids so far: tells those of one millisecond apart.
    count: AtomicU64,
}

/// The routes of a store. Cheap to clone.
#[derive(Clone)]
pub struct Hooks {
    pub(super) inner: Arc<Inner>,
}

impl Hooks {
    /// Routes whose functions are in this catalogue, on the machine's clock.
    pub fn new(store: Arc<dyn Store>, functions: Functions, settings: HookSettings) -> Self {
        Self::with_sources(store, functions, settings, (SystemClock::shared(), SystemIds::shared()))
    }

    /// Routes with a clock and a source of ids of one's own.
    pub fn with_sources(
        store: Arc<dyn Store>,
        functions: Functions,
        settings: HookSettings,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>),
    ) -> Self {
        let (log, count) = (EventLog::default(), AtomicU64::new(0));
        Hooks { inner: Arc::new(Inner { store, clock, functions, settings, log, ids, count }) }
    }

    /// One route.
    ///
    /// # Errors
    /// `unknown-hook` when there is none.
    pub async fn find(&self, scope: &Scope, name: &HookName) -> Result<Route, HookError> {
        let record = self.record(scope, name).await?;
        Ok(Route {
            scope: scope.clone(),
            name: name.clone(),
            version: record.version,
            hook: decode(&record)?,
        })
    }

    async fn record(&self, scope: &Scope, name: &HookName) -> Result<Record, HookError> {
        let found = self.inner.store.get_record(HOOK, &hook_id(scope, name)).await?;
        found.ok_or_else(|| unknown(name))
    }

    /// Routes after a name, by name. The last name of a page is the cursor of the next.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<&HookName>,
        limit: usize,
    ) -> Result<Vec<Listed<Route>>, HookError> {
        let (id_prefix, after_id) = (scope.id_prefix(), after.map(|name| hook_id(scope, name)));
        let request = ListRecords { kind: HOOK, id_prefix: &id_prefix, after_id: after_id.as_deref(), limit };
        let records = self.inner.store.list_records(request).await?;
        let routes = records.iter().map(|record| {
            let name = record.id.strip_prefix(&id_prefix).unwrap_or(&record.id);
            let read = HookName::new(name).map_err(HookError::from).and_then(|name| {
                Ok(Route { scope: scope.clone(), name, version: record.version, hook: decode(record)? })
            });
            Listed::of(read, name)
        });
        Ok(routes.collect())
    }

    /// Declares a new route and returns its version.
    ///
    /// # Errors
    /// `hook-exists` when the name is taken, `too-many-hooks`, and those of [`Hooks::check`].
    pub async fn create(&self, scope: &Scope, name: &HookName, hook: &Hook) -> Result<u64, HookError> {
        self.check(scope, hook).await?;
        if self.list(scope, None, MAX_HOOKS_PER_TENANT).await?.len() == MAX_HOOKS_PER_TENANT {
            return Err(HookError::TooMany { limit: MAX_HOOKS_PER_TENANT });
        }
        match self.write(put((HOOK, hook_id(scope, name)), Expect::Absent, None, hook)?).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                Err(HookError::Exists { hook: name.to_string() })
            }
            written => written,
        }
    }

    /// Replaces a route whose version the caller knows, and returns its new version.
    ///
    /// # Errors
    /// `hook-changed` when it has another version by now, `unknown-hook` when it is gone, and those of [`Hooks::check`].
    pub async fn replace(
        &self,
        scope: &Scope,
        name: &HookName,
        hook: &Hook,
        version: u64,
    ) -> Result<u64, HookError> {
        self.check(scope, hook).await?;
        let write = put((HOOK, hook_id(scope, name)), Expect::Version(version), None, hook)?;
        self.write_known(scope, name, write).await
    }

    /// Removes a route, of a known version if one is given. Its payloads stay until their time is over.
    ///
    /// # Errors
    /// `unknown-hook` when there is none, `hook-changed` when it has another version.
    pub async fn delete(
        &self,
        scope: &Scope,
        name: &HookName,
        version: Option<u64>,
    ) -> Result<(), HookError> {
        let version = match version {
            Some(version) => version,
            // One that cannot be read can be removed all the same.
            None => self.record(scope, name).await?.version,
        };
        let (kind, id) = (HOOK.to_owned(), hook_id(scope, name));
        let write = RecordWrite::Delete { kind, id, expect: Expect::Version(version) };
        self.write_known(scope, name, write).await.map(|_| ())
    }

    /// Checks a declaration: its settings, that its function exists and takes an input that is always the same, and that its
    /// secrets may be read.
    ///
    /// # Errors
    /// `invalid-hook` with the setting, `unknown-function`, `invalid-input`, or `function-not-permitted` for a secret.
    pub async fn check(&self, scope: &Scope, hook: &Hook) -> Result<(), HookError> {
        hook.check()?;
        if hook.max_body_bytes.is_some_and(|bytes| bytes > self.inner.settings.max_body_bytes) {
            let problem = format!("the server takes at most {}", self.inner.settings.max_body_bytes);
            return Err(HookError::invalid("max_body_bytes", problem));
        }
        self.check_secrets(scope, hook)?;
        let Some(function) = &hook.function else { return Ok(()) };
        let functions = &self.inner.functions;
        if hook.input.wanted().names().next().is_some() {
            return Ok(functions.find(scope, function).await.map(|_| ())?);
        }
        // An input that no payload changes fits now or never.
        let constant = hook.input.render(&Value::Null);
        let constant = constant.map_err(|error| HookError::invalid("input", error.to_string()))?;
        let input =
            Payload::encode(&constant).map_err(|error| HookError::invalid("input", error.to_string()))?;
        Ok(functions.prepare(scope, InvokeRequest::new(function.clone(), input)).await.map(|_| ())?)
    }

    pub(super) fn check_secrets(&self, scope: &Scope, hook: &Hook) -> Result<(), HookError> {
        hook.verification.secrets().iter().try_for_each(|secret| self.check_secret(scope, secret))
    }

    /// Whether routes of a scope may read a secret.
    pub(super) fn check_secret(&self, scope: &Scope, secret: &SecretReference) -> Result<(), HookError> {
        let checked = self.inner.functions.check_secret(scope, "verification.secrets", secret);
        checked.map_err(|error| match error {
            FunctionError::InvalidFunction { field, problem } => HookError::invalid(field, problem),
            other => other.into(),
        })
    }

    /// A new id for a payload or an event.
    pub(super) fn new_id(&self, now_ms: u64) -> Uuid {
        let count = self.inner.count.fetch_add(1, Ordering::Relaxed);
        newest_first(now_ms, count, self.inner.ids.new_uuid())
    }

    async fn write_known(
        &self,
        scope: &Scope,
        name: &HookName,
        write: RecordWrite,
    ) -> Result<u64, HookError> {
        match self.write(write).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                // Whether it is gone or has changed.
                self.record(scope, name).await?;
                Err(HookError::Changed { hook: name.to_string() })
            }
            written => written,
        }
    }

    async fn write(&self, write: RecordWrite) -> Result<u64, HookError> {
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        Ok(self.inner.store.commit_records(batch).await?.first().copied().unwrap_or_default())
    }
}

pub(super) fn unknown(name: &HookName) -> HookError {
    HookError::Unknown { hook: name.to_string() }
}
