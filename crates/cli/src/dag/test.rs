//! `segno dag test`: a run that is played through with stubs.

use segno_ledger::plan::Parsed;
use segno_ledger::plan::limits::MAX_DAG_BYTES;
use segno_ledger::plan::rehearsal::{INVALID_STUBS, Report, Step, StepKind, Stubs, parse_stubs, rehearse};
use segno_ledger::tables::{RunState, TaskState};
use segno_server::HumanDuration;

use super::arguments::Test;
use super::input::{plan_of, read_dag};
use crate::documents::{Found, read};
use crate::exit::Failure;
use crate::output::{Output, Rows, counted};

/// Plays a run through, and fails if it does.
pub fn run(arguments: &Test, output: &Output) -> Result<(), Failure> {
    let mut found = Found::default();
    let parsed = read_dag(&arguments.run.file, &mut found)?;
    let stubs = match &parsed {
        Some(parsed) => read_stubs(arguments, parsed, &mut found)?,
        None => None,
    };
    found.lines().lines().for_each(|line| output.hint(line));
    let Some((parsed, stubs)) = parsed.as_ref().zip(stubs) else { return found.check() };
    let plan = plan_of(parsed, &arguments.run)?;
    let start = output.moment(arguments.now)?;
    let report = rehearse(&plan, &parsed.dag.pools, &stubs, start);
    for stub in &report.unused_stubs {
        output.warn(&format!("the stub {stub} was never used"));
    }
    output.text(&report, &text(&report, output))?;
    match report.state {
        RunState::Succeeded => Ok(()),
        RunState::Failed => {
            let failed = report.tasks.iter().filter(|task| task.state == TaskState::Failed);
            let failed = counted(failed.count() as u64, "task");
            Err(Failure::NotCompleted(format!("the run failed: {failed} failed")))
        }
        state => {
            let problem =
                format!("the run was stopped as {} after {} steps", state.text(), report.steps.len());
            Err(Failure::NotCompleted(format!("{problem}; lower the attempts of tasks, or select fewer")))
        }
    }
}

fn read_stubs<'f>(
    arguments: &'f Test,
    parsed: &Parsed,
    found: &mut Found<'f>,
) -> Result<Option<Stubs>, Failure> {
    let Some(file) = arguments.stubs.as_deref() else { return Ok(Some(Stubs::default())) };
    match parse_stubs(&read(file, MAX_DAG_BYTES)?, &parsed.dag) {
        Ok((stubs, warnings)) => {
            found.add(file, INVALID_STUBS, warnings);
            Ok(Some(stubs))
        }
        Err(error) => {
            found.add(file, INVALID_STUBS, error.problems);
            Ok(None)
        }
    }
}

fn text(report: &Report, output: &Output) -> String {
    let mut steps = Rows::new(["at", "task", "attempt", "what", "value"]);
    for Step { at_ms, task, attempt, kind } in &report.steps {
        let attempt = if *attempt == 0 { String::new() } else { attempt.to_string() };
        let (what, value) = match kind {
            StepKind::Expanded { count } => ("expanded", counted(*count as u64, "task")),
            StepKind::NotExpanded { error } => ("not expanded", error.clone()),
            StepKind::Started { input } => ("started", input.to_string()),
            StepKind::Succeeded { output } => ("succeeded", output.to_string()),
            StepKind::Failed { error, retry_at_ms: Some(at) } => {
                ("failed", format!("{error}; again at {}", offset(*at)))
            }
            StepKind::Failed { error, retry_at_ms: None } => ("failed", error.clone()),
        };
        steps.add([offset(*at_ms), task.clone(), attempt, what.to_owned(), value]);
    }
    let mut tasks = Rows::new(["task", "status", "attempts", "reason"]);
    for task in &report.tasks {
        let state = task.state.text().to_lowercase();
        let reason = task.reason.clone().unwrap_or_default();
        tasks.add([task.task.clone(), state, task.attempts.to_string(), reason]);
    }
    let state = report.state.text().to_lowercase();
    format!(
        "{}\n{}\nThe run {state} after {}.\n",
        steps.to_text(output.colours),
        tasks.to_text(output.colours),
        offset(report.duration_ms).trim_start_matches('+')
    )
}

/// A time since the start of the run.
fn offset(ms: i64) -> String {
    let ms = u64::try_from(ms).unwrap_or_default();
    format!("+{}", HumanDuration::from_millis(ms))
}
