//! `segno recurring history`, `explain` and `backfill`.

use segno_api::recurring::{BackfillRecurring, RecurringEntry};

use super::arguments::{Backfill, Explain, History};
use super::list::shown;
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Rows, print_rows, print_text, short_time};

/// What became of each occurrence.
pub async fn history(arguments: History, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let found = client.recurring_history(&arguments.id, arguments.limit.into(), None).await?;
    let mut rows = Rows::new(["time", "decision", "outcome", "ended", "instance", "detail"]);
    for entry in &found.entries {
        rows.add([
            short_time(entry.time),
            decision(entry),
            entry.outcome.clone().unwrap_or_default(),
            shown(entry.ended_at),
            entry.instance.clone().unwrap_or_default(),
            entry.detail.clone().or_else(|| entry.note.clone()).unwrap_or_default(),
        ]);
    }
    print_rows(format, &found, &rows)
}

fn decision(entry: &RecurringEntry) -> String {
    let count = entry.count.map(|count| format!(" {count} times")).unwrap_or_default();
    match &entry.reason {
        Some(reason) => format!("{}{count}: {reason}", entry.decision),
        None => entry.decision.clone(),
    }
}

/// Why it did or did not run.
pub async fn explain(arguments: Explain, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let explained = client.explain_recurring(&arguments.id, arguments.time).await?;
    print_text(format, &explained, &format!("{}\n", explained.text))
}

/// Runs what lies in the past.
pub async fn backfill(arguments: Backfill, format: Format) -> Result<(), Failure> {
    let range = BackfillRecurring {
        namespace: None,
        tenant: None,
        start: arguments.start,
        end: arguments.end,
        limit: Some(arguments.limit),
        dry_run: arguments.dry_run,
    };
    let done = arguments.connection.client()?.backfill_recurring(&arguments.id, &range).await?;
    let mut rows = Rows::new(["time", "outcome", "instance", "detail"]);
    for line in &done.results {
        rows.add([
            line.occurrence.to_string(),
            line.outcome.clone(),
            line.instance.clone().unwrap_or_default(),
            line.error.clone().or_else(|| line.excluded_by.clone()).unwrap_or_default(),
        ]);
    }
    print_rows(format, &done, &rows)
}
