//! What a result means: done, still in progress, or failed.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::letter_case::field;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Outcome {
    /// Done.
    Completed {
        /// The result: of `{complete: true, data}`, the data; of a scalar, `{Value}`.
        result: Value,
    },
    /// `{complete: false}`: the work is still in progress.
    InProgress,
    /// Failed.
    Failed {
        /// Why.
        message: String,
        /// Whether the service behind it was throttled, which is no failure of the step.
        #[serde(default, skip_serializing_if = "is_false")]
        throttled: bool,
    },
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Outcome {
    /// What the result of a call that succeeded means. Names are found in either letter case.
    pub fn of_result(result: Value) -> Self {
        let Value::Object(fields) = &result else {
            return Outcome::Completed { result: wrapped(result) };
        };
        match field(fields, "complete") {
            Some(Value::Bool(false)) => Outcome::InProgress,
            Some(Value::Bool(true)) => match field(fields, "data") {
                Some(data) => Outcome::Completed { result: wrapped(data.clone()) },
                None => Outcome::Completed { result },
            },
            _ => Outcome::Completed { result },
        }
    }

    /// A failure with a message.
    pub fn failed(message: impl Into<String>) -> Self {
        Outcome::Failed { message: message.into(), throttled: false }
    }
}

/// A scalar as an object, so that every result has fields.
fn wrapped(value: Value) -> Value {
    match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) => json!({ "Value": value }),
        other => other,
    }
}

/// A field of a result, in either letter case.
pub(crate) fn result_field<'a>(result: &'a Value, name: &str) -> Option<&'a Value> {
    field(result.as_object()?, name)
}

/// What was found when a call was looked after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CallSeen {
    /// It has ended, and its result was not seen.
    Ended {
        /// How it ended.
        outcome: Outcome,
    },
    /// There is no such call.
    Missing,
    /// A worker holds a lease on it.
    Leased,
    /// It waits for a worker, or the transport cannot tell.
    Waiting,
    /// It was not sent: its pool is unknown or paused.
    Unsent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_mean_what_the_polling_protocol_says() {
        let completed = |result| Outcome::Completed { result };
        for (result, outcome) in [
            (json!({"complete": false}), Outcome::InProgress),
            (json!({"Complete": false, "Data": 1}), Outcome::InProgress),
            (json!({"complete": true, "data": {"Id": "7"}}), completed(json!({"Id": "7"}))),
            (json!({"COMPLETE": true, "DATA": 5}), completed(json!({"Value": 5}))),
            (json!({"complete": true}), completed(json!({"complete": true}))),
            (json!({"complete": "false"}), completed(json!({"complete": "false"}))),
            (json!({"Id": "7"}), completed(json!({"Id": "7"}))),
            (json!(true), completed(json!({"Value": true}))),
            (json!("x"), completed(json!({"Value": "x"}))),
            (json!([1]), completed(json!([1]))),
            (json!(null), completed(json!(null))),
        ] {
            assert_eq!(Outcome::of_result(result.clone()), outcome, "{result}");
        }
    }
}
