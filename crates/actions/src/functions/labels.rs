//! What Segno writes on the instances of calls: which function they run, and what made them. Both are reserved labels, which
//! nothing outside can set, so that lists can show and find calls by them without reading a history.

use std::collections::BTreeMap;
use std::fmt;

use segno::limits::MAX_LABEL_VALUE_BYTES;

use super::invocation::sha256;
use super::names::{CallName, FunctionName, Scope};

/// Label with the function of a call, behind the prefix of its scope: one tenant's calls of one function are one value, so
/// finding them does not walk over those of others.
pub const FUNCTION_LABEL: &str = "segno.function";

/// Label with what made a call or started an orchestration, if that was not a caller.
pub const TRIGGER_LABEL: &str = "segno.trigger";

/// What makes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A caller.
    Call,
    /// An action whose time had come.
    Action,
    /// An occurrence of a recurring action.
    Schedule,
    /// A payload of a webhook.
    Hook,
    /// A step of a runbook.
    Runbook,
    /// A task of a DAG run.
    Dag,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Trigger; 6] =
        [Trigger::Call, Trigger::Action, Trigger::Schedule, Trigger::Hook, Trigger::Runbook, Trigger::Dag];

    /// The name, as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Call => "call",
            Trigger::Action => "action",
            Trigger::Schedule => "schedule",
            Trigger::Hook => "hook",
            Trigger::Runbook => "runbook",
            Trigger::Dag => "dag",
        }
    }

    /// The label of an instance that was started so; a call by a caller needs none.
    pub(crate) fn label(self) -> Option<(&'static str, &'static str)> {
        (self != Trigger::Call).then_some((TRIGGER_LABEL, self.as_str()))
    }

    /// What made an instance, by its labels; `None` for an orchestration that a caller or a parent started.
    pub fn of(labels: &BTreeMap<String, String>) -> Option<Self> {
        match labels.get(TRIGGER_LABEL) {
            Some(name) => Trigger::ALL.into_iter().find(|trigger| trigger.as_str() == name),
            None => labels.contains_key(FUNCTION_LABEL).then_some(Trigger::Call),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FunctionName {
    /// The label of the instances that run it for a scope.
    pub fn label(&self, scope: &Scope) -> (String, String) {
        CallName::from(self.clone()).label(scope)
    }
}

impl CallName {
    /// The label of the instances that run it for a scope. Where the value would be longer than one may be, it ends in
    /// `sha256:{hash}`, which no name can be.
    pub fn label(&self, scope: &Scope) -> (String, String) {
        let prefix = scope.id_prefix();
        let plain = format!("{prefix}{self}");
        let fits = plain.len() <= MAX_LABEL_VALUE_BYTES;
        let value = if fits { plain } else { format!("{prefix}sha256:{}", sha256(self.as_str())) };
        (FUNCTION_LABEL.to_owned(), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_what_runs_and_what_made_it() {
        let scope = Scope::new("shop", "eu").unwrap();
        let mut labels = BTreeMap::from([FunctionName::new("charge").unwrap().label(&scope)]);
        assert_eq!(labels[FUNCTION_LABEL], "shop/eu/charge");
        assert_eq!(Trigger::of(&labels), Some(Trigger::Call));
        for trigger in Trigger::ALL {
            labels.extend(trigger.label().map(|(key, value)| (key.to_owned(), value.to_owned())));
            assert_eq!(Trigger::of(&labels), Some(trigger));
        }
        assert_eq!(Trigger::of(&BTreeMap::new()), None);
    }

    #[test]
    fn the_longest_names_fit_into_a_label() {
        let longest = "x".repeat(64);
        let scope = Scope::new(&longest, &longest).unwrap();
        let value = |name: String| CallName::new(name).unwrap().label(&scope).1;
        assert!(FunctionName::new(longest.as_str()).unwrap().label(&scope).1.ends_with(&longest));
        let values = [value("X".repeat(126)), value("X".repeat(127)), value("X".repeat(128))];
        assert!(values.iter().all(|value| value.len() <= MAX_LABEL_VALUE_BYTES && scope.owns(value)));
        assert!(values[0].ends_with('X') && values[1] != values[2], "{values:?}");
    }
}
