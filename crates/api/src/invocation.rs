//! Invocations: calls of functions from outside. An invocation is an instance, so all routes of instances work on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;

/// A call of a function. What it leaves out is as the function's declaration says.
///
/// Durations are texts such as `30s`, `10m` or `1h30m`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Invoke {
    /// The function.
    #[schema(example = "echo")]
    pub function: String,
    /// The pool whose workers run it. Its allow-list says which functions there are; none has to be declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "cloud-01")]
    pub pool: Option<String>,
    /// Its input; `null` without it.
    #[serde(default = "Json::null")]
    pub input: Json,
    /// The caller's name for this call: the same key is the same call, however often it is made. Without it, the
    /// `Idempotency-Key` is taken; without that, every request is a call of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Only workers with this tag take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// When to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Longest time of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30s")]
    pub timeout: Option<String>,
    /// Longest time of all attempts and the pauses between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "10m")]
    pub deadline: Option<String>,
    /// Longest silence of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30s")]
    pub heartbeat_timeout: Option<String>,
    /// Labels to find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Invoke {
    /// A call with everything else as declared.
    pub fn new(function: impl Into<String>, input: Json) -> Self {
        Invoke {
            function: function.into(),
            pool: None,
            input,
            key: None,
            tag: None,
            retry: None,
            timeout: None,
            deadline: None,
            heartbeat_timeout: None,
            labels: BTreeMap::new(),
        }
    }
}

/// When to try again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    #[schema(minimum = 1, maximum = 1000)]
    pub attempts: u32,
    /// The first pause; `1s` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "1s")]
    pub initial_delay: Option<String>,
    /// What each further pause is longer by; 2 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub factor: Option<f64>,
    /// The longest pause; `5m` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "5m")]
    pub max_delay: Option<String>,
}
