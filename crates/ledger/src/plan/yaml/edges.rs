//! Tasks as a graph: duplicate keys, unknown upstream tasks, cycles, and trigger rules that never hold.

use std::collections::{BTreeSet, HashMap};

use segno_actions::document::{PartReader, Position, Problem, shown};

use super::reader::{ReadTask, Reader};
use crate::plan::graph::{Ancestors, Cycle, Graph};
use crate::plan::limits::MAX_EDGES;
use crate::tables::TriggerRule;

/// Most tasks of a cycle that an error names.
const MAX_SHOWN_CYCLE: usize = 20;

/// Most tasks that run after a failure for which it is checked that others do not wait for them in vain. The check takes
/// time in their number and the number of tasks.
const MAX_CHECKED_HANDLERS: usize = 200;

impl Reader<'_> {
    /// The graph of the tasks, if each upstream task is known and there is no cycle.
    pub(super) fn edges(&mut self, tasks: &[ReadTask]) -> Option<Graph> {
        let index = self.index(tasks);
        let errors = self.problems.errors();
        let mut edge_count = 0;
        let mut upstream = Vec::with_capacity(tasks.len());
        for read in tasks {
            edge_count += read.depends_on.len();
            upstream.push(self.upstream(read, &index));
        }
        if edge_count > MAX_EDGES {
            let problem = format!("the tasks have {edge_count} dependencies, the limit is {MAX_EDGES}");
            let advice = "let tasks depend on one task that depends on the others";
            self.push(Problem::error(Position::START, "tasks", problem).advice(advice));
        }
        if self.problems.errors() > errors || index.len() < tasks.len() {
            return None;
        }
        match Graph::new(upstream) {
            Ok(graph) => {
                self.check_rules(tasks, &graph);
                Some(graph)
            }
            Err(Cycle(path)) => {
                self.push(cycle_problem(tasks, &path));
                None
            }
        }
    }

    /// The tasks by key. A key that is used twice is reported.
    fn index<'t>(&mut self, tasks: &'t [ReadTask]) -> HashMap<&'t str, usize> {
        let mut index = HashMap::with_capacity(tasks.len());
        for (number, read) in tasks.iter().enumerate() {
            if let Some(before) = index.insert(read.task.key.as_str(), number) {
                let problem =
                    format!("the key {:?} is used twice, by {} too", read.task.key, tasks[before].path);
                let problem = Problem::error(read.at, format!("{}.key", read.path), problem);
                self.push(problem.advice("rename one of the tasks"));
            }
        }
        index
    }

    fn upstream(&mut self, read: &ReadTask, index: &HashMap<&str, usize>) -> Vec<usize> {
        let mut upstream = Vec::with_capacity(read.depends_on.len());
        let mut seen = BTreeSet::new();
        for (number, (key, at)) in read.depends_on.iter().enumerate() {
            let error =
                |problem: String| Problem::error(*at, format!("{}.depends_on[{number}]", read.path), problem);
            if !seen.insert(key) {
                self.push(error(format!("{:?} is named twice", shown(key))).advice("remove one of them"));
                continue;
            }
            match index.get(key.as_str()) {
                Some(before) => upstream.push(*before),
                None => {
                    let others = index.keys().copied().filter(|other| *other != read.task.key);
                    let advice = self.suggestion(key, others);
                    let problem = error(format!("there is no task {:?}", shown(key)));
                    self.push(problem.maybe_advice(advice));
                }
            }
        }
        upstream
    }

    fn check_rules(&mut self, tasks: &[ReadTask], graph: &Graph) {
        for (number, read) in tasks.iter().enumerate() {
            let rule = read.task.trigger_rule;
            if graph.upstream(number).is_empty() && needs_upstream(rule) {
                let problem = format!(
                    "the rule {} needs an upstream task, and the task depends on nothing",
                    rule.text()
                );
                let problem = Problem::error(read.rule_at, format!("{}.trigger_rule", read.path), problem);
                self.push(problem.advice("add depends_on, or remove trigger_rule"));
            }
        }
        let is_handler = |task: &usize| {
            matches!(tasks[*task].task.trigger_rule, TriggerRule::OneFailed | TriggerRule::AllFailed)
        };
        let handlers: Vec<usize> = (0..tasks.len()).filter(is_handler).take(MAX_CHECKED_HANDLERS).collect();
        if handlers.is_empty() {
            return;
        }
        let succeeded = graph.ancestors(|task| tasks[task].task.trigger_rule == TriggerRule::AllSuccess);
        for (number, read) in tasks.iter().enumerate() {
            let Some(handler) = contradiction(tasks, graph, &succeeded, &handlers, number) else { continue };
            let handler = &tasks[handler].task;
            let problem = format!(
                "the task never runs: it needs {:?} and all that this depends on to succeed, but {:?} runs only after a failure",
                handler.key, handler.key
            );
            let problem = Problem::error(read.rule_at, format!("{}.trigger_rule", read.path), problem);
            self.push(
                problem.advice("write trigger_rule: all_done or none_failed, or remove the dependency"),
            );
        }
    }
}

/// Whether a rule needs an upstream task that ended in some way.
fn needs_upstream(rule: TriggerRule) -> bool {
    match rule {
        TriggerRule::AllSuccess
        | TriggerRule::AllDone
        | TriggerRule::NoneFailed
        | TriggerRule::NoneSkipped => false,
        TriggerRule::AllFailed
        | TriggerRule::OneSuccess
        | TriggerRule::OneFailed
        | TriggerRule::OneDone
        | TriggerRule::NoneFailedMinOneSuccess => true,
    }
}

/// A task that has to succeed before another one, and that cannot run because all it handles has to succeed as well.
fn contradiction(
    tasks: &[ReadTask],
    graph: &Graph,
    succeeded: &Ancestors,
    handlers: &[usize],
    task: usize,
) -> Option<usize> {
    handlers.iter().copied().filter(|&handler| succeeded.contains(task, handler)).find(|&handler| {
        let mut upstream = graph.upstream(handler).iter().map(|&before| succeeded.contains(task, before));
        match tasks[handler].task.trigger_rule {
            TriggerRule::AllFailed => upstream.any(|succeeds| succeeds),
            _ => upstream.all(|succeeds| succeeds),
        }
    })
}

fn cycle_problem(tasks: &[ReadTask], path: &[usize]) -> Problem {
    let keys = path.iter().chain(path.first()).map(|&task| tasks[task].task.key.as_str());
    let mut keys: Vec<&str> = keys.collect();
    if keys.len() > MAX_SHOWN_CYCLE {
        let last = keys.len() - 1;
        keys.splice(MAX_SHOWN_CYCLE - 1..last, ["…"]);
    }
    let first = &tasks[path[0]];
    let problem = match path {
        [_] => format!("the task {:?} depends on itself", first.task.key),
        _ => format!("the tasks wait for each other: {}", keys.join(" → ")),
    };
    let next = tasks[*path.get(1).unwrap_or(&path[0])].task.key.as_str();
    let place = first.depends_on.iter().position(|(key, _)| key == next);
    let (path, at) = match place {
        Some(number) => (format!("{}.depends_on[{number}]", first.path), first.depends_on[number].1),
        None => (first.path.clone(), first.at),
    };
    Problem::error(at, path, problem).advice("remove one of these dependencies")
}
