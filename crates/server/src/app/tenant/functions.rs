//! Functions of a tenant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use segno_actions::Listed;
use segno_actions::functions::{
    FUNCTION_LABEL, Function, FunctionError, FunctionName, VersionedFunction, compute,
};

use super::Tenant;
use crate::operation;
use crate::problem::Refusal;

impl Tenant {
    /// Functions by name, after this one.
    ///
    /// # Errors
    /// Those of the catalogue.
    pub async fn functions(
        &self,
        after: Option<&FunctionName>,
        limit: usize,
    ) -> Result<Vec<Listed<VersionedFunction>>, FunctionError> {
        self.resources().functions.list(&self.owner(), after, limit).await
    }

    /// The function that an instance of this tenant calls, by its labels; `None` for an orchestration.
    pub fn function_of<'a>(&self, labels: &'a BTreeMap<String, String>) -> Option<&'a str> {
        labels.get(FUNCTION_LABEL)?.strip_prefix(self.scope.prefix())
    }

    /// Runs CPU-bound work on the threads that tenants share fairly.
    ///
    /// # Errors
    /// `unavailable` when too much of this tenant waits already.
    pub async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        compute(&self.owner(), work).await.map_err(|error| self.refused(error))
    }

    /// The same for work that takes time in a document of the request. When it has begun and does not end in time, the error
    /// is about the document: the same one would take as long again.
    ///
    /// # Errors
    /// `unavailable` when too much of this tenant waits already, `body-too-large` when it takes too long.
    pub async fn check_document<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let has_begun = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&has_begun);
        let checked = self.compute(move || {
            begins.store(true, Ordering::Relaxed);
            work()
        });
        tokio::select! {
            biased;
            checked = checked => checked,
            () = operation::closed() => Err(match has_begun.load(Ordering::Relaxed) {
                true => operation::too_long_to_check(),
                false => operation::timed_out(operation::effect()),
            }),
        }
    }

    /// One function.
    ///
    /// # Errors
    /// `unknown-function` when there is none.
    pub async fn function(&self, name: &FunctionName) -> Result<VersionedFunction, FunctionError> {
        self.resources().functions.find(&self.owner(), name).await
    }

    /// Stores a new function; its version.
    ///
    /// # Errors
    /// `function-exists`, and those of a declaration.
    pub async fn create_function(
        &self,
        name: &FunctionName,
        function: &Function,
    ) -> Result<u64, FunctionError> {
        self.resources().functions.create(&self.owner(), name, function).await
    }

    /// Replaces a version of a function; the new version.
    ///
    /// # Errors
    /// `function-changed`, and those of a declaration.
    pub async fn replace_function(
        &self,
        name: &FunctionName,
        function: &Function,
        version: u64,
    ) -> Result<u64, FunctionError> {
        self.resources().functions.replace(&self.owner(), name, function, version).await
    }

    /// Removes a function, or only this version of it.
    ///
    /// # Errors
    /// `unknown-function`, `function-changed`.
    pub async fn delete_function(
        &self,
        name: &FunctionName,
        version: Option<u64>,
    ) -> Result<(), FunctionError> {
        self.resources().functions.delete(&self.owner(), name, version).await
    }
}
