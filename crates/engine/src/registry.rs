//! Which code there is, by name and version.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::activity::ActivityContext;
use crate::activity_set::ActivitySet;
use crate::context::Context;
use crate::epilogue::{Epilogue, InstanceEnd, Settler};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::failure::{Failure, from_engine_error};
use crate::handles::{Activity, Orchestration};
use crate::names;
use crate::payload::Payload;
use crate::replay::{Execution, ExecutionId, OrchestrationHandler, find_started};
use crate::requirement::{Required, Requirement};
use crate::schemas::OrchestrationSchemas;
use crate::store::ProviderError;

/// The running code of an activity.
pub(crate) type ActivityFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Makes the future of an activity.
pub(crate) type ActivityHandler = Arc<dyn Fn(ActivityContext, Payload) -> ActivityFuture + Send + Sync>;

/// The version of an orchestration that is registered without one.
const FIRST_VERSION: Version = Version::new(1, 0, 0);

/// The version of a start without a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum VersionPolicy {
    #[default]
    Latest,
    Exact,
}

#[derive(Default)]
struct Versions {
    /// By version, which is there as text as well: every execution that begins records it.
    handlers: BTreeMap<Version, (Box<str>, OrchestrationHandler)>,
    policy: VersionPolicy,
    exact: Option<Version>,
}

/// Orchestrations and activities that a runtime can run. Cheap to clone once built.
#[derive(Clone, Default)]
pub struct Registry {
    orchestrations: Arc<HashMap<String, Versions>>,
    activities: Arc<HashMap<String, ActivityHandler>>,
    settler: Option<Settler>,
    schemas: Arc<BTreeMap<String, OrchestrationSchemas>>,
}

impl Registry {
    /// Starts a registry.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The version and handler for a name and, if given, a version; else by the policy of the name.
    pub(crate) fn orchestration(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Option<(&str, &OrchestrationHandler)> {
        let Versions { handlers, policy, exact } = self.orchestrations.get(name)?;
        let (version, handler) = match version {
            Some(version) => handlers.get(&Version::parse(version).ok()?)?,
            None if *policy == VersionPolicy::Exact => handlers.get(exact.as_ref()?)?,
            None => handlers.last_key_value()?.1,
        };
        Some((version, handler))
    }

    /// Replays a recorded history of one execution against the registered code: the check to run in CI before code goes
    /// out to running instances. Runs no activity and writes nothing.
    ///
    /// # Errors
    /// `not-found` when the code is not registered, `nondeterminism` when its commands differ from the recorded ones.
    pub fn replay(&self, instance: &str, execution_id: u64, history: &[Event]) -> Result<(), Error> {
        let Some((_, started)) = find_started(history) else {
            let message = "the history has no OrchestrationStarted, so there is nothing to replay";
            return Err(Error::new(Code::Nondeterminism, message));
        };
        let Some((_, handler)) = self.orchestration(&started.name, Some(&started.version)) else {
            let message = format!("orchestration {:?} {} is not registered", started.name, started.version);
            return Err(Error::new(Code::NotFound, message));
        };
        let id = ExecutionId { instance: instance.into(), execution_id };
        match Execution::replay(id, history.to_vec(), handler) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::new(Code::Nondeterminism, error.to_string())),
        }
    }

    /// What settles the ends of instances.
    pub(crate) fn settler(&self) -> Option<&Settler> {
        self.settler.as_ref()
    }

    pub(crate) fn activity(&self, name: &str) -> Option<ActivityHandler> {
        self.activities.get(name).cloned()
    }

    fn has(&self, Requirement(required): &Requirement) -> bool {
        match required {
            Required::Activity(name) => self.activities.contains_key(name),
            Required::Orchestration { name, version } => {
                self.orchestration(name, version.as_deref()).is_some()
            }
        }
    }

    /// Names and versions of all orchestrations, sorted.
    pub fn orchestration_names(&self) -> Vec<(String, Version)> {
        let mut names: Vec<(String, Version)> = self
            .orchestrations
            .iter()
            .flat_map(|(name, versions)| {
                versions.handlers.keys().map(|version| (name.clone(), version.clone()))
            })
            .collect();
        names.sort();
        names
    }

    /// The schemas of orchestrations that have any, by name.
    pub fn schemas(&self) -> &BTreeMap<String, OrchestrationSchemas> {
        &self.schemas
    }

    /// Names of all activities, sorted.
    pub fn activity_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.activities.keys().cloned().collect();
        names.sort();
        names
    }
}

