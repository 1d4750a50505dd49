//! `segno run show`: a run, the graph of its tasks, and why they wait.

use jiff::Timestamp;
use segno_api::Client;
use segno_api::run::{Run, RunDetails, RunStatus, RunTask, TaskStatus};

use super::graph;
use crate::exit::Failure;
use crate::output::{Output, Rows, Table, duration};

/// The signs of tasks, for people.
pub const LEGEND: &str = "○ waits  ◐ running  ● succeeded  ✗ failed  ◌ skipped  ⊘ cancelled";

/// Shows a run.
pub async fn run(client: &Client, id: &str, output: &Output) -> Result<(), Failure> {
    let details = client.run(id).await?;
    let text = text(&details, output);
    output.text(&details, &text)
}

/// A run with its tasks, for people.
pub fn text(details: &RunDetails, output: &Output) -> String {
    let run = &details.run;
    let mut table = facts(run, output);
    if let Some(partition) = &details.partition {
        table = table.line("partition", partition);
    }
    if let Some(params) = details.params.as_ref().filter(|params| params.text() != "{}") {
        table = table.line("parameters", params.text());
    }
    if !run.status.is_final() {
        table = table.line("why", &details.waits.why);
        if let Some(at) = details.waits.wakes_at {
            table = table.line("wakes", output.time(at));
        }
    }
    let mut text = table.to_text(output.colours);
    if !details.tasks.is_empty() {
        text = format!("{text}\n{}{LEGEND}\n", tasks(&details.tasks).to_text(output.colours));
    }
    let shown = u32::try_from(details.tasks.len()).unwrap_or(u32::MAX);
    match run.tasks_total.saturating_sub(shown) {
        0 => text,
        more => format!("{text}and {more} more tasks\n"),
    }
}

/// What is known of a run, without its tasks.
fn facts(run: &Run, output: &Output) -> Table {
    let version = run.dag_version.map_or_else(String::new, |version| format!(" version {version}"));
    let mut table = Table::default()
        .line("run", &run.id)
        .line("dag", format!("{}{version}", run.dag))
        .line("status", state(run));
    if let Some(key) = &run.run_key {
        table = table.line("run key", key);
    }
    if !run.labels.is_empty() {
        let labels: Vec<String> = run.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        table = table.line("labels", labels.join(" "));
    }
    if let Some(parent) = &run.parent_run {
        table = table.line("repeats", parent);
    }
    if let Some(trigger) = &run.trigger {
        let id = trigger.id.as_deref().map_or_else(String::new, |id| format!(" {id}"));
        table = table.line("triggered by", format!("{}{id}", trigger.kind));
    }
    table = table.line("triggered", output.time(run.triggered_at));
    if let Some(ended) = run.completed_at {
        table = table.line("ended", output.time(ended)).line("took", took(run.triggered_at, ended));
    }
    if let Some(reason) = &run.reason {
        table = table.line("reason", reason);
    }
    table.line("tasks", counts(run))
}

/// The graph of the tasks with their states.
fn tasks(tasks: &[RunTask]) -> Rows {
    let edges: Vec<_> = tasks.iter().map(|task| (task.key.as_str(), task.depends_on.as_slice())).collect();
    let mut rows = Rows::new(["", "task", "status", "attempt", "took", "note"]);
    for line in graph::draw(&edges, |place| tasks.get(place).map_or(' ', |task| sign(task.status))) {
        let Some(task) = line.node.and_then(|place| tasks.get(place)) else {
            let none = String::new;
            rows.add([line.rails, none(), none(), none(), none(), none()]);
            continue;
        };
        let times = task.started_at.or(task.dispatched_at).zip(task.completed_at);
        rows.add([
            line.rails,
            task.key.clone(),
            task.status.to_string(),
            if task.attempt > 0 { task.attempt.to_string() } else { String::new() },
            times.map(|(from, to)| took(from, to)).unwrap_or_default(),
            note(task),
        ]);
    }
    rows
}

/// Why a task waits or failed.
pub fn note(task: &RunTask) -> String {
    let why = task.waits.as_ref().map(|waits| waits.why.clone()).filter(|why| !why.is_empty());
    let progress = task.progress_pct.filter(|_| !task.status.is_final()).map(|percent| format!("{percent}%"));
    why.or(progress).or_else(|| task.error_message.clone()).unwrap_or_default()
}

/// How many tasks are in which state.
pub fn counts(run: &Run) -> String {
    let open = run.tasks_total.saturating_sub(run.tasks_completed);
    let numbers = [
        (run.tasks_succeeded, "succeeded"),
        (run.tasks_failed, "failed"),
        (run.tasks_skipped, "skipped"),
        (run.tasks_cancelled, "cancelled"),
        (open, "open"),
    ];
    let counts = numbers.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, state)| format!("{count} {state}")).collect();
    format!("{} of {}: {}", run.tasks_completed, run.tasks_total, counts.join(", "))
}

/// The state of a run, in the words of the API; `paused` and `cancelling` while it is so.
pub fn state(run: &Run) -> String {
    match run.status {
        RunStatus::Triggered | RunStatus::Running if run.cancel_requested => "cancelling".to_owned(),
        RunStatus::Triggered | RunStatus::Running if run.is_paused => "paused".to_owned(),
        status => status.to_string(),
    }
}

fn sign(status: TaskStatus) -> char {
    match status {
        TaskStatus::Planned | TaskStatus::Blocked | TaskStatus::Ready | TaskStatus::RetryWait => '○',
        TaskStatus::Dispatched | TaskStatus::Running => '◐',
        TaskStatus::Skipped => '◌',
        TaskStatus::Cancelled => '⊘',
        TaskStatus::Failed => '✗',
        TaskStatus::Succeeded => '●',
    }
}

fn took(from: Timestamp, to: Timestamp) -> String {
    duration(i64::try_from(to.duration_since(from).as_millis()).unwrap_or(i64::MAX).max(0))
}
