//! Which variables the steps of a definition use, and what provides each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use segno_actions::template::Template;
use serde_json::Value;

use crate::definition::{Definition, StepDefinition};
use crate::names::{BATCH_ID, BATCH_START_TIME, MEMBER_KEY};

/// A step of a definition. Steps are ordered as they run, as far as they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepAt<'d> {
    /// Of `init`.
    Init(usize),
    /// Of a phase, by the indexes of phase and step in the definition.
    Phase(usize, usize),
    /// Of a rollback.
    Rollback(&'d str, usize),
    /// Of `on_member_removed`.
    Removal(usize),
}

impl fmt::Display for StepAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepAt::Init(step) => write!(f, "init[{step}]"),
            StepAt::Phase(phase, step) => write!(f, "phases[{phase}].steps[{step}]"),
            StepAt::Rollback(name, step) => write!(f, "rollbacks.{name}[{step}]"),
            StepAt::Removal(step) => write!(f, "on_member_removed[{step}]"),
        }
    }
}

/// What gives a variable its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider<'d> {
    /// The system: batch or member.
    System,
    /// Outputs of these steps, which precede the use.
    Outputs(Vec<&'d str>),
    /// Only outputs of these steps, none of which has run before the use.
    LaterOutputs(Vec<&'d str>),
    /// Nothing in the definition, so it has to be a column.
    Column,
    /// Nothing: `init` steps see no columns, and outputs of earlier `init` steps only.
    Nothing,
}

/// One use of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse<'d> {
    /// The step.
    pub step: StepAt<'d>,
    /// Where in the step, as in `params.User.Name`.
    pub field: String,
    /// The variable.
    pub name: String,
    /// Whether the use has no default.
    pub is_required: bool,
    /// Whether a part of the variable is used, as in `{{Aliases[0]}}`.
    pub has_parts: bool,
    /// What provides it.
    pub provider: Provider<'d>,
}

/// All uses of variables, in the order of init, phases, rollbacks and removal.
pub fn uses(definition: &Definition) -> Vec<VariableUse<'_>> {
    let outputs = Outputs::of(definition);
    let mut uses = Vec::new();
    for (index, step) in definition.init.iter().enumerate() {
        collect(StepAt::Init(index), step, &outputs, &mut uses);
    }
    for (phase_index, phase) in definition.phases.iter().enumerate() {
        for (index, step) in phase.steps.iter().enumerate() {
            collect(StepAt::Phase(phase_index, index), step, &outputs, &mut uses);
        }
    }
    for (name, steps) in &definition.rollbacks {
        for (index, step) in steps.iter().enumerate() {
            collect(StepAt::Rollback(name, index), step, &outputs, &mut uses);
        }
    }
    for (index, step) in definition.on_member_removed.iter().enumerate() {
        collect(StepAt::Removal(index), step, &outputs, &mut uses);
    }
    uses
}

/// The columns that members must have: variables without a default that nothing else provides.
pub fn columns_needed(definition: &Definition) -> BTreeSet<String> {
    let needed = uses(definition).into_iter().filter(|usage| usage.is_required);
    needed.filter(|usage| usage.provider == Provider::Column).map(|usage| usage.name).collect()
}

/// Which steps set which variables.
struct Outputs<'d> {
    by_name: BTreeMap<&'d str, Vec<(StepAt<'d>, &'d str)>>,
    /// For each rollback, the steps whose failure triggers it.
    triggers: BTreeMap<&'d str, Vec<StepAt<'d>>>,
}

impl<'d> Outputs<'d> {
    fn of(definition: &'d Definition) -> Self {
        let mut outputs = Outputs { by_name: BTreeMap::new(), triggers: BTreeMap::new() };
        for (index, step) in definition.init.iter().enumerate() {
            outputs.add(StepAt::Init(index), step);
        }
        for (phase_index, phase) in definition.phases.iter().enumerate() {
            for (index, step) in phase.steps.iter().enumerate() {
                outputs.add(StepAt::Phase(phase_index, index), step);
            }
        }
        for (rollback, steps) in &definition.rollbacks {
            for (index, step) in steps.iter().enumerate() {
                outputs.add(StepAt::Rollback(rollback, index), step);
            }
        }
        outputs
    }

    fn add(&mut self, at: StepAt<'d>, step: &'d StepDefinition) {
        for name in step.output_params.keys() {
            self.by_name.entry(name).or_default().push((at, &step.name));
        }
        if let Some(rollback) = &step.on_failure {
            self.triggers.entry(rollback).or_default().push(at);
        }
    }

