//! Functions that a worker elsewhere runs. Here are only their settings; fetching and pushing is the server's business.

use serde::{Deserialize, Serialize};

use super::error::FunctionError;
use super::http::{HttpSettings, Method};
use super::secret::SecretReference;
use crate::objects;

/// Settings of a function that a worker elsewhere runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteSettings {
    /// Calls are sent to a worker's URL instead of waiting to be fetched.
    #[serde(default, deserialize_with = "objects::field", skip_serializing_if = "Option::is_none")]
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
    /// Whether every address may be called, also private ones.
    #[serde(default)]
    pub allow_private: bool,
    /// Host names, addresses and networks (`10.1.0.0/16`) that may be called although they are private.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_hosts: Vec<String>,
    /// Most calls that a node sends at once; without it, the worker's answers alone decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u16>,
}

/// Most calls of one function that a declaration may allow a node to send at once.
const MOST_IN_FLIGHT: u16 = 64;

impl Push {
    /// The HTTP call that a delivery is: pushing has no rules of its own about addresses, signatures or answers.
    pub(crate) fn to_http(&self) -> HttpSettings {
        HttpSettings {
            method: Method::Post,
            signing_secret: Some(self.secret.clone()),
            allow_private: self.allow_private,
            allow_hosts: self.allow_hosts.clone(),
            ..HttpSettings::new(self.url.clone())
        }
    }
}

impl RemoteSettings {
    pub(crate) fn check(&self) -> Result<(), FunctionError> {
        let Some(push) = &self.push else { return Ok(()) };
        if push.max_in_flight.is_some_and(|most| !(1..=MOST_IN_FLIGHT).contains(&most)) {
            let problem = format!("must be 1 to {MOST_IN_FLIGHT}");
            return Err(FunctionError::invalid("push.max_in_flight", problem));
        }
        push.to_http().check().map_err(|error| match error {
            FunctionError::InvalidFunction { field, problem } if field == "signing_secret" => {
                FunctionError::invalid("push.secret", problem)
            }
            FunctionError::InvalidFunction { field, problem } => {
                FunctionError::invalid(format!("push.{field}"), problem)
            }
            other => other,
        })
    }
}
