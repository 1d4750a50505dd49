//! Bodies that say only what changes: what is left out stays, and `null` clears.

use std::collections::{BTreeMap, BTreeSet};

use segno_api::Json;
use serde::de::DeserializeOwned;

use crate::problem::{Code, Refusal};

/// A body that says only what changes, with its values as they were written.
pub type Changes = BTreeMap<String, Json>;

/// Takes a body apart into what is set and the names of what is cleared.
///
/// # Errors
/// When a field is wrong, with the field.
pub fn partial<T: DeserializeOwned>(body: Changes) -> Result<(T, BTreeSet<String>), Refusal> {
    let (nulls, rest): (Changes, Changes) = body.into_iter().partition(|(_, value)| value.text() == "null");
    let rest = serde_json::to_string(&rest)
        .map_err(|error| Refusal::new(Code::InvalidRequest, format!("the body is wrong: {error}")))?;
    let mut deserializer = serde_json::Deserializer::from_str(&rest);
    let fields = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        Refusal::field(path, error.into_inner().to_string())
    })?;
    Ok((fields, nulls.into_keys().collect()))
}

/// A field that cannot be cleared.
pub fn not_clearable(field: &str) -> Refusal {
    Refusal::field(field, "cannot be null; leave it out, or give it a value")
}
