//! `segno run watch`: a run until it ends. On a terminal its graph is redrawn; elsewhere there is a line for each change.

use std::collections::HashMap;
use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno_api::Client;
use segno_api::run::{RunDetails, RunStatus, TaskStatus};
use serde_json::json;

use super::show::{counts, note, state, text};
use crate::exit::Failure;
use crate::moment;
use crate::output::Output;

/// Pause between two looks at the run, at first; doubled while nothing changes.
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// Longest such pause.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// Follows a run.
pub async fn run(client: &Client, id: &str, output: &Output) -> Result<(), Failure> {
    let is_screen = !output.format.is_for_programs() && stdout().is_terminal();
    let mut details = client.run(id).await?;
    // A server that answered before may restart, however long that takes: each look is one try.
    let patient = client.clone().retry_for(Duration::ZERO);
    let mut known: HashMap<String, (TaskStatus, u32)> = HashMap::new();
    let mut pause = FIRST_LOOK;
    let mut silent = None;
    loop {
        let changed =
            changes(&mut known, &details, |line| if is_screen { Ok(()) } else { print(line, output) })?;
        pause = if changed { FIRST_LOOK } else { (pause * 2).min(LONGEST_LOOK) };
        if is_screen {
            // Clears the screen and goes to its first line.
            print!("\x1b[2J\x1b[H");
            output.text(&details, &text(&details, output))?;
        }
        if let Some(reason) = silent.take() {
            output.warn(&format!("these states are old: {reason}"));
        }
        if details.run.status.is_final() {
            return outcome(&details, output);
        }
        clock::sleep(&SystemClock, pause).await;
        match patient.run(id).await {
            Ok(read) => details = read,
            Err(error) if error.is_temporary() => silent = Some(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A change of a task.
struct Changed<'a> {
    run: &'a str,
    task: &'a str,
    status: TaskStatus,
    attempt: u32,
    note: String,
}

/// Tells about tasks with another state or attempt than before. Returns whether there are any.
fn changes(
    known: &mut HashMap<String, (TaskStatus, u32)>,
    details: &RunDetails,
    mut tell: impl FnMut(Changed<'_>) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut has_changed = false;
    for task in &details.tasks {
        let now = (task.status, task.attempt);
        if known.get(&task.key) == Some(&now) {
            continue;
        }
        known.insert(task.key.clone(), now);
        has_changed = true;
        let (run, note) = (details.run.id.as_str(), note(task));
        tell(Changed { run, task: &task.key, status: task.status, attempt: task.attempt, note })?;
    }
    Ok(has_changed)
}

fn print(changed: Changed<'_>, output: &Output) -> Result<(), Failure> {
    let at = moment::now(&SystemClock);
    let Changed { run, task, status, attempt, note } = changed;
    let json = json!({ "run": run, "task": task, "status": status, "attempt": attempt, "note": note });
    output.item(&json.to_string(), || {
        let note = if note.is_empty() { String::new() } else { format!("  {note}") };
        format!("{}  {task}  {status}{note}\n", output.exact_time(at))
    })
}

/// How the run ended: the exit code follows from it.
fn outcome(details: &RunDetails, output: &Output) -> Result<(), Failure> {
    let run = &details.run;
    output.hint(&format!("run {} {}; tasks: {}", run.id, state(run), counts(run)));
    match run.status {
        RunStatus::Succeeded => Ok(()),
        _ => Err(Failure::NotCompleted(format!("run {} is {}", run.id, state(run)))),
    }
}
