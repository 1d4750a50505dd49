//! Parameters of runs.

use serde::Serialize;
use serde_json::Value;

/// What a run can set.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Parameter {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its value in runs that do not set it. Without a default every run has to set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// JSON Schema that values are checked against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}
