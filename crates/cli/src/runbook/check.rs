//! `segno runbook check`: all problems of a runbook, without a server.

use std::collections::BTreeSet;
use std::path::Path;

use segno_runbook::definition::Definition;
use segno_runbook::limits::{MAX_CSV_BYTES, MAX_RUNBOOK_BYTES};
use segno_runbook::members::{CsvLimits, INVALID_MEMBERS, read_csv};
use segno_runbook::problem::{Problem, Problems};
use segno_runbook::yaml::{INVALID_RUNBOOK, InvalidRunbook, Parsed, parse};
use segno_server::schedule::Zones;
use serde::Serialize;

use super::arguments::Check;
use super::input::{counted, lines, read, refused};
use crate::exit::Failure;
use crate::output::Output;

/// What was found, for programs.
#[derive(Debug, Serialize)]
struct Report<'r> {
    /// Whether the runbook can be used.
    valid: bool,
    errors: usize,
    warnings: usize,
    problems: Vec<FileProblem<'r>>,
}

/// A problem and the file that has it.
#[derive(Debug, Serialize)]
struct FileProblem<'r> {
    file: String,
    #[serde(flatten)]
    problem: &'r Problem,
}

/// Checks a runbook.
pub fn run(arguments: &Check, output: &Output) -> Result<(), Failure> {
    let bytes = read(&arguments.file, MAX_RUNBOOK_BYTES)?;
    let mut found: Vec<(&Path, Problems)> = Vec::new();
    let mut summary = None;
    match parse(&bytes, &Zones::newest()) {
        Ok(parsed) => {
            summary = Some(summarized(&parsed.definition));
            let (columns, in_data) = columns(arguments, &parsed)?;
            let variables = parsed.check_variables(columns.as_deref());
            found
                .extend([(arguments.file.as_path(), parsed.warnings), (arguments.file.as_path(), variables)]);
            found.extend(arguments.data.as_deref().zip(in_data));
        }
        Err(InvalidRunbook { problems }) => found.push((&arguments.file, problems)),
    }
    let errors = found.iter().map(|(_, problems)| problems.errors()).sum();
    let warnings = found.iter().map(|(_, problems)| problems.warnings()).sum();
    let problems = found.iter().flat_map(|(file, problems)| {
        problems.iter().map(|problem| FileProblem { file: file.display().to_string(), problem })
    });
    let report = Report { valid: errors == 0, errors, warnings, problems: problems.collect() };
    let mut text: String = found.iter().map(|(file, problems)| lines(file, problems)).collect();
    let file = arguments.file.display();
    if let Some(summary) = summary.filter(|_| errors == 0) {
        text.push_str(&format!("{file}: {summary}; {}\n", counted(warnings, "warning")));
    }
    output.text(&report, &text)?;
    let with_errors = found.iter().find(|(_, problems)| problems.has_errors());
    with_errors.map_or(Ok(()), |(path, problems)| {
        let is_data = arguments.data.as_deref() == Some(*path);
        let code = if is_data { INVALID_MEMBERS } else { INVALID_RUNBOOK };
        Err(refused(path, problems, code))
    })
}

/// The columns of the data source, if they are known, and the problems of the CSV file.
fn columns(arguments: &Check, parsed: &Parsed) -> Result<(Option<Vec<String>>, Option<Problems>), Failure> {
    let Some(path) = &arguments.data else {
        let columns = arguments.columns.iter().map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        return Ok((Some(columns).filter(|columns| !columns.is_empty()), None));
    };
    let bytes = read(path, MAX_CSV_BYTES)?;
    match read_csv(&bytes, &parsed.definition.data_source, &BTreeSet::new(), CsvLimits::MANUAL) {
        Ok(rows) => Ok((Some(rows.columns), None)),
        Err(error) => Ok((None, Some(error.problems))),
    }
}

fn summarized(definition: &Definition) -> String {
    let steps = definition.phases.iter().map(|phase| phase.steps.len()).sum();
    let phases = counted(definition.phases.len(), "phase");
    format!("runbook {:?} with {phases} and {}", definition.name, counted(steps, "step"))
}
