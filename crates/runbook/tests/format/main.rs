//! The YAML format, CSV files and plans, case by case. Groups have the names of the suites of the
//! system that the format comes from.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod csv_upload_service;
mod guide;
mod hostile_yaml;
mod phase_evaluator;
mod plan;
mod runbook_parser;
mod schema;

use segno_actions::schedule::Zones;
use segno_runbook::definition::Definition;
use segno_runbook::problem::Problems;
use segno_runbook::yaml::{Parsed, parse};

/// The runbook of the guide with every part of the original format.
const WAVE_MAILBOX_MOVE: &str = include_str!("../../../../examples/runbooks/wave-mailbox-move.yaml");

/// A runbook with everything that the format has.
const EVERYTHING: &str = include_str!("../runbooks/everything.yaml");

/// The smallest runbook.
const SMALLEST: &str = "\
name: smallest
data_source: {type: manual, primary_key: Id}
phases:
  - name: only
    offset: T-0
    steps:
      - {name: first, worker_id: pool, function: Do-It}
";

fn parsed(yaml: &str) -> Parsed {
    match parse(yaml.as_bytes(), &Zones::bundled()) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{error}\n{yaml}"),
    }
}

fn definition(yaml: &str) -> Definition {
    parsed(yaml).definition
}

/// All problems, one on a line.
fn listed(problems: &Problems) -> String {
    problems.iter().map(|problem| format!("{}: {problem}\n", problem.severity)).collect()
}

/// The problems of a text, whether it can be used or not.
fn problems(yaml: impl AsRef<[u8]>) -> String {
    match parse(yaml.as_ref(), &Zones::bundled()) {
        Ok(parsed) => listed(&parsed.warnings),
        Err(error) => {
            assert_eq!(error.code(), "invalid-runbook");
            assert!(error.problems.has_errors());
            listed(&error.problems)
        }
    }
}

/// The smallest runbook with one part replaced, which must be there once.
fn with(part: &str, replacement: &str) -> String {
    assert_eq!(SMALLEST.matches(part).count(), 1, "{part}");
    SMALLEST.replace(part, replacement)
}

/// The smallest runbook with a step that has more keys.
fn step_with(keys: &str) -> String {
    with("function: Do-It}", &format!("function: Do-It, {keys}}}"))
}

/// The smallest runbook with a phase that has more keys.
fn phase_with(keys: &str) -> String {
    with("    offset: T-0\n", &format!("    offset: T-0\n    {keys}\n"))
}
