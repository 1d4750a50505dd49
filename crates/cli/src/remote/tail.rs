//! `segno tail`: the events of an instance as they happen, or what happens to all of them.

use segno_api::change::{BatchChange, Change, FollowChanges, RunChange};
use segno_api::history::HistoryEvent;

use super::arguments::Tail;
use super::batch;
use super::following::{Following, Source};
use super::history::shortened;
use crate::exit::Failure;
use crate::output::Output;

/// Does it.
pub async fn run(arguments: Tail, output: &Output) -> Result<(), Failure> {
    let Tail { id, prefix, status, orchestration, function, label, connection } = arguments;
    let client = connection.client(output)?;
    let source = match id {
        Some(id) => Source::Instance(id),
        None => {
            let filter =
                FollowChanges { prefix, status, orchestration, function, label, ..FollowChanges::default() };
            Source::All(filter)
        }
    };
    let mut following = Following::begin(client, source).await?;
    loop {
        let event = following.next(output).await?;
        match event.name.as_str() {
            "end" => return Ok(()),
            "listening" => {}
            "lagged" => {
                output.warn("some changes are missing here; `segno list` shows how things stand");
            }
            _ => output.item(&event.data, || line(&event.data, output))?,
        }
    }
}

fn line(data: &str, output: &Output) -> String {
    if let Ok(change) = serde_json::from_str::<Change>(data) {
        let name = serde_json::to_value(change.change).unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let what = change.function.or(change.orchestration).unwrap_or_default();
        return format!("{}  {name:<16}  {what:<20}  {}\n", output.exact_time(change.at), change.id);
    }
    if let Ok(change) = serde_json::from_str::<BatchChange>(data) {
        let batch = format!("batch {}", change.batch);
        let (at, rows) = (output.exact_time(change.at), batch::changed_rows(&change));
        return format!("{at}  {batch:<16}  {:<20}  {rows}\n", change.runbook);
    }
    if let Ok(change) = serde_json::from_str::<RunChange>(data) {
        let (at, run) = (output.exact_time(change.at), format!("run {}", change.status));
        let (dag, tasks) = (change.dag.clone().unwrap_or_default(), changed_tasks(&change));
        return format!("{at}  {run:<16}  {dag:<20}  {}  {tasks}\n", change.run);
    }
    match serde_json::from_str::<HistoryEvent>(data) {
        Ok(event) => {
            let (at, data) = (output.exact_time(event.at), shortened(event.data.text()));
            format!("{at}  {:>4}  {:<28}  {data}\n", event.id, event.kind)
        }
        Err(_) => format!("{data}\n"),
    }
}

/// Tasks of a change that are shown in one line.
const SHOWN_TASKS: usize = 4;

/// The tasks that have changed, in one line.
fn changed_tasks(change: &RunChange) -> String {
    let shown = change.tasks.iter().take(SHOWN_TASKS).map(|task| format!("{} {}", task.key, task.status));
    let mut shown: Vec<String> = shown.collect();
    let left_out: u64 = change.left_out.values().sum();
    let more = change.tasks.len().saturating_sub(SHOWN_TASKS) as u64 + left_out;
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_run_names_some_tasks_and_counts_the_others() {
        let task =
            |number: u32| serde_json::json!({ "key": format!("t{number}"), "status": "ready", "attempt": 0 });
        let change = serde_json::json!({
            "run": "run_1", "status": "running", "at": "2026-11-18T21:00:00Z",
            "tasks": (0..6).map(task).collect::<Vec<_>>(), "left_out": { "succeeded": 3 },
        });
        let change = serde_json::from_value(change).unwrap();
        assert_eq!(changed_tasks(&change), "t0 ready, t1 ready, t2 ready, t3 ready, and 5 more");
    }
}