    fn provider(&self, name: &str, at: StepAt<'d>) -> Provider<'d> {
        let is_special = |name: &str| {
            let is_of_member = name == MEMBER_KEY && !matches!(at, StepAt::Init(_));
            is_of_member || [BATCH_ID, BATCH_START_TIME].contains(&name)
        };
        let setters = self.setters(name).or_else(|| self.setters(&format!("_{name}")));
        let setters = setters.map(Vec::as_slice).unwrap_or_default();
        let precedes = |setter: &&(StepAt<'d>, &'d str)| self.may_precede(setter.0, at);
        let before: Vec<&str> = setters.iter().filter(precedes).map(|(_, step)| *step).collect();
        if is_special(name) {
            Provider::System
        } else if !before.is_empty() {
            Provider::Outputs(before)
        } else if is_special(&format!("_{name}")) {
            Provider::System
        } else if matches!(at, StepAt::Init(_)) {
            Provider::Nothing
        } else if !setters.is_empty() {
            Provider::LaterOutputs(setters.iter().map(|(_, step)| *step).collect())
        } else {
            Provider::Column
        }
    }

    fn setters(&self, name: &str) -> Option<&Vec<(StepAt<'d>, &'d str)>> {
        self.by_name.get(name)
    }

    /// Whether a step that sets a variable may have succeeded before another one begins.
    fn may_precede(&self, setter: StepAt<'d>, user: StepAt<'d>) -> bool {
        match (setter, user) {
            (StepAt::Rollback(of, setter), StepAt::Rollback(name, user)) => of == name && setter < user,
            (StepAt::Init(_) | StepAt::Phase(..), StepAt::Rollback(name, _)) => {
                let triggers = self.triggers.get(name).map(Vec::as_slice).unwrap_or_default();
                triggers.iter().any(|trigger| setter < *trigger)
            }
            (_, StepAt::Removal(_)) => true,
            // Init comes before all phases.
            (StepAt::Init(_) | StepAt::Phase(..), StepAt::Init(_) | StepAt::Phase(..)) => setter < user,
            _ => false,
        }
    }
}

fn collect<'d>(
    at: StepAt<'d>,
    step: &'d StepDefinition,
    outputs: &Outputs<'d>,
    uses: &mut Vec<VariableUse<'d>>,
) {
    let mut texts = vec![("function".to_owned(), step.function.as_str())];
    for (name, value) in &step.params {
        texts_below(&format!("params.{name}"), value, &mut texts);
    }
    for (field, text) in texts {
        let Ok(template) = Template::parse(text) else { continue };
        let required: BTreeSet<&str> = template.required_names().collect();
        let wanted = template.wanted();
        for name in wanted.names() {
            uses.push(VariableUse {
                step: at,
                field: field.clone(),
                name: name.to_owned(),
                is_required: required.contains(name),
                has_parts: wanted.fields_of(name).next().is_some(),
                provider: outputs.provider(name, at),
            });
        }
    }
}

/// All texts of a value with their paths.
fn texts_below<'v>(path: &str, value: &'v Value, texts: &mut Vec<(String, &'v str)>) {
    match value {
        Value::String(text) => texts.push((path.to_owned(), text)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| texts_below(&format!("{path}[{index}]"), item, texts));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| texts_below(&format!("{path}.{name}"), field, texts));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segno_actions::schedule::Zones;

    fn definition() -> Definition {
        let yaml = include_bytes!("../../../../examples/runbooks/wave-mailbox-move.yaml");
        crate::yaml::parse(yaml, &Zones::bundled()).unwrap().definition
    }

    #[test]
    fn each_use_has_its_provider() {
        let definition = definition();
        let listed: Vec<String> = uses(&definition)
            .iter()
            .map(|usage| format!("{}.{}: {} from {:?}", usage.step, usage.field, usage.name, usage.provider))
            .collect();
        expect_test::expect![[r#"
            [
                "init[0].params.Name: _batch_id from System",
                "init[0].params.Start: _batch_start_time from System",
                "phases[0].steps[0].params.UserPrincipalName: TargetUpn from Column",
                "phases[0].steps[1].params.ExpectedValues: Aliases from Column",
                "phases[0].steps[1].params.UserId: TargetId from Outputs([\"create-user\"])",
                "phases[1].steps[0].params.Identity: Upn from Column",
                "rollbacks.undo-user[0].params.UserId: TargetId from LaterOutputs([\"create-user\"])",
                "on_member_removed[0].params.Identity: Upn from Column",
            ]
        "#]]
        .assert_debug_eq(&listed);
        assert_eq!(
            columns_needed(&definition).into_iter().collect::<Vec<_>>(),
            ["Aliases", "TargetUpn", "Upn"]
        );
    }

    #[test]
    fn defaults_parts_and_short_names_are_known() {
        let mut definition = definition();
        let step = &mut definition.phases[0].steps[0];
        step.params = BTreeMap::from([
            ("a".to_owned(), Value::String("{{Optional | default('x')}} {{Aliases[0]}}".to_owned())),
            ("b".to_owned(), Value::String("{{batch_id}} {{member_key}} {{TargetId}}".to_owned())),
        ]);
        let found = uses(&definition);
        let of = |name: &str| found.iter().find(|usage| usage.name == name).unwrap();
        assert!(!of("Optional").is_required && of("Aliases").has_parts && !of("batch_id").has_parts);
        assert_eq!(of("batch_id").provider, Provider::System);
        assert_eq!(of("member_key").provider, Provider::System);
        // Its own output is not there yet.
        assert_eq!(of("TargetId").provider, Provider::LaterOutputs(vec!["create-user"]));
    }

    #[test]
    fn init_steps_have_no_member_and_set_variables_of_the_batch() {
        let mut definition = definition();
        let text = |text: &str| BTreeMap::from([("a".to_owned(), Value::String(text.to_owned()))]);
        definition.init[0].params = text("{{Upn}} {{TargetId}} {{member_key}} {{Endpoint}}");
        definition.init[0].output_params.insert("Endpoint".to_owned(), "Id".to_owned());
        let mut second = definition.init[0].clone();
        second.name = "second".to_owned();
        second.params = text("{{Endpoint}}");
        second.output_params.clear();
        definition.init.push(second);
        definition.phases[0].steps[0].params = text("{{Endpoint}}");
        let found = uses(&definition);
        assert!(found[..4].iter().all(|usage| usage.provider == Provider::Nothing), "{found:?}");
        let by_init = Provider::Outputs(vec!["open-batch"]);
        assert_eq!(found[4].provider, by_init);
        let in_phase = found.iter().find(|usage| usage.step == StepAt::Phase(0, 0)).unwrap();
        assert_eq!((in_phase.name.as_str(), &in_phase.provider), ("Endpoint", &by_init));
    }
}
