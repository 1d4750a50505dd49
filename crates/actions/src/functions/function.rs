//! A declaration: what a function is called for, who runs it, and how it is called by default.
//!
//! The form is the same in a TOML file and in JSON. An unknown setting is an error, so that a typing error
//! is not silently a default.

use std::collections::BTreeMap;

use segno::Retry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::duration::HumanDuration;
use super::error::FunctionError;
use super::http::HttpSettings;
use super::limits::{
    DEFAULT_HTTP_TIMEOUT, DEFAULT_PROCESS_TIMEOUT, MAX_ATTEMPTS, MAX_DESCRIPTION_BYTES, MAX_RETRY_FACTOR,
};
use super::names::Tag;
use super::process::ProcessSettings;
use super::remote::RemoteSettings;
use super::rust::RustSettings;
use super::schema::InputSchema;
use super::secret::{SecretReference, SettingValue};
use crate::free_text;

/// A function: an executor with its settings, and defaults of calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// What it does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who runs it, with the settings of that executor on the same level. It refuses unknown settings.
    #[serde(flatten, deserialize_with = "executor")]
    pub executor: Executor,
    /// JSON Schema that inputs are checked against before anything is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// When to try again; without it a call is tried once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Longest time of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// Longest time of all attempts and the pauses between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<HumanDuration>,
    /// Longest silence of an attempt that gives heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<HumanDuration>,
    /// Only workers with this tag take its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Tag>,
}

/// Settings of every function, whatever its executor is.
const COMMON: &str =
    "`description`, `executor`, `input_schema`, `retry`, `timeout`, `deadline`, `heartbeat_timeout`, `tag`";

/// Reads the executor's part. An unknown setting is reported with all that there are, not only
/// those of the executor.
fn executor<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Executor, D::Error> {
    Executor::deserialize(deserializer).map_err(|error| {
        let text = error.to_string();
        match text.starts_with("unknown field") {
            true => {
                serde::de::Error::custom(format!("{text} of this executor, or of every function: {COMMON}"))
            }
            false => error,
        }
    })
}

/// Who runs a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "executor", rename_all = "snake_case")]
pub enum Executor {
    /// Code of the embedding program.
    Rust(RustSettings),
    /// A tool.
    Process(ProcessSettings),
    /// An HTTP call.
    Http(HttpSettings),
    /// A worker elsewhere.
    Remote(RemoteSettings),
}

impl Executor {
    /// The name that declarations use.
    pub fn name(&self) -> &'static str {
        match self {
            Executor::Rust(_) => "rust",
            Executor::Process(_) => "process",
            Executor::Http(_) => "http",
            Executor::Remote(_) => "remote",
        }
    }
}

/// When to try again, as people write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The first pause.
    #[serde(default = "default_initial_delay")]
    pub initial_delay: HumanDuration,
    /// What each further pause is longer by.
    #[serde(default = "default_factor")]
    pub factor: f64,
    /// The longest pause.
    #[serde(default = "default_max_delay")]
    pub max_delay: HumanDuration,
}

fn default_initial_delay() -> HumanDuration {
    HumanDuration::from_secs(1)
}

fn default_factor() -> f64 {
    2.0
}

fn default_max_delay() -> HumanDuration {
    HumanDuration::from_secs(5 * 60)
}

impl RetryPolicy {
    /// This many attempts with the default pauses: 1 s, doubling, up to 5 minutes.
    pub fn attempts(attempts: u32) -> Self {
        RetryPolicy {
            attempts,
            initial_delay: default_initial_delay(),
            factor: default_factor(),
            max_delay: default_max_delay(),
        }
    }

    /// As the engine has it; each pause is shortened by up to a fifth at random, so that retries spread out.
    pub fn to_retry(&self) -> Retry {
        Retry::exponential(self.attempts, self.initial_delay.get())
            .factor(self.factor)
            .max_delay(self.max_delay.get())
    }

    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        if !(1..=MAX_ATTEMPTS).contains(&self.attempts) {
            let problem = format!("{} is out of range; write 1 to {MAX_ATTEMPTS}", self.attempts);
            return Err(("retry.attempts", problem));
        }
        if !(1.0..=MAX_RETRY_FACTOR).contains(&self.factor) {
            let problem = format!("{} is out of range; write 1 to {MAX_RETRY_FACTOR}", self.factor);
            return Err(("retry.factor", problem));
        }
        if self.max_delay < self.initial_delay {
            let (max, first) = (self.max_delay, self.initial_delay);
            let problem = format!("{max} is shorter than retry.initial_delay, which is {first}");
            return Err(("retry.max_delay", problem));
        }
        Ok(())
    }
}

