//! Putting a catalogue together when a node starts.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;

use segno::clock::{Clock, SystemClock};
use segno::ids::{IdSource, SystemIds};
use segno::store::Store;
use segno::{ActivityContext, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::catalogue::{Declared, Functions};
use super::error::FunctionError;
use super::function::{Executor, Function};
use super::http::{Clients, Resolver, SystemResolver};
use super::invocation::Route;
use super::issue::{Issuer, Issuers};
use super::names::{FunctionName, Tag};
use super::policy::StoredPolicy;
use super::rust::{self, RustHandler, RustSettings};
use super::schema::SchemaCache;
use super::settle::{Settler, Settlers};

/// How nodes take the calls that they run themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum NodeSharing {
    /// Oldest first, whatever their tenants.
    #[default]
    OldestFirst,
    /// By the tags of tenants, so that each has a share.
    ByTenant,
}

impl NodeSharing {
    pub(super) fn route(self, tag: Option<Tag>) -> Route {
        match self {
            NodeSharing::OldestFirst => Route::Local { tag },
            NodeSharing::ByTenant => Route::Node { tag },
        }
    }
}

/// Collects configured functions and code; errors come out of [`FunctionsBuilder::build`].
pub struct FunctionsBuilder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    resolver: Arc<dyn Resolver>,
    policy: StoredPolicy,
    declared: BTreeMap<FunctionName, Function>,
    code: HashMap<FunctionName, RustHandler>,
    settlers: Settlers,
    issuers: Issuers,
    nodes: NodeSharing,
    error: Option<FunctionError>,
}

impl FunctionsBuilder {
    /// Starts a catalogue on a store, without the settlers of any room.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        FunctionsBuilder {
            store,
            clock: SystemClock::shared(),
            ids: SystemIds::shared(),
            resolver: Arc::new(SystemResolver),
            policy: StoredPolicy::default(),
            declared: BTreeMap::new(),
            code: HashMap::new(),
            settlers: Settlers::new(),
            issuers: Issuers::new(),
            nodes: NodeSharing::default(),
            error: None,
        }
    }

    /// Another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Another source of ids.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Another way to look up host names.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// What stored functions may do.
    #[must_use]
    pub fn stored_policy(mut self, policy: StoredPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// A function of the configuration. Every namespace and tenant sees it, and none can store another of its name.
    #[must_use]
    pub fn declare(mut self, name: FunctionName, function: Function) -> Self {
        if self.declared.contains_key(&name) {
            let error = FunctionError::Exists { function: name.to_string(), hint: "; declare it once" };
            return self.fail(error);
        }
        self.declared.insert(name, function);
        self
    }

    /// Code of the program: `async fn(ActivityContext, I) -> Result<O, Failure>`. A declaration of the same name with the
    /// executor `rust` may give it a description, a schema and defaults.
    #[must_use]
    pub fn rust<I, O, F, Fut>(mut self, name: &str, code: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        F: Fn(ActivityContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        let name = match FunctionName::new(name) {
            Ok(name) => name,
            Err(error) => return self.fail(error),
        };
        if self.code.insert(name.clone(), rust::handler(code)).is_some() {
            let error = FunctionError::Exists { function: name.to_string(), hint: "; register it once" };
            return self.fail(error);
        }
        self
    }

    /// Calls that nodes run themselves get the tags of their tenants ([`node_tag`](super::node_tag)). Only
    /// a runtime whose [admission control](segno::runtime::ActivityAdmission) fetches these tags runs
    /// them, and can share its places between tenants.
    #[must_use]
    pub fn shared_by_tenant(mut self) -> Self {
        self.nodes = NodeSharing::ByTenant;
        self
    }

    /// Has calls of a kind settled in the commits that end them: see [`Settle`](super::Settle).
    #[must_use]
    pub fn settler(mut self, kind: &'static str, settler: impl Settler) -> Self {
        if self.settlers.insert(kind, Arc::new(settler)).is_some() {
            let problem = "is registered twice; each room registers a kind of its own, once";
            return self.fail(FunctionError::invalid(format!("settler {kind}"), problem));
        }
        self
    }

    /// Has inputs of calls of a kind completed when they are handed out: see [`Issuer`].
    #[must_use]
    pub fn issuer(mut self, kind: &'static str, issuer: impl Issuer) -> Self {
        if self.issuers.insert(kind, Arc::new(issuer)).is_some() {
            let problem = "is registered twice; each room registers a kind of its own, once";
            return self.fail(FunctionError::invalid(format!("issuer {kind}"), problem));
        }
        self
    }

    /// Finishes the catalogue.
    ///
    /// # Errors
    /// The first bad name, double name, or setting that is wrong, with the function it is of.
    pub fn build(mut self) -> Result<Functions, FunctionError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for name in self.code.keys() {
            let declared = self.declared.entry(name.clone());
            let function = declared.or_insert_with(|| Function::new(Executor::Rust(RustSettings {})));
            if !matches!(function.executor, Executor::Rust(_)) {
                let problem = "the program has code of this name; set executor = \"rust\", or rename one";
                return Err(FunctionError::invalid(format!("functions.{name}.executor"), problem));
            }
        }
        let mut configured = BTreeMap::new();
        for (name, function) in self.declared {
            if matches!(function.executor, Executor::Rust(_)) && !self.code.contains_key(&name) {
                let problem = "the program has no code of this name; register it, or choose another executor";
                return Err(FunctionError::invalid(format!("functions.{name}.executor"), problem));
            }
            let schema = function.check().map_err(|error| of_function(&name, error))?;
            configured.insert(name, Arc::new(Declared { function, schema }));
        }
        let clients = Clients::new(self.resolver);
        Ok(Functions::new(super::catalogue::Inner {
            configured,
            code: self.code,
            store: self.store,
            clock: self.clock,
            ids: self.ids,
            policy: self.policy,
            clients,
            settlers: self.settlers,
            issuers: self.issuers,
            nodes: self.nodes,
            schemas: SchemaCache::default(),
        }))
    }

    fn fail(mut self, error: FunctionError) -> Self {
        self.error.get_or_insert(error);
        self
    }
}

/// The same error with the function in front of the setting, as it stands in the configuration.
fn of_function(name: &FunctionName, error: FunctionError) -> FunctionError {
    match error {
        FunctionError::InvalidFunction { field, problem } => {
            FunctionError::InvalidFunction { field: format!("functions.{name}.{field}"), problem }
        }
        other => other,
    }
}
