//! `segno dag check`: all problems of a DAG.

use std::path::Path;

use segno_ledger::plan::Parsed;
use serde::Serialize;

use super::input::read_dag;
use crate::documents::{FileProblem, Found};
use crate::exit::Failure;
use crate::output::{Output, counted};

/// What was found, for programs.
#[derive(Debug, Serialize)]
struct Report<'r> {
    /// Whether the DAG can be used.
    valid: bool,
    errors: usize,
    warnings: usize,
    problems: Vec<FileProblem<'r>>,
}

/// Checks a DAG.
pub fn run(file: &Path, output: &Output) -> Result<(), Failure> {
    let mut found = Found::default();
    let parsed = read_dag(file, &mut found)?;
    let (errors, warnings) = (found.errors(), found.warnings());
    let report = Report { valid: errors == 0, errors, warnings, problems: found.to_report() };
    let mut text = found.lines();
    if let Some(parsed) = &parsed {
        let warnings = counted(warnings as u64, "warning");
        text.push_str(&format!("{}: {}; {warnings}\n", file.display(), summarized(parsed)));
    }
    output.text(&report, &text)?;
    found.check()
}

fn summarized(parsed: &Parsed) -> String {
    let tasks = counted(parsed.dag.tasks.len() as u64, "task");
    let edges = match parsed.dag.edge_count() {
        1 => "1 dependency".to_owned(),
        many => format!("{many} dependencies"),
    };
    format!("DAG {:?} with {tasks} and {edges}", parsed.dag.name)
}
