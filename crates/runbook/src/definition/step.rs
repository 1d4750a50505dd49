//! One step: a function of a worker pool, with templates as parameters.

use std::collections::BTreeMap;

use serde_json::Value;

/// A step of a phase, of init, of a rollback or of the removal of a member.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDefinition {
    /// Unique within its list, compared case-insensitively.
    pub name: String,
    /// Name of the worker pool, in the letter case of its workers.
    pub worker_id: String,
    /// Name of the function; may have placeholders.
    pub function: String,
    /// Parameters; texts in them may have placeholders.
    pub params: BTreeMap<String, Value>,
    /// Variables of the member that the result sets: variable → field of the result.
    pub output_params: BTreeMap<String, String>,
    /// Name of the rollback that a final failure triggers.
    pub on_failure: Option<String>,
    /// How often a step that is still in progress is called again.
    pub poll: Option<Poll>,
    /// How often a failed step is tried again: its own `retry`, else that of the runbook.
    pub retry: Retry,
}

/// Calling the function again while the worker returns `{complete: false}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// Seconds between two polls.
    pub interval_sec: u64,
    /// Seconds from the first `{complete: false}` until the step times out.
    pub timeout_sec: u64,
}

/// Trying a failed step again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retry {
    /// Attempts after the first.
    pub max_retries: u32,
    /// Seconds before each of them.
    pub interval_sec: u64,
}
