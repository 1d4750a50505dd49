//! Invocations.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError};
use crate::instance::Started;
use crate::invocation::Invoke;

impl Client {
    /// Calls a function, and waits up to so long for its end.
    ///
    /// # Errors
    /// `unknown-function`, `invalid-input` with every place that does not fit, `conflict` when the key is another call's.
    pub async fn invoke(&self, request: &Invoke, wait: Duration) -> Result<Started, ClientError> {
        self.read(self.request(Method::POST, &["v1", "invocations"], wait).json(request)).await
    }
}