/// Collects orchestrations and activities; errors come out of [`RegistryBuilder::build`].
#[derive(Default)]
pub struct RegistryBuilder {
    orchestrations: HashMap<String, Versions>,
    activities: HashMap<String, ActivityHandler>,
    settler: Option<Settler>,
    schemas: BTreeMap<String, OrchestrationSchemas>,
    requirements: BTreeSet<Requirement>,
    error: Option<Error>,
}

impl RegistryBuilder {
    /// Adds an orchestration: `async fn(Context, I) -> Result<O, Failure>`. The handle says which version it is
    /// (`HANDLE.at("2.0.0")`); without one it is 1.0.0.
    #[must_use]
    pub fn orchestration<I, O, F, Fut>(mut self, handle: Orchestration<I, O>, code: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        F: Fn(Context, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        let code = Arc::new(code);
        let handler: OrchestrationHandler = Arc::new(move |shared, input| {
            let code = code.clone();
            Box::pin(async move {
                let input = input.decode().map_err(|error| from_engine_error(&error))?;
                let output = code(Context::new(Arc::clone(&shared)), input).await?;
                shared.encode(&output).map_err(|error| from_engine_error(&error))
            })
        });
        let version = match handle.version().map(names::check_version).transpose() {
            Ok(version) => version.unwrap_or(FIRST_VERSION),
            Err(error) => return self.fail(error),
        };
        if let Err(error) = names::check_name("orchestration name", handle.name()) {
            return self.fail(error);
        }
        let versions = self.orchestrations.entry(handle.name().to_owned()).or_default();
        if versions.handlers.insert(version.clone(), (version.to_string().into(), handler)).is_some() {
            let message = format!("orchestration {:?} {version} is registered twice", handle.name());
            return self.fail(Error::new(Code::DuplicateRegistration, message));
        }
        self
    }

    /// Declares JSON Schemas of an orchestration: of its input, and of what its signals and mailboxes take. They are published with
    /// its name: a server refuses a start whose input does not fit, and shows them to callers. They count for all versions.
    #[must_use]
    pub fn schemas<I, O>(mut self, handle: Orchestration<I, O>, schemas: OrchestrationSchemas) -> Self {
        if let Err(error) = schemas.check(handle.name()) {
            return self.fail(error);
        }
        if self.schemas.insert(handle.name().to_owned(), schemas).is_some() {
            let message = format!("the schemas of orchestration {:?} are declared twice", handle.name());
            return self.fail(Error::new(Code::DuplicateRegistration, message));
        }
        self
    }

    /// Adds an activity: `async fn(ActivityContext, I) -> Result<O, Failure>`.
    #[must_use]
    pub fn activity<I, O, F, Fut>(mut self, handle: Activity<I, O>, code: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        F: Fn(ActivityContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        if let Err(error) = names::check_name("activity name", handle.name()) {
            return self.fail(error);
        }
        let code = Arc::new(code);
        let handler: ActivityHandler = Arc::new(move |ctx, input| {
            let code = code.clone();
            Box::pin(async move {
                let input = input.decode().map_err(|error| from_engine_error(&error))?;
                let output = code(ctx, input).await?;
                Payload::encode(&output).map_err(|error| from_engine_error(&error))
            })
        });
        if self.activities.insert(handle.name().to_owned(), handler).is_some() {
            let message = format!("activity {:?} is registered twice", handle.name());
            return self.fail(Error::new(Code::DuplicateRegistration, message));
        }
        self
    }

    /// Adds activities that share a state. Each call of one gets the `Arc`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// # use segno::{Activity, ActivityContext, Failure, Registry};
    /// # const CHARGE: Activity<u64, String> = Activity::new("charge");
    /// # const REFUND: Activity<String, ()> = Activity::new("refund");
    ///
    /// struct Payments {
    ///     account: String,
    /// }
    ///
    /// impl Payments {
    ///     async fn charge(self: Arc<Self>, _: ActivityContext, cents: u64) -> Result<String, Failure> {
    ///         Ok(format!("{cents} cents to {}", self.account))
    ///     }
    ///
    ///     async fn refund(self: Arc<Self>, _: ActivityContext, _receipt: String) -> Result<(), Failure> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), segno::Error> {
    /// let payments = Arc::new(Payments { account: "shop".to_owned() });
    /// let registry = Registry::builder()
    ///     .activities(payments, |set| {
    ///         set.activity(CHARGE, Payments::charge).activity(REFUND, Payments::refund)
    ///     })
    ///     .build()?;
    /// # assert_eq!(registry.activity_names(), ["charge", "refund"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn activities<S: Send + Sync + 'static>(
        self,
        state: Arc<S>,
        add: impl FnOnce(ActivitySet<S>) -> ActivitySet<S>,
    ) -> Self {
        add(ActivitySet::new(self, state)).into_registry()
    }

    /// Declares an activity or orchestration that the registered code calls on nodes with this registry.
    /// [`RegistryBuilder::build`] then reports it if it is not registered. Leave it out for activities
    /// and orchestrations that only other nodes or remote workers run.
    #[must_use]
    pub fn requires(mut self, required: impl Into<Requirement>) -> Self {
        self.requirements.insert(required.into());
        self
    }

    /// Makes changes of records part of the commit that ends an instance which was started with
    /// [`StartCall::settle`](crate::client::StartCall::settle), whatever its code is. It is called as
    /// [`Context::at_end`](crate::Context::at_end) says; both are in the same commit. There is one for a registry.
    #[must_use]
    pub fn settler<F, Fut>(mut self, settle: F) -> Self
    where
        F: Fn(InstanceEnd) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Epilogue, ProviderError>> + Send + 'static,
    {
        if self.settler.is_some() {
            return self.fail(Error::new(Code::DuplicateRegistration, "the settler is registered twice"));
        }
        self.settler = Some(Arc::new(move |end| Box::pin(settle(end))));
        self
    }

    /// New starts of this orchestration that ask for no version get the one of the handle instead of the latest.
    #[must_use]
    pub fn default_version<I, O>(mut self, handle: Orchestration<I, O>) -> Self {
        let version = match handle.version().map(names::check_version) {
            Some(Ok(version)) => version,
            Some(Err(error)) => return self.fail(error),
            None => {
                let message = format!("{handle:?} names no version; use .at(\"1.2.0\")");
                return self.fail(Error::new(Code::InvalidVersion, message));
            }
        };
        let versions = self.orchestrations.entry(handle.name().to_owned()).or_default();
        versions.policy = VersionPolicy::Exact;
        versions.exact = Some(version);
        self
    }

    /// Finishes the registry.
    ///
    /// # Errors
    /// The first bad name, bad version or double registration; `missing-registration` with everything
    /// that is required and not registered.
    pub fn build(self) -> Result<Registry, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for (name, versions) in &self.orchestrations {
            if let Some(exact) =
                versions.exact.as_ref().filter(|exact| !versions.handlers.contains_key(exact))
            {
                let message =
                    format!("the default version {exact} of orchestration {name:?} is not registered");
                return Err(Error::new(Code::InvalidVersion, message));
            }
        }
        if let Some(name) = self.schemas.keys().find(|name| !self.orchestrations.contains_key(*name)) {
            let message = format!("orchestration {name:?} has schemas and is not registered");
            return Err(Error::new(Code::InvalidName, message));
        }
        let (orchestrations, activities) = (Arc::new(self.orchestrations), Arc::new(self.activities));
        let registry =
            Registry { orchestrations, activities, settler: self.settler, schemas: Arc::new(self.schemas) };
        let missing: Vec<String> = self
            .requirements
            .iter()
            .filter(|required| !registry.has(required))
            .map(Requirement::to_string)
            .collect();
        if missing.is_empty() { Ok(registry) } else { Err(missing_registrations(&missing)) }
    }

    fn fail(mut self, error: Error) -> Self {
        self.error.get_or_insert(error);
        self
    }
}

fn missing_registrations(missing: &[String]) -> Error {
    let message = format!(
        "{} {} required but not registered; register them with RegistryBuilder, or remove requires(…) if only other nodes run them",
        missing.join(", "),
        if missing.len() == 1 { "is" } else { "are" },
    );
    Error::new(Code::MissingRegistration, message)
}
