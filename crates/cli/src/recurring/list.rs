//! `segno recurring list` and `show`.

use segno_api::recurring::RecurringAction;

use super::arguments::{List, One};
use crate::exit::Failure;
use crate::output::{Output, Page, Rows, Table, count, target};

/// Lists all of them.
pub async fn list(arguments: List, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let (client, enabled) = (&client, arguments.enabled);
    let page = arguments.paging.gather(|request| async move {
        let page = client.recurring_list(enabled, request).await?;
        Ok(Page::of(page.recurring_actions, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["id", "name", "schedule", "target", "status", "next", "runs"]);
    for action in &page.items {
        rows.add([
            action.id.clone(),
            action.name.clone().unwrap_or_default(),
            action.schedule.clone(),
            target(action.orchestration.as_deref(), &action.provider),
            action.status.clone(),
            output.time_or_none(action.next_execution_at),
            count(action.execution_count),
        ]);
    }
    output.list(&page, &rows)
}

/// Shows one.
pub async fn show(arguments: One, output: &Output) -> Result<(), Failure> {
    let found = arguments.connection.client(output)?.recurring(&arguments.id).await?;
    output.print(&found, whole(&found, output))
}

/// All that people want to know of one.
pub fn whole(action: &RecurringAction, output: &Output) -> Table {
    let template = &action.action_template;
    let mut table = Table::default()
        .line("id", &action.id)
        .line("schedule", &action.schedule)
        .line("status", &action.status)
        .line("next", action.next_execution_at.map_or_else(|| "never".to_owned(), |at| output.time(at)))
        .line("last", action.last_executed_at.map_or_else(|| "never".to_owned(), |at| output.time(at)))
        .line("runs", format!("{}, of which {} failed", action.execution_count, action.failure_count))
        .line(
            if template.orchestration.is_some() { "orchestration" } else { "function" },
            template.orchestration.as_ref().unwrap_or(&template.provider),
        )
        .line("payload", template.payload.text());
    for (name, value) in [
        ("name", &action.name),
        ("description", &action.description),
        ("action type", &Some(template.action_type.clone()).filter(|text| !text.is_empty())),
        ("dedup key", &template.dedup_key),
        ("last error", &action.last_error),
        ("pause note", &action.pause_note),
        ("disabled", &action.disabled_reason),
        ("resumes", &action.resumes_at.map(|at| output.time(at))),
    ] {
        if let Some(value) = value {
            table = table.line(name, value);
        }
    }
    table
}
