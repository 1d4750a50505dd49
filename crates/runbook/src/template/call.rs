//! From a step and the variables of a member to the call of a function.

use segno_actions::template::{JsonTemplate, Template, TemplateError};
use serde_json::Value;

use super::error::ResolveError;
use super::variables::Variables;
use crate::definition::StepDefinition;
use crate::limits::MAX_RESOLVED_PARAMS_BYTES;
use crate::names::NameKind;

/// The templates of a step, read once for all members.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTemplate {
    function: Template,
    params: JsonTemplate,
}

/// A function and its parameters, without placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedCall {
    /// The function.
    pub function: String,
    /// Its parameters, an object.
    pub params: Value,
}

impl StepTemplate {
    /// Reads the templates of a step.
    ///
    /// # Errors
    /// `invalid-template`; not for a step of a runbook that was parsed.
    pub fn new(step: &StepDefinition) -> Result<Self, TemplateError> {
        let params = Value::Object(step.params.clone().into_iter().collect());
        Ok(StepTemplate { function: Template::parse(&step.function)?, params: JsonTemplate::parse(&params)? })
    }

    /// The call for these variables.
    ///
    /// # Errors
    /// `unresolved-variable` with all names that have no value, `template-failed` for values that cannot
    /// stand where they are used and for results that are too large.
    pub fn resolve(&self, variables: &Variables) -> Result<ResolvedCall, ResolveError> {
        let call = self.render(variables)?;
        check_function(&call.function)?;
        Ok(call)
    }

    /// The call for variables of which some are placeholders, because their values are not known yet.
    ///
    /// # Errors
    /// Those of [`StepTemplate::resolve`], except for the name of a function that is not known yet.
    pub fn preview(&self, variables: &Variables) -> Result<ResolvedCall, ResolveError> {
        let call = self.render(variables)?;
        if !call.function.contains("{{") {
            check_function(&call.function)?;
        }
        Ok(call)
    }

    fn render(&self, variables: &Variables) -> Result<ResolvedCall, ResolveError> {
        let names = self.unresolved(variables);
        if !names.is_empty() {
            return Err(ResolveError::Unresolved { names });
        }
        let function = self.function.render(variables.names())?;
        let params = self.params.render(variables.names())?;
        let bytes = params.to_string().len();
        if bytes > MAX_RESOLVED_PARAMS_BYTES {
            let problem = format!(
                "the resolved parameters have {bytes} bytes, the limit is {MAX_RESOLVED_PARAMS_BYTES}"
            );
            return Err(ResolveError::Call { problem });
        }
        Ok(ResolvedCall { function, params })
    }

    /// The names that have no value, sorted.
    fn unresolved(&self, variables: &Variables) -> Vec<String> {
        let mut names = self.params.required_names();
        names.extend(self.function.required_names());
        names.into_iter().filter(|name| !variables.has(name)).map(str::to_owned).collect()
    }
}

fn check_function(name: &str) -> Result<(), ResolveError> {
    NameKind::Function.check(name).map_err(|problem| ResolveError::Call {
        problem: format!("the resolved name of the function cannot be used: {problem}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Retry;
    use crate::template::{MemberVariables, VariableSources};
    use serde_json::{Map, json};

    fn step(function: &str, params: Value) -> StepDefinition {
        let Value::Object(params) = params else { panic!("params are an object") };
        StepDefinition {
            name: "step".to_owned(),
            worker_id: "cloud-01".to_owned(),
            function: function.to_owned(),
            params: params.into_iter().collect(),
            output_params: Default::default(),
            on_failure: None,
            poll: None,
            retry: Retry::default(),
        }
    }

    fn variables_of(data: Value) -> Variables {
        let Value::Object(data) = data else { panic!("data is an object") };
        let none = Map::new();
        Variables::new(&VariableSources {
            batch_id: "42",
            batch_start_time: Some("2025-03-15T00:00:00Z".parse().unwrap()),
            batch_data: &none,
            member: Some(MemberVariables { key: "a@b", data: &data, worker_data: &none }),
        })
    }

    fn variables() -> Variables {
        variables_of(json!({
            "Upn": "a@b", "Aliases": ["x", "y"], "Verb": "Set", "quoted": "say \"hi\" {{Upn}}"
        }))
    }

    #[test]
    fn placeholders_are_resolved_wherever_they_stand() {
        let step = step(
            "{{Verb}}-Mailbox",
            json!({
                "Identity": "{{Upn}}", "Batch": "batch-{{_batch_id}}-{{ batch_start_time }}", "Count": 5,
                "Nested": { "List": ["{{Upn | upper}}", true, null] }, "Aliases": "{{Aliases}}",
                "First": "{{Aliases[0]}}", "Missing": "{{Nothing | default('none')}}", "Quoted": "{{quoted}}",
            }),
        );
        let call = StepTemplate::new(&step).unwrap().resolve(&variables()).unwrap();
        assert_eq!(call.function, "Set-Mailbox");
        assert_eq!(
            call.params,
            json!({
                "Identity": "a@b", "Batch": "batch-42-2025-03-15T00:00:00Z", "Count": 5,
                "Nested": { "List": ["A@B", true, null] }, "Aliases": ["x", "y"], "First": "x",
                "Missing": "none", "Quoted": "say \"hi\" {{Upn}}",
            })
        );
    }

    #[test]
    fn all_unresolved_variables_are_named() {
        let step = step(
            "Do-{{What}}",
            json!({ "a": ["{{Zed}} {{Upn}}"], "b": "{{Abc}}", "c": "{{No | default(1)}}" }),
        );
        let error = StepTemplate::new(&step).unwrap().resolve(&variables()).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"the step uses the variables "Abc", "What", "Zed" without a value [unresolved-variable]"#
        );
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        for (function, params, says) in [
            ("{{Upn}}", json!({}), "\"a@b\" is not allowed"),
            ("Do", json!({ "a": "x{{Aliases}}" }), "Aliases is a list, which has no place in a text"),
            ("Do", json!({ "a": "{{Upn.name}}" }), "Upn is a text, which has no parts"),
        ] {
            let error =
                StepTemplate::new(&step(function, params)).unwrap().resolve(&variables()).unwrap_err();
            assert_eq!(error.code(), "template-failed");
            assert!(error.to_string().contains(says), "{error}");
        }
        let variables = variables_of(json!({ "big": "x".repeat(MAX_RESOLVED_PARAMS_BYTES / 2) }));
        let step = step("Do", json!({ "a": "{{big}}", "b": "{{big}}" }));
        let error = StepTemplate::new(&step).unwrap().resolve(&variables).unwrap_err();
        assert!(error.to_string().contains("the limit is 131072"), "{error}");
    }
}