impl Function {
    /// A function with this executor and no defaults.
    pub fn new(executor: Executor) -> Self {
        Function {
            description: None,
            executor,
            input_schema: None,
            retry: None,
            timeout: None,
            deadline: None,
            heartbeat_timeout: None,
            tag: None,
        }
    }

    /// Longest time of one attempt: as declared, or the default of the executor.
    pub fn effective_timeout(&self) -> Option<HumanDuration> {
        self.timeout.or(match &self.executor {
            Executor::Process(_) => Some(DEFAULT_PROCESS_TIMEOUT),
            Executor::Http(_) => Some(DEFAULT_HTTP_TIMEOUT),
            Executor::Rust(_) | Executor::Remote(_) => None,
        })
    }

    /// Every secret that it refers to, with the setting.
    pub(crate) fn secrets(&self) -> Vec<(String, &SecretReference)> {
        match &self.executor {
            Executor::Rust(_) => Vec::new(),
            Executor::Process(settings) => secrets_in("environment", &settings.environment),
            Executor::Http(settings) => {
                let signing =
                    settings.signing_secret.iter().map(|secret| ("signing_secret".to_owned(), secret));
                secrets_in("headers", &settings.headers).into_iter().chain(signing).collect()
            }
            Executor::Remote(settings) => {
                settings.push.iter().map(|push| ("push.secret".to_owned(), &push.secret)).collect()
            }
        }
    }

    /// Checks every setting and compiles the schema.
    ///
    /// # Errors
    /// `invalid-function` with the setting, what is wrong with it and what to write instead.
    pub fn check(&self) -> Result<Option<InputSchema>, FunctionError> {
        self.check_settings()?;
        self.input_schema.as_ref().map(InputSchema::compile).transpose()
    }

    /// Checks every setting but the schema.
    ///
    /// # Errors
    /// As [`Function::check`].
    pub(super) fn check_settings(&self) -> Result<(), FunctionError> {
        let description = self.description.as_deref().unwrap_or_default();
        if let Some(problem) = free_text::problem(description, MAX_DESCRIPTION_BYTES) {
            return Err(FunctionError::invalid("description", problem));
        }
        let limits = CallLimits {
            retry: self.retry.as_ref(),
            timeout: self.timeout,
            deadline: self.deadline,
            heartbeat_timeout: self.heartbeat_timeout,
        };
        limits.check(&self.executor).map_err(|(field, problem)| FunctionError::invalid(field, problem))?;
        match &self.executor {
            Executor::Rust(_) => {}
            Executor::Process(settings) => settings.check()?,
            Executor::Http(settings) => settings.check()?,
            Executor::Remote(settings) => settings.check()?,
        }
        Ok(())
    }
}

fn secrets_in<'a>(
    field: &str,
    values: &'a BTreeMap<String, SettingValue>,
) -> Vec<(String, &'a SecretReference)> {
    let secrets = values.iter().filter_map(|(name, value)| Some((name, value.secret()?)));
    secrets.map(|(name, secret)| (format!("{field}.{name}"), secret)).collect()
}

/// What bounds the attempts of a call, in a declaration, in a request, and in a pool.
#[derive(Default)]
pub(crate) struct CallLimits<'a> {
    pub(crate) retry: Option<&'a RetryPolicy>,
    pub(crate) timeout: Option<HumanDuration>,
    pub(crate) deadline: Option<HumanDuration>,
    pub(crate) heartbeat_timeout: Option<HumanDuration>,
}

impl CallLimits<'_> {
    /// Checks them for what has an executor.
    pub(crate) fn check(&self, executor: &Executor) -> Result<(), (&'static str, String)> {
        self.check_values()?;
        let silent = matches!(executor, Executor::Process(_) | Executor::Http(_));
        if silent && self.heartbeat_timeout.is_some() {
            let problem = format!("the executor {:?} gives no heartbeats; use timeout", executor.name());
            return Err(("heartbeat_timeout", problem));
        }
        Ok(())
    }

    /// Checks them for what is run elsewhere.
    pub(crate) fn check_values(&self) -> Result<(), (&'static str, String)> {
        self.retry.map_or(Ok(()), RetryPolicy::check)?;
        let durations = [
            ("timeout", self.timeout),
            ("deadline", self.deadline),
            ("heartbeat_timeout", self.heartbeat_timeout),
        ];
        for (field, duration) in durations {
            if duration.is_some_and(|duration| duration.as_ms() == 0) {
                return Err((
                    field,
                    "nothing is done in no time; write a duration such as \"30s\"".to_owned(),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "function_tests.rs"]
mod tests;
