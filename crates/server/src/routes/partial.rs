//! Bodies that say only what changes: what is left out stays, and `null` clears.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::problem::Refusal;

/// Takes a body apart into what is set and the names of what is cleared.
///
/// # Errors
/// When a field is wrong, with the field.
pub fn partial<T: DeserializeOwned>(body: Map<String, Value>) -> Result<(T, BTreeSet<String>), Refusal> {
    let (nulls, rest): (Vec<_>, Vec<_>) = body.into_iter().partition(|(_, value)| value.is_null());
    let rest = Value::Object(rest.into_iter().collect());
    let fields = serde_path_to_error::deserialize(rest).map_err(|error| {
        let path = error.path().to_string();
        Refusal::field(path, error.into_inner().to_string())
    })?;
    Ok((fields, nulls.into_iter().map(|(name, _)| name).collect()))
}

/// A field that cannot be cleared.
pub fn not_clearable(field: &str) -> Refusal {
    Refusal::field(field, "cannot be null; leave it out, or give it a value")
}
