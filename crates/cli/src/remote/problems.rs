//! `segno problems`: what is wrong now.

use segno_api::problems::{KnownProblem, ProblemReport, Severity};

use super::arguments::Nothing;
use crate::exit::Failure;
use crate::output::{Output, Rows, count};

/// Parts of a count that a table names.
const ITEMS_SHOWN: usize = 4;

/// Shows what is wrong.
pub async fn run(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let report = arguments.connection.client(output)?.problems().await?;
    output.text(&report, &text(&report, output))?;
    for unknown in &report.unknown {
        output.warn(&format!("{} is unknown: {}", words(&unknown.kind), unknown.reason));
    }
    Ok(())
}

fn text(report: &ProblemReport, output: &Output) -> String {
    if report.problems.is_empty() {
        let checked: Vec<String> = report.checked.iter().map(words).collect();
        return format!("no problems; looked for: {}\n", checked.join(", "));
    }
    let mut rows = Rows::new(["", "count", "problem", "oldest", "which"]);
    for problem in &report.problems {
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let more = if problem.more { "+" } else { "" };
        rows.add([
            severity.to_owned(),
            format!("{}{more}", count(problem.count)),
            problem.text.clone(),
            output.time_or_none(problem.oldest),
            which(problem),
        ]);
    }
    rows.to_text(output.colours)
}

fn which(problem: &KnownProblem) -> String {
    let named = problem.items.iter().take(ITEMS_SHOWN).map(|item| match item.count {
        1 => item.name.clone(),
        several => format!("{} ({several})", item.name),
    });
    let mut named: Vec<String> = named.collect();
    if problem.items.len() > ITEMS_SHOWN {
        named.push(format!("and {} more", problem.items.len() - ITEMS_SHOWN));
    }
    named.join(", ")
}

/// A name of the wire in words.
pub(super) fn words(name: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(name).unwrap_or_default();
    json.as_str().unwrap_or_default().replace('_', " ")
}
