//! Templates that name what is not there: parameters, fields of the partition, and outputs of tasks that do not come
//! first.

use std::collections::{BTreeMap, HashMap};

use segno_actions::document::{Field, PartReader, Position, Problem, shown};
use segno_actions::template::Template;

use super::reader::{ReadTask, Reader};
use crate::plan::definition::Parameter;
use crate::plan::graph::{Ancestors, Graph};
use crate::plan::partition::PartitionSet;
use crate::tables::TriggerRule;

/// The names that templates begin with.
const ROOTS: [&str; 6] = ["params", "tasks", "partition", "run", "item", "index"];

/// The fields of `run`.
const RUN_FIELDS: [&str; 1] = ["id"];

/// One path of one template.
#[derive(Debug)]
pub(super) struct TemplateUse {
    parts: Vec<String>,
    is_required: bool,
    /// Whether it may name an item of the list.
    has_item: bool,
    path: String,
    at: Position,
}

/// What templates may name.
pub(super) struct Known<'k> {
    pub params: &'k BTreeMap<String, Parameter>,
    pub partition: Option<&'k PartitionSet>,
}

/// The tasks and what comes before each.
struct Tasks<'t> {
    all: &'t [ReadTask],
    index: HashMap<&'t str, usize>,
    graph: Option<&'t Graph>,
    /// All that ends before a task begins.
    before: Option<Ancestors>,
    /// All that has succeeded when a task begins.
    succeeded: Option<Ancestors>,
}

/// The paths of a template.
pub(super) fn uses_of(field: &Field<'_>, template: &Template, has_item: bool) -> Vec<TemplateUse> {
    let uses = template.references().map(|reference| TemplateUse {
        parts: reference.parts().to_vec(),
        is_required: reference.is_required(),
        has_item,
        path: field.path.clone(),
        at: field.at(),
    });
    uses.collect()
}

impl Reader<'_> {
    /// Checks the templates of all tasks. Without a graph it is not checked which tasks come first.
    pub(super) fn references(&mut self, tasks: &[ReadTask], graph: Option<&Graph>, known: &Known<'_>) {
        let names_far_task = tasks.iter().any(|read| {
            let far = |use_: &&TemplateUse| use_.parts[0] == "tasks";
            read.uses.iter().any(|use_| far(&use_))
        });
        let ancestors = graph.filter(|_| names_far_task);
        let tasks = Tasks {
            all: tasks,
            index: tasks.iter().enumerate().map(|(number, read)| (read.task.key.as_str(), number)).collect(),
            graph,
            before: ancestors.map(|graph| graph.ancestors(|_| true)),
            succeeded: ancestors.map(|graph| {
                graph.ancestors(|task| tasks[task].task.trigger_rule == TriggerRule::AllSuccess)
            }),
        };
        for (number, read) in tasks.all.iter().enumerate() {
            for use_ in &read.uses {
                match use_.parts[0].as_str() {
                    "params" => self.param_use(use_, known),
                    "partition" => self.partition_use(use_, known),
                    "run" => self.field_use(use_, 1, &RUN_FIELDS),
                    "tasks" => self.task_use(use_, number, &tasks),
                    "item" | "index" if use_.has_item => {}
                    "item" | "index" => {
                        let problem = use_.error(format!("there is no {:?} here", use_.parts[0]));
                        self.push(problem.advice("only the input of a task with for_each has it"));
                    }
                    _ => self.unknown(use_, 0, &ROOTS[..]),
                }
            }
        }
    }

    fn param_use(&mut self, use_: &TemplateUse, known: &Known<'_>) {
        let Some(name) = use_.parts.get(1).filter(|name| !known.params.contains_key(*name)) else { return };
        let problem = use_.error(format!("there is no parameter {:?}", shown(name)));
        let advice = self.suggestion(name, known.params.keys().map(String::as_str));
        let advice =
            advice.unwrap_or_else(|| format!("add it under params, as in params: {{{}: …}}", shown(name)));
        self.push(problem.advice(advice));
    }

    fn partition_use(&mut self, use_: &TemplateUse, known: &Known<'_>) {
        let Some(partition) = known.partition else {
            let problem = use_.error("runs of this DAG have no partition");
            self.push(problem.advice("add partitions and partitioned_by"));
            return;
        };
        let (fields, dimensions) = partition.fields();
        self.field_use(use_, 1, &fields);
        if use_.parts.get(1).is_some_and(|field| field == "keys") && !dimensions.is_empty() {
            let dimensions: Vec<&str> = dimensions.iter().map(String::as_str).collect();
            self.field_use(use_, 2, &dimensions);
        }
    }

    /// Checks that a part of a path is one of these. A path that ends before it is the whole object.
    fn field_use(&mut self, use_: &TemplateUse, part: usize, fields: &[&str]) {
        if use_.parts.get(part).is_some_and(|field| !fields.contains(&field.as_str())) {
            self.unknown(use_, part, fields);
        }
    }

    fn unknown(&mut self, use_: &TemplateUse, part: usize, known: &[&str]) {
        let name = &use_.parts[part];
        let advice = self.suggestion(name, known.iter().copied());
        let advice = advice.unwrap_or_else(|| format!("write one of {}", known.join(", ")));
        let problem = match part {
            0 => format!("templates have no name {:?}", shown(name)),
            _ => format!("{} has no field {:?}", use_.parts[..part].join("."), shown(name)),
        };
        self.push(use_.error(problem).advice(advice));
    }

    fn task_use(&mut self, use_: &TemplateUse, number: usize, tasks: &Tasks<'_>) {
        let own = &tasks.all[number].task;
        let Some(key) = use_.parts.get(1) else {
            let problem = use_.error("the outputs of all tasks are not one value");
            self.push(problem.advice("name a task, as in {{ tasks.extract.output }}"));
            return;
        };
        let Some(&other) = tasks.index.get(key.as_str()) else {
            let advice = self.suggestion(key, tasks.index.keys().copied());
            self.push(use_.error(format!("there is no task {:?}", shown(key))).maybe_advice(advice));
            return;
        };
        if use_.parts.get(2).is_none_or(|field| field != "output") {
            let problem = use_.error("a task has an output and nothing else");
            let name = if key.contains('.') { format!("tasks[{key:?}]") } else { format!("tasks.{key}") };
            self.push(problem.advice(format!("write {{{{ {name}.output }}}}")));
            return;
        }
        let (Some(graph), Some(before), Some(succeeded)) = (tasks.graph, &tasks.before, &tasks.succeeded)
        else {
            return;
        };
        if !before.contains(number, other) {
            let problem = match (other == number, before.contains(other, number)) {
                (true, _) => "a task has no output before it has run".to_owned(),
                (_, true) => format!("{key:?} comes after {:?}, so it has no output yet", own.key),
                _ => format!("{key:?} does not come before {:?}, so it may have no output yet", own.key),
            };
            let is_possible = other != number && !graph.with_downstream([number])[other];
            let advice = is_possible.then(|| format!("add {key} to depends_on"));
            self.push(use_.error(problem).maybe_advice(advice));
        } else if use_.is_required && !succeeded.contains(number, other) {
            let problem =
                format!("{key:?} may not have succeeded when {:?} runs, and then has no output", own.key);
            let problem = Problem::warning(use_.at, use_.path.clone(), problem);
            self.push(problem.advice("write | default(…) behind it"));
        }
    }
}

impl TemplateUse {
    fn error(&self, problem: impl Into<String>) -> Problem {
        Problem::error(self.at, self.path.clone(), problem)
    }
}
