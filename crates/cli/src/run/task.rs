//! `segno task …`: tasks of runs.

use segno_api::Client;
use segno_api::run::{ClearTasks, MarkTask, MarkedStatus, RunTaskDetails};

use super::arguments::{Mark, MarkedState, TaskArguments, TaskVerb};
use super::steer::shown;
use crate::exit::Failure;
use crate::output::{Output, Page, Table, target, write};
use crate::remote::functions::shown_log;
use crate::remote::start::json;

/// Runs a verb of `segno task`.
pub async fn run(arguments: TaskArguments, output: &Output) -> Result<(), Failure> {
    let client = &arguments.connection.client(output)?;
    match arguments.verb {
        TaskVerb::Show(one) => {
            let task = client.run_task(&one.run, &one.task).await?;
            let table = facts(&task, output);
            output.print(&task, table)
        }
        TaskVerb::Output(one) => {
            let returned = client.run_task_output(&one.run, &one.task).await?;
            match output.format.is_for_programs() {
                true => output.text(&returned, ""),
                false => write(format!("{}\n", returned.text()).as_bytes()),
            }
        }
        TaskVerb::Logs { task, paging } => {
            let task = &task;
            let page = paging.gather(|request| async move {
                let page = client.run_task_logs(&task.run, &task.task, request).await?;
                Ok(Page::of(page.logs, page.unreadable, page.next_cursor))
            });
            let page = page.await?;
            if page.items.is_empty() && page.next_cursor.is_none() {
                output.hint(&format!("no tool of task {} wrote to stderr", task.task));
            }
            let shown: String = page.items.iter().map(shown_log).collect();
            output.list_as(&page, &shown)
        }
        TaskVerb::Clear { run, tasks, only } => {
            let request = ClearTasks { tasks, downstream: !only };
            shown(&client.clear_tasks(&run, &request).await?, "clear", output)
        }
        TaskVerb::Mark(arguments) => mark(client, arguments, output).await,
    }
}

async fn mark(client: &Client, arguments: Mark, output: &Output) -> Result<(), Failure> {
    let Mark { task, state, returned, reason } = arguments;
    let request = MarkTask {
        status: match state {
            MarkedState::Succeeded => MarkedStatus::Succeeded,
            MarkedState::Failed => MarkedStatus::Failed,
            MarkedState::Skipped => MarkedStatus::Skipped,
        },
        output: returned.map(|text| json("--output-json", &text)).transpose()?,
        reason,
    };
    shown(&client.mark_task(&task.run, &task.task, &request).await?, "mark", output)
}

/// What is known of a task.
fn facts(details: &RunTaskDetails, output: &Output) -> Table {
    let task = &details.task;
    let calls = target(task.orchestration.as_deref(), task.function.as_deref().unwrap_or_default());
    let mut table = Table::default()
        .line("task", &task.key)
        .line("status", task.status.to_string())
        .line("calls", calls)
        .line("attempt", format!("{} of {}", task.attempt, task.max_attempts));
    if !task.depends_on.is_empty() {
        table = table.line("after", task.depends_on.join(", ")).line("trigger rule", &task.trigger_rule);
    }
    if let Some(waits) = &task.waits {
        table = table.line("why", &waits.why);
        if let Some(at) = waits.wakes_at {
            table = table.line("wakes", output.time(at));
        }
    }
    for (name, at) in [
        ("ready", task.ready_at),
        ("dispatched", task.dispatched_at),
        ("started", task.started_at),
        ("ended", task.completed_at),
    ] {
        if let Some(at) = at {
            table = table.line(name, output.exact_time(at));
        }
    }
    for (name, value) in [
        ("instance", &task.instance),
        ("worker", &task.worker),
        ("pool", &task.pool),
        ("asset", &task.asset),
        ("partition", &task.partition),
        ("added by", &task.expanded_from),
        ("marked by", &task.marked_by),
        ("error", &task.error_message),
    ] {
        if let Some(value) = value {
            table = table.line(name, value);
        }
    }
    if let Some(input) = &details.input {
        table = table.line("input", input.text());
    }
    if let Some(returned) = &details.output {
        table = table.line("output", returned.text());
    }
    if let Some(instance) = &details.output_ref {
        table = table.line("output", format!("large; `task output` prints the result of {instance}"));
    }
    table
}
