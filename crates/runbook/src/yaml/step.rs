//! Steps: of `init`, of phases, of rollbacks and of `on_member_removed`.

use std::collections::{BTreeMap, BTreeSet};

use segno_actions::document::{
    Field, Fields, PartReader, Tree, did_you_mean, shown, template_of, templates_of,
};
use serde_json::Value;

use super::keys::{POLL, RETRY, STEP};
use super::reader::Reader;
use crate::definition::{Poll, Retry, StepDefinition};
use crate::limits::{
    DEFAULT_RETRY_INTERVAL_SEC, MAX_NAME_BYTES, MAX_PARAMS, MAX_PARAMS_BYTES, MAX_RETRIES, MAX_STEPS,
};
use crate::names::NameKind;

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
        let mut seen = BTreeSet::new();
        items.into_iter().filter_map(|item| self.step(item, list, &mut seen)).collect()
    }

    fn step(
        &mut self,
        field: Field<'_>,
        list: StepList,
        seen: &mut BTreeSet<String>,
    ) -> Option<StepDefinition> {
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
            self.places.insert(&field.path, field.at());
            return template_of(self, field, &text).map(|_| text);
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
        for (text, _) in templates_of(self, field)? {
            self.places.insert(&text.path, text.at());
        }
        match self.json(field, MAX_PARAMS_BYTES)? {
            Value::Object(params) => Some(params.into_iter().collect()),
            _ => None,
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
