//! JSON Schemas that an orchestration may declare: of its input, and of what its signals and mailboxes take. They are published
//! with its name. The engine stores them and never evaluates them: servers check inputs against them at the start, and pages
//! make forms of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};
use crate::limits::{MAX_MESSAGE_SCHEMAS, MAX_SCHEMAS_BYTES};
use crate::names;
use crate::payload::Payload;

/// The schemas of an orchestration. They count for all its versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrchestrationSchemas {
    /// Of its input. A server refuses a start whose input does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// Of what signals and mailboxes take, by their names. Nothing is refused by them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<String, Payload>,
}

impl OrchestrationSchemas {
    /// No schemas.
    pub fn new() -> Self {
        Self::default()
    }

    /// The schema of the input: an object or a boolean, as JSON.
    ///
    /// # Errors
    /// Those of a payload.
    pub fn input(mut self, schema: &impl Serialize) -> Result<Self, Error> {
        self.input = Some(Payload::encode(schema)?);
        Ok(self)
    }

    /// The schema of what a signal or mailbox takes.
    ///
    /// # Errors
    /// Those of a payload.
    pub fn message(mut self, name: &str, schema: &impl Serialize) -> Result<Self, Error> {
        self.messages.insert(name.to_owned(), Payload::encode(schema)?);
        Ok(self)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.input.is_none() && self.messages.is_empty()
    }

    /// Checks what the engine has to know of them.
    pub(crate) fn check(&self, orchestration: &str) -> Result<(), Error> {
        let refuse = |problem: String| {
            Err(Error::new(Code::InvalidOption, format!("the schemas of {orchestration:?} {problem}")))
        };
        if self.messages.len() > MAX_MESSAGE_SCHEMAS {
            return refuse(format!(
                "are for {} messages, the limit is {MAX_MESSAGE_SCHEMAS}",
                self.messages.len()
            ));
        }
        for name in self.messages.keys() {
            names::check_name("signal or mailbox name", name)?;
        }
        let all = || self.input.iter().chain(self.messages.values());
        let bytes: usize = all().map(|schema| schema.as_str().len()).sum();
        if bytes > MAX_SCHEMAS_BYTES {
            return refuse(format!("have {bytes} bytes, the limit is {MAX_SCHEMAS_BYTES}"));
        }
        match all().find(|schema| !is_schema(schema.as_str())) {
            Some(schema) => {
                refuse(format!("have one that is no object and no boolean: {:.40}", schema.as_str()))
            }
            None => Ok(()),
        }
    }
}

/// Whether a text of JSON may be a schema.
fn is_schema(text: &str) -> bool {
    text.trim_start().starts_with('{') || matches!(text.trim(), "true" | "false")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_objects_or_booleans_within_limits() {
        let some = OrchestrationSchemas::new().input(&json!({ "type": "object" })).unwrap();
        let some = some.message("approved", &true).unwrap();
        assert!(some.check("greet").is_ok() && !some.is_empty());
        let stored = serde_json::to_string(&some).unwrap();
        assert_eq!(serde_json::from_str::<OrchestrationSchemas>(&stored).unwrap(), some);
        assert_eq!(serde_json::from_str::<OrchestrationSchemas>("{}").unwrap(), OrchestrationSchemas::new());
        let long = "x".repeat(MAX_SCHEMAS_BYTES);
        let many = (0..=MAX_MESSAGE_SCHEMAS).map(|number| (number.to_string(), Payload::null()));
        for wrong in [
            OrchestrationSchemas::new().input(&7).unwrap(),
            OrchestrationSchemas::new().input(&json!({ "title": long })).unwrap(),
            OrchestrationSchemas::new().message("", &true).unwrap(),
            OrchestrationSchemas { messages: many.collect(), ..OrchestrationSchemas::new() },
        ] {
            assert!(wrong.check("greet").is_err(), "{wrong:?}");
        }
    }
}
