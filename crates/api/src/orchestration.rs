//! Orchestrations that the nodes of a server have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;

/// An orchestration that a node has, or had within the last day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Orchestration {
    /// Its name.
    pub name: String,
    /// Its versions on the node that published it last, ascending.
    pub versions: Vec<String>,
    /// JSON Schema of its input, if it declares one: a start whose input does not fit is refused with `invalid-input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// JSON Schemas of what its signals and mailboxes take, by their names, as far as it declares them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<String, Json>,
}

/// A page of orchestrations, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrchestrationList {
    /// The orchestrations.
    pub orchestrations: Vec<Orchestration>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
