//! Functions: named code that calls are made to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;
use crate::unreadable::Unreadable;

/// Where a function is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FunctionOrigin {
    /// In the server's settings or code: the same for all tenants, and not to be changed through the API.
    Configured,
    /// In the store: of one namespace and tenant.
    Stored,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Function {
    /// Its name.
    #[schema(example = "thumbnail")]
    pub name: String,
    /// Where it is declared.
    pub origin: FunctionOrigin,
    /// Changes with every write; also the `ETag`. Only stored functions have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The declaration, as the guide's page "functions" describes it. Secrets in it are references.
    pub declaration: Json,
}

/// A page of functions, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FunctionList {
    /// The functions.
    pub functions: Vec<Function>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What a tool wrote to stderr in one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FunctionLog {
    /// Idempotency key of the call.
    pub call: String,
    /// The attempt, from 1.
    pub attempt: u32,
    /// How much the tool wrote in all.
    pub total_bytes: u64,
    /// Whether the beginning is missing.
    pub is_cut: bool,
    /// The end of what the tool wrote, without secrets.
    pub text: String,
}

/// A page of the logs of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FunctionLogList {
    /// By call, and by attempt as text: 1, 10, 2.
    pub logs: Vec<FunctionLog>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
