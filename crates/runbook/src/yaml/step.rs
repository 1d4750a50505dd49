//! Steps: of `init`, of phases, of rollbacks and of `on_member_removed`.

use std::collections::BTreeMap;

use segno_actions::template::limits::MAX_TEMPLATE_BYTES;
use segno_actions::template::{Template, TemplateError};
use serde_json::Value;

use super::keys::{POLL, RETRY, STEP};
use super::reader::{Field, Fields, Reader};
use super::tree::Tree;
use crate::definition::{Poll, Retry, StepDefinition};
use crate::limits::{
    DEFAULT_RETRY_INTERVAL_SEC, MAX_NAME_BYTES, MAX_PARAMS, MAX_PARAMS_BYTES, MAX_RETRIES, MAX_STEPS,
};
use crate::names::{NameKind, shown};
use crate::suggestion::did_you_mean;

/// Where steps stand, which decides what they may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepList {
    Init,
    Phase,
    Rollback,
    Removal,
}

impl Reader<'_> {
    /// Reads a list of steps.
    pub fn steps(&mut self, field: &Field<'_>, list: StepList) -> Vec<StepDefinition> {
        let items = self.list(field, MAX_STEPS);
        let must_have_steps = matches!(list, StepList::Phase | StepList::Rollback);
        if must_have_steps && matches!(&field.node.tree, Tree::List(items) if items.is_empty()) {
            self.push(field.error("there is no step").advice("add at least one"));
        }
        let mut seen = Vec::new();
        items.into_iter().filter_map(|item| self.step(item, list, &mut seen)).collect()
    }

    fn step(&mut self, field: Field<'_>, list: StepList, seen: &mut Vec<String>) -> Option<StepDefinition> {
        self.places.insert(&field.path, field.at());
        let fields = self.fields(field, &STEP)?;
        let name = self.required(&fields, "name", "create-user").and_then(|field| {
            let name = self.name(&field, NameKind::Step)?;
            self.unique(seen, &name, &field);
            Some(name)
        });
        let worker_id = self
            .required(&fields, "worker_id", "cloud-01")
            .and_then(|field| self.name(&field, NameKind::Pool));
        let function =
            self.required(&fields, "function", "New-EntraUser").and_then(|field| self.function(&field));
        let params = fields.get("params").map_or_else(|| Some(BTreeMap::new()), |field| self.params(&field));
        let output_params = self.output_params(&fields);
        let on_failure = self.on_failure(&fields, list);
        let poll = fields.get("poll").map(|field| self.poll(field));
        let retry = fields.get("retry").map_or(Some(self.retry), |field| self.retry_policy(field));
        Some(StepDefinition {
            name: name?,
            worker_id: worker_id?,
            function: function?,
            params: params?,
            output_params: output_params?,
            on_failure,
            poll: match poll {
                Some(poll) => Some(poll?),
                None => None,
            },
            retry: retry?,
        })
    }

    /// The name of a function, which may have placeholders.
    fn function(&mut self, field: &Field<'_>) -> Option<String> {
        let text = self.text(field, MAX_PARAMS_BYTES)?;
        if text.contains("{{") {
            return self.template(field, &text).then_some(text);
        }
        self.name(field, NameKind::Function)
    }

    fn params(&mut self, field: &Field<'_>) -> Option<BTreeMap<String, Value>> {
        let entries = self.map(field)?;
        if entries.len() > MAX_PARAMS {
            let problem = format!("there are {} parameters, the limit is {MAX_PARAMS}", entries.len());
            self.push(field.error(problem));
            return None;
        }
        self.places.insert(&field.path, field.at());
        if !self.templates(field) {
            return None;
        }
        match self.json(field, MAX_PARAMS_BYTES)? {
            Value::Object(params) => Some(params.into_iter().collect()),
            _ => None,
        }
    }

    /// Checks all texts below a value; whether all are templates.
    fn templates(&mut self, field: &Field<'_>) -> bool {
        match &field.node.tree {
            Tree::Text(text) => self.template(field, text),
            Tree::List(items) => {
                let items = items.iter().enumerate();
                items.fold(true, |valid, (index, item)| self.templates(&field.item(index, item)) && valid)
            }
            Tree::Map(entries) => entries.iter().fold(true, |valid, entry| {
                let is_name = !entry.key.contains("{{");
                if !is_name {
                    let problem = format!("the key {:?} has a placeholder", shown(&entry.key));
                    let advice = "placeholders stand in values, not in keys";
                    self.push(field.value(entry).error(problem).advice(advice));
                }
                self.templates(&field.value(entry)) && is_name && valid
            }),
            Tree::Null | Tree::Bool(_) | Tree::Number(..) => true,
        }
    }

    fn template(&mut self, field: &Field<'_>, text: &str) -> bool {
        self.places.insert(&field.path, field.at());
        if text.len() > MAX_TEMPLATE_BYTES {
            self.push(
                field.error(format!("the text has {} bytes, the limit is {MAX_TEMPLATE_BYTES}", text.len())),
            );
            return false;
        }
        match Template::parse(text) {
            Ok(_) => {
                if has_stray_close(text) {
                    let problem = field.warning(format!("{:?} has }}}} without {{{{ before it", shown(text)));
                    self.push(problem.advice("a placeholder is written {{name}}"));
                }
                true
            }
            Err(error) => {
                let column = match &error {
                    TemplateError::Invalid { place, .. } | TemplateError::Failed { place, .. } => {
                        place.column
                    }
                    _ => 1,
                };
                let problem = format!(
                    "the template {:?} is wrong at character {column}: {}",
                    shown(text),
                    error.problem()
                );
                self.push(field.error(problem).advice("a placeholder is written {{name}}"));
                false
            }
        }
    }

    fn output_params(&mut self, fields: &Fields<'_>) -> Option<BTreeMap<String, String>> {
        let Some(field) = fields.get("output_params") else { return Some(BTreeMap::new()) };
        let entries = self.map(&field)?;
        if entries.is_empty() || entries.len() > MAX_PARAMS {
            let problem = format!("expected 1 to {MAX_PARAMS} entries, found {}", entries.len());
            self.push(field.error(problem).advice("write output_params: {Variable: ResultField}"));
            return None;
        }
        let mut outputs = BTreeMap::new();
        for entry in entries {
            let value = field.value(entry);
            if let Err(problem) = NameKind::Variable.check(&entry.key) {
                self.push(value.error(problem));
            }
            if let Some(result_field) = self.text(&value, MAX_NAME_BYTES) {
                outputs.insert(entry.key.clone(), result_field);
            }
        }
        Some(outputs)
    }

    fn on_failure(&mut self, fields: &Fields<'_>, list: StepList) -> Option<String> {
        let field = fields.get("on_failure")?;
        if matches!(list, StepList::Rollback | StepList::Removal) {
            let what = if list == StepList::Rollback { "a rollback" } else { "on_member_removed" };
            let problem = format!("on_failure of a step of {what} has no effect");
            self.push(field.warning(problem).advice("remove it; use retry to try the step again"));
            return None;
        }
        let name = self.text(&field, usize::MAX)?;
        if self.rollbacks.contains(&name) {
            self.used_rollbacks.push(name.clone());
            return Some(name);
        }
        let advice = did_you_mean(&name, self.rollbacks.iter().map(String::as_str));
        let advice = advice.unwrap_or_else(|| "add it under rollbacks".to_owned());
        self.push(field.error(format!("there is no rollback {:?}", shown(&name))).advice(advice));
        None
    }

    fn poll(&mut self, field: Field<'_>) -> Option<Poll> {
        let fields = self.fields(field, &POLL)?;
        let interval = self.required(&fields, "interval", "15m").and_then(|field| self.seconds(&field, 1));
        let timeout = self.required(&fields, "timeout", "24h").and_then(|field| self.seconds(&field, 1));
        let poll = Poll { interval_sec: interval?, timeout_sec: timeout? };
        if poll.timeout_sec < poll.interval_sec {
            let problem = "the timeout is shorter than the interval, so the step is never polled";
            self.push(fields.whole().warning(problem).advice("raise the timeout or lower the interval"));
        }
        Some(poll)
    }

    /// Reads a `retry` block, which replaces that of the runbook as a whole.
    pub fn retry_policy(&mut self, field: Field<'_>) -> Option<Retry> {
        let fields = self.fields(field, &RETRY)?;
        let max_retries = self
            .required(&fields, "max_retries", "2")
            .and_then(|field| self.number(&field, 0, MAX_RETRIES.into()));
        let interval_sec = match fields.get("interval") {
            Some(field) => self.seconds(&field, 1),
            None => Some(DEFAULT_RETRY_INTERVAL_SEC),
        };
        let max_retries = u32::try_from(max_retries?).ok()?;
        // An interval that nothing waits for is none, so that equal policies are equal.
        let interval_sec = interval_sec?;
        Some(Retry { max_retries, interval_sec: if max_retries > 0 { interval_sec } else { 0 } })
    }
}

/// Whether a text that is a template has a `}}` that closes nothing. JSON in a text ends in such.
fn has_stray_close(text: &str) -> bool {
    if text.trim_start().starts_with('[') || text.replace(' ', "").starts_with("{\"") {
        return false;
    }
    let mut parts = text.split("{{");
    let before = parts.next().unwrap_or_default();
    before.contains("}}") || parts.any(|part| part.matches("}}").count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_close_is_found_outside_of_json() {
        for (text, is_stray) in [
            ("{{a}}", false),
            ("{a}}", true),
            ("a}} {{b}}", true),
            ("{{a}} b}}", true),
            (r#"{"a":{"b":"{{c}}"}}"#, false),
            ("plain", false),
        ] {
            assert_eq!(has_stray_close(text), is_stray, "{text}");
        }
    }
}
