//! Tasks, each by itself.

use segno_actions::document::{Field, Fields, PartReader, Position, Tree, template_of, templates_of};
use segno_actions::functions::HumanDuration;
use serde_json::Value;

use super::keys::{FOR_EACH, RETRY, TASK};
use super::reader::{ReadTask, Reader, TaskDefaults};
use super::references::{TemplateUse, uses_of};
use crate::event::Target;
use crate::plan::definition::{ForEach, Items, Retry, Task};
use crate::plan::dispatch::too_long;
use crate::plan::limits::{
    MAX_ATTEMPTS, MAX_BACKOFF_FACTOR, MAX_FOR_EACH_ITEMS, MAX_INPUT_BYTES, MAX_NAME_BYTES, MAX_TASKS,
};
use crate::plan::names::NameKind;
use crate::tables::{Completion, TriggerRule};

impl Reader<'_> {
    pub(super) fn task(&mut self, field: Field<'_>, defaults: &TaskDefaults) -> Option<ReadTask> {
        let (path, at) = (field.path.clone(), field.at());
        let fields = self.fields(field, &TASK)?;
        let mut uses = Vec::new();
        let key =
            self.required(&fields, "key", "extract").and_then(|field| self.name(&field, NameKind::Task));
        let depends_on = self.depends_on(&fields);
        let target = self.target(&fields);
        let for_each = fields.get("for_each").map(|field| self.for_each(field, &mut uses));
        let is_expanded = for_each.is_some();
        let input = match fields.get("input") {
            Some(field) => self.input(&field, is_expanded, &mut uses),
            None => Some(Value::Null),
        };
        let position = |key: &str| fields.get(key).map_or(at, |field| field.at());
        let (rule_at, asset_at, pool_at) = (position("trigger_rule"), position("asset"), position("pool"));
        // A task with a key is kept, so that dependencies on it are not reported as unknown.
        let mut task = Task::new(key?, target.unwrap_or_else(|| Target::Function("".into())));
        let retry = fields.get("retry").map_or(defaults.retry, |field| self.retry(field));
        task.retry = retry.unwrap_or_default();
        task.timeout = fields.get("timeout").map_or(defaults.timeout, |field| self.duration(&field, 1));
        let heartbeat_timeout = fields
            .get("heartbeat_timeout")
            .map_or(defaults.heartbeat_timeout, |field| self.duration(&field, 0));
        task.heartbeat_timeout = heartbeat_timeout.unwrap_or(task.heartbeat_timeout);
        task.tag = fields.get("tag").map_or_else(|| defaults.tag.clone(), |field| self.tag(&field));
        let pool = |this: &mut Self, field: Field<'_>| this.name(&field, NameKind::Pool);
        task.pool = fields.get("pool").map_or_else(|| defaults.pool.clone(), |field| pool(self, field));
        self.calling(&fields, defaults, &mut task);
        task.asset = fields.get("asset").and_then(|field| self.name(&field, NameKind::Asset));
        if let Some(field) = fields.get("trigger_rule") {
            let rules: Vec<(&str, TriggerRule)> =
                TriggerRule::ALL.iter().map(|rule| (rule.text(), *rule)).collect();
            task.trigger_rule = self.choice(&field, &rules).unwrap_or_default();
        }
        task.depends_on = depends_on.iter().map(|(key, _)| key.clone()).collect();
        task.input = input.unwrap_or_default();
        task.for_each = for_each.flatten();
        Some(ReadTask { task, path, at, depends_on, rule_at, uses, asset_at, pool_at })
    }

    /// Through which pool of workers the function is called, and what ends an attempt.
    fn calling(&mut self, fields: &Fields<'_>, defaults: &TaskDefaults, task: &mut Task) {
        let is_function = matches!(task.target, Target::Function(_));
        task.worker_pool = match fields.get("worker_pool") {
            Some(field) if !is_function => {
                let problem =
                    field.error("workers of a pool run functions, and the task has an orchestration");
                self.push(problem.advice("remove worker_pool, or write function instead of orchestration"));
                None
            }
            Some(field) => self.worker_pool(&field),
            // A tag of the task itself outweighs a default.
            None => defaults.worker_pool.clone().filter(|_| is_function && fields.get("tag").is_none()),
        };
        if let (Some(field), Some(_), Some(_)) = (fields.get("tag"), fields.get("worker_pool"), &task.tag) {
            let problem = field.error("workers of a pool are not chosen by tags");
            self.push(problem.advice("remove one of tag and worker_pool"));
        }
        if task.worker_pool.is_some() {
            task.tag = None;
        }
        let Some(field) = fields.get("completion") else { return };
        let kinds: Vec<(&str, Completion)> =
            Completion::ALL.iter().map(|kind| (kind.text(), *kind)).collect();
        task.completion = self.choice(&field, &kinds).unwrap_or_default();
        if task.completion == Completion::Return {
            return;
        }
        if !is_function {
            let problem =
                field.error("a callback ends an attempt of a function, and the task has an orchestration");
            self.push(problem.advice("remove completion, or write function instead of orchestration"));
        } else if task.heartbeat_timeout.as_ms() == 0 && task.timeout.is_none() {
            let problem =
                field.error("without heartbeat_timeout and timeout, a worker that is lost is never noticed");
            self.push(problem.advice("write a heartbeat_timeout, as in 5m, or a timeout"));
        }
    }

    /// A key, or a list of keys.
    fn depends_on(&mut self, fields: &Fields<'_>) -> Vec<(String, Position)> {
        let Some(field) = fields.get("depends_on") else { return Vec::new() };
        let items = match field.node.tree {
            Tree::List(_) => self.list(&field, MAX_TASKS),
            _ => vec![field],
        };
        let mut found: Vec<(String, Position)> = Vec::new();
        for item in items {
            let Some(key) = self.text(&item, MAX_NAME_BYTES) else { continue };
            found.push((key, item.at()));
        }
        found
    }

    fn target(&mut self, fields: &Fields<'_>) -> Option<Target> {
        let is_pooled = fields.get("worker_pool").is_some();
        match (fields.get("function"), fields.get("orchestration")) {
            (Some(field), None) if is_pooled => Some(Target::Function(self.call(&field)?.into())),
            (Some(field), None) => Some(Target::Function(self.function(&field)?.into())),
            (None, Some(field)) => Some(Target::Orchestration(self.orchestration(&field)?.into())),
            (Some(_), Some(second)) => {
                let problem = second.error("there is a function as well");
                self.push(problem.advice("remove one of function and orchestration"));
                None
            }
            (None, None) => {
                let problem = fields.whole().error("there is neither a function nor an orchestration");
                self.push(problem.advice("add function: extract"));
                None
            }
        }
    }

    fn input(&mut self, field: &Field<'_>, is_expanded: bool, uses: &mut Vec<TemplateUse>) -> Option<Value> {
        for (text, template) in templates_of(self, field)? {
            uses.extend(uses_of(&text, &template, is_expanded));
        }
        self.json(field, MAX_INPUT_BYTES)
    }

    /// A template, a list, or a map with either and more.
    fn for_each(&mut self, field: Field<'_>, uses: &mut Vec<TemplateUse>) -> Option<ForEach> {
        if !matches!(field.node.tree, Tree::Map(_)) {
            let for_each = ForEach { items: self.items(&field, uses)?, max_items: MAX_FOR_EACH_ITEMS };
            return self.fits(&field, for_each);
        }
        let whole = field.clone();
        let fields = self.fields(field, &FOR_EACH)?;
        let items = self
            .required(&fields, "items", "\"{{ tasks.list.output }}\"")
            .and_then(|field| self.items(&field, uses));
        let max_items = match fields.get("max_items") {
            Some(field) => self.number(&field, 1, MAX_FOR_EACH_ITEMS.into()),
            None => Some(MAX_FOR_EACH_ITEMS.into()),
        };
        self.fits(&whole, ForEach { items: items?, max_items: u32::try_from(max_items?).ok()? })
    }

    /// A list that stands in the document has its limit now; one that is made by a task, when it is known.
    fn fits(&mut self, field: &Field<'_>, for_each: ForEach) -> Option<ForEach> {
        let limit = for_each.max_items;
        match &for_each.items {
            Items::List(items) if items.len() > limit as usize => {
                let problem = format!("the list has {} items, the limit is {limit}", items.len());
                self.push(field.error(problem).advice(too_long(limit as usize)));
                None
            }
            _ => Some(for_each),
        }
    }

    fn items(&mut self, field: &Field<'_>, uses: &mut Vec<TemplateUse>) -> Option<Items> {
        match &field.node.tree {
            Tree::List(_) => match self.json(field, MAX_INPUT_BYTES)? {
                Value::Array(items) => Some(Items::List(items)),
                _ => None,
            },
            Tree::Text(text) => {
                let template = template_of(self, field, text)?;
                if !template.is_one_placeholder() {
                    let problem = field.error("it yields a text and not a list");
                    self.push(problem.advice(
                        "write one placeholder and nothing else, as in \"{{ tasks.list.output.files }}\"",
                    ));
                    return None;
                }
                uses.extend(uses_of(field, &template, false));
                Some(Items::Template(text.clone()))
            }
            _ => {
                let problem = format!("expected a list or a placeholder, found {}", field.node.kind());
                self.push(field.error(problem).advice("write [a, b] or \"{{ tasks.list.output.files }}\""));
                None
            }
        }
    }

    pub(super) fn retry(&mut self, field: Field<'_>) -> Option<Retry> {
        let fields = self.fields(field, &RETRY)?;
        let default = Retry::default();
        let number = |this: &mut Self, key: &str, max: u32, default: u32| match fields.get(key) {
            Some(field) => this.number(&field, 1, max.into()).and_then(|number| u32::try_from(number).ok()),
            None => Some(default),
        };
        let attempts = number(self, "attempts", MAX_ATTEMPTS, default.attempts);
        let factor = number(self, "factor", MAX_BACKOFF_FACTOR, default.factor);
        let delay = |this: &mut Self, key: &str, default: HumanDuration| {
            fields.get(key).map_or(Some(default), |field| this.duration(&field, 0))
        };
        let initial_delay = delay(self, "initial_delay", default.initial_delay)?;
        let max_delay = delay(self, "max_delay", default.max_delay.max(initial_delay))?;
        if max_delay < initial_delay {
            let problem = fields
                .whole()
                .error(format!("max_delay, {max_delay}, is shorter than initial_delay, {initial_delay}"));
            self.push(problem.advice("raise max_delay or lower initial_delay"));
        }
        Some(Retry { attempts: attempts?, initial_delay, factor: factor?, max_delay })
    }
}
