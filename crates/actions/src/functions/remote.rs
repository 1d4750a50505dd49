//! Functions that a worker elsewhere runs. Here are only their settings; fetching and pushing is the server's business.

use serde::{Deserialize, Serialize};

use super::error::FunctionError;
use super::http;
use super::secret::SecretReference;

/// Settings of a function that a worker elsewhere runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteSettings {
    /// Calls are sent to a worker's URL instead of waiting to be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<Push>,
}

/// Where calls are pushed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// The worker's URL.
    pub url: String,
    /// The secret that calls are signed with.
    pub secret: SecretReference,
}

impl RemoteSettings {
    pub(crate) fn check(&self) -> Result<(), FunctionError> {
        let Some(push) = &self.push else { return Ok(()) };
        http::check_url("push.url", &push.url)?;
        push.secret.check("push.secret")
    }
}
