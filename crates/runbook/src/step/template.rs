//! Placeholders of functions and parameters.

use crate::definition::StepDefinition;
use crate::rows::{BatchRow, MemberRow};
use crate::template::{MemberVariables, StepTemplate, VariableSources, Variables};

/// A step whose placeholders are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The function.
    pub function: String,
    /// The parameters as JSON text.
    pub params_json: String,
}

/// Why placeholders could not be resolved, as a sentence for the step's `error_message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved(pub String);

/// Resolves placeholders. A caller may keep the parsed templates of a definition behind it.
pub trait Templates: Send + Sync {
    /// Resolves the function and the parameters of a step.
    ///
    /// # Errors
    /// When a variable has no value, or the result cannot be called.
    fn resolve(&self, step: &StepDefinition, variables: &Variables) -> Result<Resolved, Unresolved>;

    /// The step as it is written, for rows whose variables are not known yet.
    fn raw(&self, step: &StepDefinition) -> Resolved {
        let params_json = serde_json::to_string(&step.params).unwrap_or_default();
        Resolved { function: step.function.clone(), params_json }
    }
}

/// The templates of runbooks ([`StepTemplate`]), parsed at every use.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepTemplates;

impl Templates for StepTemplates {
    fn resolve(&self, step: &StepDefinition, variables: &Variables) -> Result<Resolved, Unresolved> {
        let template = StepTemplate::new(step).map_err(|error| Unresolved(error.to_string()))?;
        let call = template.resolve(variables).map_err(|error| Unresolved(error.to_string()))?;
        Ok(Resolved { function: call.function, params_json: call.params.to_string() })
    }
}

/// The variables of a batch, or of one of its members.
pub(super) fn variables(batch: &BatchRow, member: Option<&MemberRow>) -> Variables {
    let member = member.map(|member| MemberVariables {
        key: &member.member_key,
        data: &member.data,
        worker_data: &member.worker_data,
    });
    Variables::new(&VariableSources {
        batch_id: &batch.id.to_string(),
        batch_start_time: batch.batch_start_time,
        batch_data: &batch.worker_data,
        member,
    })
}
