//! `segno recurring history`, `explain` and `backfill`.

use segno_api::recurring::{BackfillRecurring, RecurringEntry};

use super::arguments::{Backfill, Explain, History};
use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// Rows of a request that says no number.
const MAX_ROWS: usize = 1_000;

/// What became of each occurrence.
pub async fn history(arguments: History, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let (client, id) = (&client, &arguments.id);
    let page = arguments.paging.gather(|request| async move {
        let rows = request.limit.unwrap_or(MAX_ROWS);
        let page = client.recurring_history(id, rows, request.cursor.as_deref()).await?;
        Ok(Page::of(page.entries, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["time", "decision", "outcome", "ended", "instance", "detail"]);
    for entry in &page.items {
        rows.add([
            output.time(entry.time),
            decision(entry),
            entry.outcome.clone().unwrap_or_default(),
            output.time_or_none(entry.ended_at),
            entry.instance.clone().unwrap_or_default(),
            entry.detail.clone().or_else(|| entry.note.clone()).unwrap_or_default(),
        ]);
    }
    output.list(&page, &rows)
}

fn decision(entry: &RecurringEntry) -> String {
    let count =
        entry.count.filter(|count| *count != 1).map(|count| format!(" {count} times")).unwrap_or_default();
    let count = if entry.manual { format!("{count} manually") } else { count };
    match &entry.reason {
        Some(reason) => format!("{}{count}: {reason}", entry.decision),
        None => format!("{}{count}", entry.decision),
    }
}

/// Why it did or did not run.
pub async fn explain(arguments: Explain, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let time = output.moment(arguments.time)?;
    let explained = client.explain_recurring(&arguments.id, time).await?;
    let mut text = format!("{}\n", explained.text);
    let times = [
        (
            "fired",
            explained.entry.as_ref().filter(|entry| entry.decision == "fired").map(|entry| entry.decided_at),
        ),
        ("created", explained.created_at),
        ("paused since", explained.paused_at),
        ("goes on", explained.resumes_at),
        ("next", explained.next),
    ];
    for (name, at) in times.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        text.push_str(&format!("{name}: {}\n", output.time(at)));
    }
    output.text(&explained, &text)
}

/// Runs what lies in the past.
pub async fn backfill(arguments: Backfill, output: &Output) -> Result<(), Failure> {
    let range = BackfillRecurring {
        namespace: None,
        tenant: None,
        start: output.moment(arguments.start)?,
        end: output.moment(arguments.end)?,
        limit: Some(arguments.limit),
        dry_run: arguments.dry_run,
    };
    let done = arguments.connection.client(output)?.backfill_recurring(&arguments.id, &range).await?;
    let mut rows = Rows::new(["time", "outcome", "instance", "detail"]);
    for line in &done.results {
        rows.add([
            output.time(line.occurrence),
            line.outcome.clone(),
            line.instance.clone().unwrap_or_default(),
            line.error.clone().or_else(|| line.excluded_by.clone()).unwrap_or_default(),
        ]);
    }
    output.text(&done, &rows.to_text(output.colours))
}
