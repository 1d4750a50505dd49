//! The format of DAGs, case by case.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod guide;
mod hostile;
mod problems;
mod round_trip;
mod schema;

use segno_actions::schedule::Zones;
use segno_ledger::plan::{Parsed, parse};

/// The DAG of the guide.
const DAILY_SALES: &str = include_str!("../../../../examples/dags/daily-sales.yaml");

/// A DAG with everything that the format has.
const EVERYTHING: &str = include_str!("everything.yaml");

/// The smallest DAG.
const SMALLEST: &str = "name: smallest\ntasks:\n  - {key: only, function: work}\n";

fn parsed(text: &str) -> Parsed {
    parse(text.as_bytes(), &Zones::bundled()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The problems of a text, whether it can be used or not, one on a line.
fn problems(text: impl AsRef<[u8]>) -> String {
    let problems = match parse(text.as_ref(), &Zones::bundled()) {
        Ok(parsed) => parsed.warnings,
        Err(error) => {
            assert_eq!(error.code(), "invalid-dag");
            assert!(error.problems.has_errors());
            error.problems
        }
    };
    problems.iter().map(|problem| format!("{}: {problem}\n", problem.severity)).collect()
}

/// The smallest DAG with more keys on its first level.
fn with(keys: &str) -> String {
    format!("{SMALLEST}{keys}\n")
}

/// A DAG with these tasks, and a parameter `day`.
fn tasks(tasks: &[&str]) -> String {
    let tasks: String = tasks.iter().map(|task| format!("  - {{{task}}}\n")).collect();
    format!("name: dag\nparams: {{day: 2026-01-01}}\ntasks:\n{tasks}")
}
