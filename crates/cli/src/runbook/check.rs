//! `segno runbook check`: all problems of a runbook and of its members, without a server.

use segno_runbook::definition::Definition;
use segno_runbook::members::INVALID_MEMBERS;
use segno_runbook::yaml::INVALID_RUNBOOK;
use segno_server::schedule::Zones;
use serde::Serialize;

use super::arguments::Check;
use super::input::Input;
use crate::documents::FileProblem;
use crate::exit::Failure;
use crate::output::{Output, counted};

/// What was found, for programs.
#[derive(Debug, Serialize)]
struct Report<'r> {
    /// Whether the runbook and its members can be used.
    valid: bool,
    errors: usize,
    warnings: usize,
    problems: Vec<FileProblem<'r>>,
}

/// Checks a runbook.
pub fn run(arguments: &Check, output: &Output) -> Result<(), Failure> {
    let (file, data) = (arguments.file.as_path(), arguments.data.as_deref());
    let Input { runbook, members, mut found } = Input::read(file, data, &Zones::newest())?;
    if let Some(parsed) = &runbook {
        let named: Vec<String> = arguments.columns.iter().map(|name| name.trim().to_owned()).collect();
        let columns = match &members {
            // Columns that are missing are errors of the file that should have them.
            Some(members) => members.is_usable.then_some(members.rows.columns.as_slice()),
            None => Some(named.as_slice()).filter(|columns| !columns.is_empty()),
        };
        found.add(file, INVALID_RUNBOOK, parsed.check_variables(columns));
    }
    if let Some((data, members)) = data.zip(members) {
        found.add(data, INVALID_MEMBERS, members.problems);
    }
    let (errors, warnings) = (found.errors(), found.warnings());
    let report = Report { valid: errors == 0, errors, warnings, problems: found.to_report() };
    let mut text = found.lines();
    if let Some(parsed) = runbook.filter(|_| errors == 0) {
        let summary = summarized(&parsed.definition);
        text.push_str(&format!("{}: {summary}; {}\n", file.display(), counted(warnings as u64, "warning")));
    }
    output.text(&report, &text)?;
    found.check()
}

fn summarized(definition: &Definition) -> String {
    let steps: usize = definition.phases.iter().map(|phase| phase.steps.len()).sum();
    let phases = counted(definition.phases.len() as u64, "phase");
    format!("runbook {:?} with {phases} and {}", definition.name, counted(steps as u64, "step"))
}
