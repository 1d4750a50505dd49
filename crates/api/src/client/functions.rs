//! Functions.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::Json;
use crate::function::{Function, FunctionList, FunctionLogList};

/// What must be true of a function or route for a write to go ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// There is none of this name yet.
    Absent,
    /// It has this version.
    Version(u64),
}

impl Client {
    /// A page of functions.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn functions(&self, page: impl Into<PageRequest>) -> Result<FunctionList, ClientError> {
        self.get_with(&["v1", "functions"], &page.into()).await
    }

    /// One function.
    ///
    /// # Errors
    /// `unknown-function` when there is none.
    pub async fn function(&self, name: &str) -> Result<Function, ClientError> {
        self.get(&["v1", "functions", name]).await
    }

    /// Creates or replaces a function.
    ///
    /// # Errors
    /// `precondition-failed` when it is not as expected, `invalid-function` and `function-not-permitted` for what it says.
    pub async fn put_function(
        &self,
        name: &str,
        declaration: &Json,
        expected: Expected,
    ) -> Result<Function, ClientError> {
        let call = self.request(Method::PUT, &["v1", "functions", name], Duration::ZERO).json(declaration);
        let call = match expected {
            Expected::Absent => call.header("if-none-match", "*"),
            Expected::Version(version) => call.header("if-match", format!("\"{version}\"")),
        };
        self.read(call).await
    }

    /// Removes a function, of a known version if one is given.
    ///
    /// # Errors
    /// `unknown-function` when there is none, `precondition-failed` when it has another version.
    pub async fn delete_function(&self, name: &str, version: Option<u64>) -> Result<(), ClientError> {
        let mut call = self.request(Method::DELETE, &["v1", "functions", name], Duration::ZERO);
        if let Some(version) = version {
            call = call.header("if-match", format!("\"{version}\""));
        }
        self.done(call).await
    }

    /// A page of what the tools of an instance wrote to stderr.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn logs(&self, id: &str, page: impl Into<PageRequest>) -> Result<FunctionLogList, ClientError> {
        self.get_with(&["v1", "instances", id, "logs"], &page.into()).await
    }
}
