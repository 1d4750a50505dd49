//! Stubs: what functions and orchestrations answer in a rehearsal. Without a stub a call returns its input after a second.

use std::collections::BTreeMap;

use segno_actions::document::limits::MAX_PROBLEMS;
use segno_actions::document::{
    self, Budget, Field, ObjectKeys, Origin, PartReader, Problem, Problems, Tree, did_you_mean, shown,
};
use segno_actions::functions::HumanDuration;
use serde_json::Value;

use super::error::InvalidStubs;
use crate::event::{PlannedTask, Target};
use crate::plan::definition::Dag;
use crate::plan::limits::{
    DAG_BUDGET, MAX_ATTEMPTS, MAX_DESCRIPTION_BYTES, MAX_RESOLVED_INPUT_BYTES, MAX_TASKS,
};

/// How long a call takes by default.
const DEFAULT_DURATION: HumanDuration = HumanDuration::from_secs(1);

/// The document.
const STUBS: ObjectKeys = ObjectKeys { object: "stubs", keys: &["functions", "orchestrations", "tasks"] };

/// A stub.
const STUB: ObjectKeys =
    ObjectKeys { object: "stub", keys: &["output", "fail", "error", "retryable", "duration"] };

/// All keys, against which the guide is tested.
pub const STUB_OBJECTS: &[&ObjectKeys] = &[&STUBS, &STUB];

/// What a call answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Stub {
    /// What it returns; without it its input.
    pub output: Option<Value>,
    /// How many attempts of a task fail before one succeeds.
    pub failures: u32,
    /// Why they fail.
    pub error: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// How long a call takes.
    pub duration: HumanDuration,
}

impl Default for Stub {
    fn default() -> Self {
        Stub {
            output: None,
            failures: 0,
            error: "the stub fails".to_owned(),
            retryable: true,
            duration: DEFAULT_DURATION,
        }
    }
}

/// The stubs of a rehearsal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stubs {
    functions: BTreeMap<String, Stub>,
    orchestrations: BTreeMap<String, Stub>,
    tasks: BTreeMap<String, Stub>,
}

impl Stubs {
    /// The stub of a call, and its name: that of the task, else that of the task whose list added it, else that of what it
    /// calls.
    pub(super) fn of(&self, task: &PlannedTask) -> Option<(String, &Stub)> {
        let group = task.key.split('[').next().unwrap_or_default();
        let by_task = [&*task.key, group].into_iter().find_map(|key| Some((key, self.tasks.get(key)?)));
        if let Some((key, stub)) = by_task {
            return Some((format!("tasks.{key}"), stub));
        }
        match task.target.as_ref()? {
            Target::Function(name) => Some((format!("functions.{name}"), self.functions.get(&**name)?)),
            Target::Orchestration(name) => {
                Some((format!("orchestrations.{name}"), self.orchestrations.get(&**name)?))
            }
        }
    }

    /// The names of all stubs.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let named = |kind: &'static str, stubs: &BTreeMap<String, Stub>| {
            stubs.keys().map(|name| format!("{kind}.{name}")).collect::<Vec<_>>()
        };
        [
            named("functions", &self.functions),
            named("orchestrations", &self.orchestrations),
            named("tasks", &self.tasks),
        ]
        .into_iter()
        .flatten()
    }
}

struct Reader {
    problems: Problems,
}

impl PartReader for Reader {
    fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    fn origin(&self) -> Origin {
        Origin::New
    }
}

/// Reads the stubs of a DAG from YAML or JSON, and what its author probably did not intend.
///
/// # Errors
/// `invalid-stubs` with all problems.
pub fn parse_stubs(bytes: &[u8], dag: &Dag) -> Result<(Stubs, Problems), InvalidStubs> {
    let budget = Budget { noun: "file of stubs", ..DAG_BUDGET };
    let mut reader = Reader { problems: Problems::default() };
    let stubs = match document::read(bytes, &budget) {
        Ok(document) => {
            document.duplicate.into_iter().for_each(|problem| reader.push(problem));
            reader.stubs(Field::root(&document.root), dag)
        }
        Err(problem) => {
            reader.push(problem);
            None
        }
    };
    let Reader { mut problems } = reader;
    problems.sort();
    match stubs {
        Some(stubs) if !problems.has_errors() => Ok((stubs, problems)),
        _ => Err(InvalidStubs { problems }),
    }
}

impl Reader {
    fn stubs(&mut self, field: Field<'_>, dag: &Dag) -> Option<Stubs> {
        if field.node.tree == Tree::Null {
            return Some(Stubs::default());
        }
        let fields = self.fields(field, &STUBS)?;
        let (mut functions, mut orchestrations) = (Vec::new(), Vec::new());
        for task in &dag.tasks {
            match &task.target {
                Target::Function(name) => functions.push(&**name),
                Target::Orchestration(name) => orchestrations.push(&**name),
            }
        }
        let tasks: Vec<&str> = dag.tasks.iter().map(|task| task.key.as_str()).collect();
        let mut part = |key: &str, known: &[&str]| match fields.get(key) {
            Some(field) => self.part(&field, known),
            None => BTreeMap::new(),
        };
        Some(Stubs {
            functions: part("functions", &functions),
            orchestrations: part("orchestrations", &orchestrations),
            tasks: part("tasks", &tasks),
        })
    }

    fn part(&mut self, field: &Field<'_>, known: &[&str]) -> BTreeMap<String, Stub> {
        let Some(entries) = self.map(field) else { return BTreeMap::new() };
        let mut stubs = BTreeMap::new();
        for entry in entries.iter().take(MAX_TASKS) {
            let value = field.value(entry);
            let name = entry.key.split('[').next().unwrap_or_default();
            if !known.contains(&name) {
                let problem = format!("nothing in the DAG has the name {:?}", shown(name));
                let problem = Problem::warning(entry.at, value.path.clone(), problem);
                let is_shown = self.problems.warnings() < MAX_PROBLEMS;
                let advice = is_shown.then(|| did_you_mean(name, known.iter().copied())).flatten();
                self.push(problem.maybe_advice(advice));
            }
            if let Some(stub) = self.stub(value) {
                stubs.insert(entry.key.clone(), stub);
            }
        }
        stubs
    }

    fn stub(&mut self, field: Field<'_>) -> Option<Stub> {
        let fields = self.fields(field, &STUB)?;
        let mut stub = Stub::default();
        if let Some(field) = fields.get("output") {
            stub.output = Some(self.json(&field, MAX_RESOLVED_INPUT_BYTES)?);
        }
        stub.failures = match fields.get("fail") {
            None => 0,
            Some(Field { node, .. }) if node.tree == Tree::Bool(true) => u32::MAX,
            Some(Field { node, .. }) if node.tree == Tree::Bool(false) => 0,
            Some(field) => u32::try_from(self.number(&field, 0, MAX_ATTEMPTS.into())?).ok()?,
        };
        if let Some(field) = fields.get("error") {
            stub.error = self.lines(&field, MAX_DESCRIPTION_BYTES)?;
        }
        if let Some(field) = fields.get("retryable") {
            stub.retryable = self.choice_of_truth(&field)?;
        }
        if let Some(field) = fields.get("duration") {
            stub.duration = HumanDuration::from_secs(self.seconds(&field, 0)?);
        }
        Some(stub)
    }

    fn choice_of_truth(&mut self, field: &Field<'_>) -> Option<bool> {
        match field.node.tree {
            Tree::Bool(truth) => Some(truth),
            _ => {
                self.push(field.error(format!("expected true or false, found {}", field.node.kind())));
                None
            }
        }
    }
}
