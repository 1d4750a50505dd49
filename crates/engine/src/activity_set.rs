//! Activities that share a state, such as a connection pool, a client of a service or a configuration.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::activity::ActivityContext;
use crate::failure::Failure;
use crate::handles::Activity;
use crate::registry::RegistryBuilder;

/// Collects activities that share a state `S`; see [`RegistryBuilder::activities`].
pub struct ActivitySet<S> {
    registry: RegistryBuilder,
    state: Arc<S>,
}

impl<S: Send + Sync + 'static> ActivitySet<S> {
    pub(crate) fn new(registry: RegistryBuilder, state: Arc<S>) -> Self {
        ActivitySet { registry, state }
    }

    /// Adds an activity: `async fn(Arc<S>, ActivityContext, I) -> Result<O, Failure>`, or a method
    /// `async fn(self: Arc<Self>, ActivityContext, I) -> Result<O, Failure>` of the state.
    #[must_use]
    pub fn activity<I, O, F, Fut>(mut self, handle: Activity<I, O>, code: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        F: Fn(Arc<S>, ActivityContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        let state = Arc::clone(&self.state);
        self.registry =
            self.registry.activity(handle, move |ctx, input| code(Arc::clone(&state), ctx, input));
        self
    }

    pub(crate) fn into_registry(self) -> RegistryBuilder {
        self.registry
    }
}
