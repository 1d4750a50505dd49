//! What an action, an occurrence or a payload starts: a function, by the built-in orchestration `invoke`, or an orchestration.

use std::fmt;

use segno::client::StartCall;
use segno::limits::MAX_NAME_BYTES;
use segno::{Client, Orchestration, Payload};
use serde::{Deserialize, Serialize};

use crate::action::ActionError;
use crate::functions::{
    FunctionName, Functions, INVOKE, InvokeRequest, Scope, Settle, Settlement, Trigger, invocation_id,
    is_built_in, start_id,
};

/// The name of an orchestration that is not one of Segno's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrchestrationName(String);

impl OrchestrationName {
    /// Checks a name.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn new(name: impl Into<String>) -> Result<Self, String> {
        let name = name.into();
        if is_built_in(&name) {
            return Err(format!(
                "{name:?} is built in and is not started from outside; name a function with `function` to call it"
            ));
        }
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
        if !is_name {
            return Err(format!("must be 1 to {MAX_NAME_BYTES} bytes without control characters"));
        }
        Ok(OrchestrationName(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for OrchestrationName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        OrchestrationName::new(name)
    }
}

impl From<OrchestrationName> for String {
    fn from(name: OrchestrationName) -> Self {
        name.0
    }
}

impl fmt::Display for OrchestrationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A function.
    Function(FunctionName),
    /// An orchestration.
    Orchestration(OrchestrationName),
}

impl Target {
    /// The instance that is started for a key.
    pub(crate) fn instance_id(&self, scope: &Scope, key: &str) -> String {
        match self {
            Target::Function(_) => invocation_id(scope, key),
            Target::Orchestration(_) => start_id(scope, key),
        }
    }
}

/// A start that is wanted, of whatever it is.
pub(crate) struct WantedStart<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) target: Target,
    pub(crate) input: Payload,
    /// What the id of the instance follows from.
    pub(crate) key: String,
    pub(crate) trigger: Trigger,
    /// Whether a function is given up that was lost with its node.
    pub(crate) gives_up_when_lost: bool,
    pub(crate) settle: Settle,
}

impl WantedStart<'_> {
    /// The start. Its end is written down for what it was started for, in the commit that ends the instance.
    pub(crate) async fn start(
        self,
        client: &Client,
        functions: &Functions,
    ) -> Result<StartCall<Payload>, ActionError> {
        let WantedStart { scope, target, input, key, trigger, gives_up_when_lost, settle } = self;
        let id = target.instance_id(scope, &key);
        let start = match target {
            Target::Function(function) => {
                let (label, value) = function.label(scope);
                let mut invocation = functions.prepare(scope, InvokeRequest::new(function, input)).await?;
                invocation.gives_up_when_lost = gives_up_when_lost;
                invocation.settle = Some(settle);
                client.start(INVOKE, invocation).id(id).reserved_label(label, value)
            }
            Target::Orchestration(name) => {
                let orchestration = Orchestration::<Payload, Payload>::named(name);
                let settlement = Settlement::new(scope, settle);
                client.start(orchestration, input).id(id).settle(&settlement)
            }
        };
        Ok(trigger.label().into_iter().fold(start, |start, (key, value)| start.reserved_label(key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_our_own_orchestrations_and_texts_that_are_none_are_refused() {
        for (name, words) in [
            ("invoke", "built in"),
            ("", "1 to 256 bytes"),
            ("a\nb", "control characters"),
            (&"x".repeat(257), "1 to 256"),
        ] {
            let problem = OrchestrationName::new(name).unwrap_err();
            assert!(problem.contains(words), "{problem}");
            let stored = serde_json::from_value::<OrchestrationName>(name.into());
            assert!(stored.unwrap_err().to_string().contains(words));
        }
        assert_eq!(OrchestrationName::new("Order").unwrap().as_str(), "Order");
    }

    #[test]
    fn a_call_and_a_start_of_the_same_key_are_two_instances() {
        let scope = Scope::default();
        let function = Target::Function(FunctionName::new("mail").unwrap());
        let orchestration = Target::Orchestration(OrchestrationName::new("mail").unwrap());
        assert_eq!(function.instance_id(&scope, "action:1"), "default/default/invoke:action:1");
        assert_eq!(orchestration.instance_id(&scope, "action:1"), "default/default/start:action:1");
    }
}
