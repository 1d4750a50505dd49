//! `segno dag plan`: the tasks of a run in their order, as far as they are known before it begins.

use std::collections::HashMap;
use std::sync::Arc;

use segno_ledger::event::{PlannedTask, Target};
use segno_ledger::plan::graph::Graph;
use segno_ledger::plan::sketch::draw;
use segno_ledger::plan::{Plan, PlannedInput};
use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments::RunArguments;
use super::input::{plan_of, read_dag};
use crate::documents::{FileProblem, Found};
use crate::exit::Failure;
use crate::output::{Output, Rows, counted};

/// A plan, for programs.
#[derive(Debug, Serialize)]
struct Report<'p> {
    dag: &'p str,
    plan_id: &'p str,
    params: &'p Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<&'p Value>,
    critical_path: Vec<&'p str>,
    tasks: Vec<Task<'p>>,
    problems: Vec<FileProblem<'p>>,
}

/// A task of a plan.
#[derive(Debug, Serialize)]
struct Task<'p> {
    depth: usize,
    #[serde(flatten)]
    task: &'p PlannedTask,
}

/// Shows a plan.
pub fn run(arguments: &RunArguments, output: &Output) -> Result<(), Failure> {
    let mut found = Found::default();
    let Some(parsed) = read_dag(&arguments.file, &mut found)? else {
        found.lines().lines().for_each(|line| output.hint(line));
        return found.check();
    };
    let plan = plan_of(&parsed, arguments)?;
    let graph = graph_of(&plan.tasks);
    let shown = Shown { dag: &parsed.dag.name, plan: &plan, graph: &graph };
    output.text(&shown.report(&found), &shown.text(output))?;
    found.lines().lines().for_each(|line| output.hint(line));
    Ok(())
}

/// The graph of the tasks of a plan, of which each comes after those that it depends on.
fn graph_of(tasks: &[PlannedTask]) -> Graph {
    let index: HashMap<&Arc<str>, usize> =
        tasks.iter().enumerate().map(|(number, task)| (&task.key, number)).collect();
    let upstream =
        |task: &PlannedTask| task.depends_on.iter().filter_map(|key| index.get(key).copied()).collect();
    Graph::new(tasks.iter().map(upstream).collect()).unwrap_or_default()
}

struct Shown<'p> {
    dag: &'p str,
    plan: &'p Plan,
    graph: &'p Graph,
}

impl<'p> Shown<'p> {
    fn critical_path(&self) -> Vec<&'p str> {
        self.graph.critical_path().into_iter().map(|task| &*self.plan.tasks[task].key).collect()
    }

    fn report(&self, found: &'p Found<'_>) -> Report<'p> {
        let tasks = self.plan.tasks.iter().enumerate();
        Report {
            dag: self.dag,
            plan_id: &self.plan.plan_id,
            params: &self.plan.params,
            partition: self.plan.partition.as_ref(),
            critical_path: self.critical_path(),
            tasks: tasks.map(|(number, task)| Task { depth: self.graph.depth(number), task }).collect(),
            problems: found.to_report(),
        }
    }

    fn text(&self, output: &Output) -> String {
        let tasks = counted(self.plan.tasks.len() as u64, "task");
        let partition = self.plan.partition.as_ref().and_then(|partition| partition["key"].as_str());
        let partition = partition.map_or_else(String::new, |key| format!(", partition {key}"));
        let mut text = format!("DAG {:?}{partition}: {tasks}, {}\n\n", self.dag, self.plan.plan_id);
        let mut rows = Rows::new(["depth", "task", "calls", "after", "input"]);
        for (number, task) in self.plan.tasks.iter().enumerate() {
            rows.add([
                self.graph.depth(number).to_string(),
                task.key.to_string(),
                target(task),
                task.depends_on.join(", "),
                input(task),
            ]);
        }
        text.push_str(&rows.to_text(output.colours));
        let path = self.critical_path();
        text.push_str(&format!(
            "\nLongest path, {}: {}\n",
            counted(path.len() as u64, "task"),
            path.join(" → ")
        ));
        if let Some(drawing) = draw(self.graph) {
            text.push('\n');
            for (row, task) in drawing {
                let key = task.map_or_else(String::new, |task| format!("  {}", self.plan.tasks[task].key));
                text.push_str(&format!("{row}{key}\n"));
            }
        }
        text
    }
}

fn target(task: &PlannedTask) -> String {
    let mut text = match &task.target {
        Some(Target::Function(name)) => name.to_string(),
        Some(Target::Orchestration(name)) => format!("orchestration {name}"),
        None => String::new(),
    };
    if let Some(for_each) = &task.for_each {
        let items = PlannedInput::from_value(&for_each.items).unwrap_or_default();
        let items = items.value.as_str().map_or_else(|| items.value.to_string(), str::to_owned);
        text.push_str(&format!(" for each of {items}"));
    }
    text
}

fn input(task: &PlannedTask) -> String {
    let input = task.input.as_ref().map(PlannedInput::from_value);
    input.and_then(Result::ok).map_or_else(String::new, |input| input.value.to_string())
}
