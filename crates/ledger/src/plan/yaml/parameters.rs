//! `params`: what each run can set.

use std::collections::BTreeMap;

use segno_actions::document::{Field, PartReader, Tree, did_you_mean, shown};
use segno_actions::functions::{FunctionError, InputSchema};
use serde_json::{Map, Value};

use super::keys::PARAMETER;
use super::reader::{Reader, without_code};
use crate::plan::definition::Parameter;
use crate::plan::limits::{MAX_PARAM_SCHEMA_BYTES, MAX_PARAMS, MAX_PARAMS_BYTES};
use crate::plan::names::NameKind;

impl Reader<'_> {
    /// Reads all parameters.
    pub fn params(&mut self, field: &Field<'_>) -> BTreeMap<String, Parameter> {
        let Some(entries) = self.map(field) else { return BTreeMap::new() };
        if entries.len() > MAX_PARAMS {
            let problem = format!("there are {} parameters, the limit is {MAX_PARAMS}", entries.len());
            self.push(field.error(problem));
        }
        let mut params = BTreeMap::new();
        for entry in entries.iter().take(MAX_PARAMS) {
            let value = field.value(entry);
            if let Err(problem) = NameKind::Parameter.check(&entry.key) {
                self.push(value.error(problem));
            }
            // Known even if it is wrong, so that templates which name it are not.
            params.insert(entry.key.clone(), self.parameter(value).unwrap_or_default());
        }
        params
    }

    /// A map describes the parameter; any other value is its default.
    fn parameter(&mut self, field: Field<'_>) -> Option<Parameter> {
        if !matches!(field.node.tree, Tree::Map(_)) {
            let default = match field.node.tree {
                Tree::Null => None,
                _ => Some(self.json(&field, MAX_PARAMS_BYTES)?),
            };
            return Some(Parameter { default, ..Parameter::default() });
        }
        let fields = self.fields(field, &PARAMETER)?;
        let description = fields.get("description").and_then(|field| self.free_text(&field));
        let schema = fields.get("schema").and_then(|field| {
            let schema = self.json(&field, MAX_PARAM_SCHEMA_BYTES)?;
            match InputSchema::compile(&schema) {
                Ok(_) => Some(schema),
                Err(error) => {
                    self.push(field.error(schema_problem(&error)));
                    None
                }
            }
        });
        let default = fields.get("default").and_then(|field| {
            let default = self.json(&field, MAX_PARAMS_BYTES)?;
            if let Some(problem) = schema.as_ref().and_then(|schema| mismatch(schema, &default)) {
                self.push(field.error(format!("the default does not fit the schema: {problem}")));
            }
            Some(default)
        });
        Some(Parameter { description, default, schema })
    }

    /// Values of parameters, as a schedule gives them.
    pub fn param_values(
        &mut self,
        field: &Field<'_>,
        params: &BTreeMap<String, Parameter>,
    ) -> Option<Map<String, Value>> {
        let entries = self.map(field)?;
        let mut values = Map::new();
        for entry in entries {
            let value = field.value(entry);
            let Some(param) = params.get(&entry.key) else {
                let problem = value.error(format!("there is no parameter {:?}", shown(&entry.key)));
                let advice = did_you_mean(&entry.key, params.keys().map(String::as_str));
                self.push(problem.advice(advice.unwrap_or_else(|| "add it under params".to_owned())));
                continue;
            };
            let Some(given) = self.json(&value, MAX_PARAMS_BYTES) else { continue };
            if let Some(problem) = param.schema.as_ref().and_then(|schema| mismatch(schema, &given)) {
                self.push(value.error(format!("the value does not fit the schema: {problem}")));
            }
            values.insert(entry.key.clone(), given);
        }
        Some(values)
    }
}

/// How a value does not fit a schema.
pub(crate) fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    match InputSchema::check_once(schema, value) {
        Ok(violations) if violations.is_empty() => None,
        Ok(violations) => {
            let texts = violations.iter().map(|violation| match violation.path.is_empty() {
                true => violation.reason.clone(),
                false => violation.to_string(),
            });
            Some(texts.collect::<Vec<_>>().join("; "))
        }
        Err(error) => Some(schema_problem(&error)),
    }
}

/// Why a schema cannot be used, on one line.
fn schema_problem(error: &FunctionError) -> String {
    let message = without_code(&error.to_string());
    let message = message.strip_prefix("input_schema: ").unwrap_or(&message);
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
