//! Every answer that is not a success: `application/problem+json` (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What went wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Address of the page about this code.
    #[serde(rename = "type")]
    #[schema(example = "https://segno.dev/errors/not-found")]
    pub page: String,
    /// A few words that are the same for every problem of this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable name of the problem; programs decide by it.
    #[schema(example = "not-found")]
    pub code: String,
    /// What is wrong this time, and what to do.
    pub detail: String,
    /// A short text without names or ids, where a route promises one: `recurring action not found`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Fields of the request that are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// Id of the request, as in the answer's `x-request-id` and in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// Which field: a name with dots, as in `filter.status`.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}
