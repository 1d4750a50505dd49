//! The variables of a batch or of one of its members.
//!
//! A name is looked up in this order:
//! 1. `_batch_id`, `_batch_start_time`, `_member_key`;
//! 2. the outputs of the member's steps;
//! 3. the columns of the member;
//! 4. the outputs of init steps;
//! 5. the same with an underscore before the name.
//!
//! Every value is a text, except lists (multi-valued columns), which stay lists.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::names::{BATCH_ID, BATCH_START_TIME, MEMBER_KEY};

/// Where variables come from. A value that is null is as if it were not there.
#[derive(Debug, Clone, Copy)]
pub struct VariableSources<'s> {
    /// `_batch_id`
    pub batch_id: &'s str,
    /// `_batch_start_time`; none in batches that are advanced by hand.
    pub batch_start_time: Option<Timestamp>,
    /// Variables that results of init steps have set.
    pub batch_data: &'s Map<String, Value>,
    /// The member; none in init steps and their rollbacks.
    pub member: Option<MemberVariables<'s>>,
}

/// Variables of a member.
#[derive(Debug, Clone, Copy)]
pub struct MemberVariables<'s> {
    /// `_member_key`
    pub key: &'s str,
    /// Its columns.
    pub data: &'s Map<String, Value>,
    /// Variables that results of its steps have set.
    pub worker_data: &'s Map<String, Value>,
}

/// Names with their values, ready for templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Variables {
    /// An object; templates take their names from it.
    names: Value,
}

impl Variables {
    /// All variables of these sources.
    pub fn new(sources: &VariableSources<'_>) -> Self {
        let mut names = Map::new();
        // Later layers win.
        let member = sources.member.map(|member| [member.data, member.worker_data]);
        let layers = std::iter::once(sources.batch_data).chain(member.into_iter().flatten());
        for (name, value) in layers.flatten() {
            if let Some(value) = as_variable(value) {
                names.insert(name.clone(), value);
            }
        }
        let specials = [
            (BATCH_ID, Some(sources.batch_id.to_owned())),
            (BATCH_START_TIME, sources.batch_start_time.map(|time| time.to_string())),
            (MEMBER_KEY, sources.member.map(|member| member.key.to_owned())),
        ];
        for (name, value) in specials {
            names.remove(name);
            names.extend(value.map(|value| (name.to_owned(), Value::String(value))));
        }
        Self::with_short_names(names)
    }

    /// Adds `name` for each `_name`, unless there is one.
    fn with_short_names(mut names: Map<String, Value>) -> Self {
        let short: Vec<(String, Value)> = names
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix('_')?, value)))
            .filter(|(name, _)| !name.is_empty() && !names.contains_key(*name))
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect();
        names.extend(short);
        Variables { names: Value::Object(names) }
    }

    /// Whether a variable has a value.
    pub fn has(&self, name: &str) -> bool {
        self.names.get(name).is_some()
    }

    pub(super) fn names(&self) -> &Value {
        &self.names
    }
}

/// A value as variables have it; none for null.
fn as_variable(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(_) | Value::Array(_) => Some(value.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Some(Value::String(value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    #[test]
    fn names_are_looked_up_in_order() {
        let data = object(json!({
            "Upn": "a@b", "TargetId": "old", "Aliases": ["x", "y"], "batch_id": "mine", "_region": "eu",
            "count": 7, "gone": null, "kept": "column", "nested": { "a": 1 }, "_batch_id": "forged"
        }));
        let worker_data = object(json!({ "TargetId": 42, "done": true, "kept": null }));
        let batch_data = object(json!({ "Upn": "hidden", "Endpoint": "e1", "TargetId": "hidden" }));
        let variables = Variables::new(&VariableSources {
            batch_id: "12",
            batch_start_time: Some("2025-03-15T00:00:00Z".parse().unwrap()),
            batch_data: &batch_data,
            member: Some(MemberVariables { key: "KEY", data: &data, worker_data: &worker_data }),
        });
        assert_eq!(
            variables.names(),
            &json!({
                "_batch_id": "12", "_batch_start_time": "2025-03-15T00:00:00Z", "_member_key": "KEY",
                "batch_id": "mine", "batch_start_time": "2025-03-15T00:00:00Z", "member_key": "KEY",
                "Upn": "a@b", "TargetId": "42", "Aliases": ["x", "y"], "_region": "eu", "region": "eu",
                "count": "7", "kept": "column", "done": "true", "nested": "{\"a\":1}", "Endpoint": "e1"
            })
        );
        assert!(variables.has("Upn") && !variables.has("gone"));
    }

    #[test]
    fn without_a_member_there_are_the_variables_of_the_batch() {
        let batch_data = object(json!({ "Endpoint": "e1", "_member_key": "forged" }));
        let variables = Variables::new(&VariableSources {
            batch_id: "12",
            batch_start_time: None,
            batch_data: &batch_data,
            member: None,
        });
        assert_eq!(variables.names(), &json!({ "_batch_id": "12", "batch_id": "12", "Endpoint": "e1" }));
    }
}
