//! `segno recurring list` and `show`.

use jiff::Timestamp;
use segno_api::recurring::{RecurringAction, RecurringSummary};

use super::arguments::{List, One};
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Rows, Table, count, print, print_rows, short_time, warn_of_unreadable};

/// Lists all of them.
pub async fn list(arguments: List, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let mut found: Vec<RecurringSummary> = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.recurring_list(arguments.enabled, cursor.as_deref()).await?;
        warn_of_unreadable(&page.unreadable);
        found.extend(page.recurring_actions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut rows = Rows::new(["id", "name", "schedule", "function", "status", "next", "runs"]);
    for action in &found {
        rows.add([
            action.id.clone(),
            action.name.clone().unwrap_or_default(),
            action.schedule.clone(),
            action.orchestration.clone().unwrap_or_else(|| action.provider.clone()),
            action.status.clone(),
            shown(action.next_execution_at),
            count(action.execution_count),
        ]);
    }
    print_rows(format, &found, &rows)
}

/// Shows one.
pub async fn show(arguments: One, format: Format) -> Result<(), Failure> {
    let found = arguments.connection.client()?.recurring(&arguments.id).await?;
    print(format, &found, whole(&found))
}

/// All that people want to know of one.
pub fn whole(action: &RecurringAction) -> Table {
    let template = &action.action_template;
    let mut table = Table::default()
        .line("id", &action.id)
        .line("schedule", &action.schedule)
        .line("status", &action.status)
        .line("next", shown(action.next_execution_at))
        .line("last", shown(action.last_executed_at))
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
        ("resumes", &action.resumes_at.map(short_time)),
    ] {
        if let Some(value) = value {
            table = table.line(name, value);
        }
    }
    table
}

/// A time, or nothing.
pub fn shown(time: Option<Timestamp>) -> String {
    time.map(short_time).unwrap_or_default()
}
