//! `segno run list`: runs, newest first.

use segno_api::Client;
use segno_api::client;

use super::arguments::ListRuns;
use super::show::state;
use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// Lists runs.
pub async fn run(client: &Client, arguments: ListRuns, output: &Output) -> Result<(), Failure> {
    let list = client::ListRuns {
        dag: arguments.dag,
        status: arguments.status,
        label: arguments.label,
        triggered_from: output.optional_moment(arguments.triggered_from)?,
        triggered_before: output.optional_moment(arguments.triggered_before)?,
        ..client::ListRuns::default()
    };
    let list = &list;
    let page = arguments.paging.gather(|page| async move {
        let page = client.runs(&client::ListRuns { page, ..list.clone() }).await?;
        Ok(Page::of(page.runs, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["run", "dag", "status", "tasks", "triggered", "ended"]);
    for run in &page.items {
        rows.add([
            run.id.clone(),
            run.dag.clone(),
            state(run),
            format!("{}/{}", run.tasks_completed, run.tasks_total),
            output.time(run.triggered_at),
            output.time_or_none(run.completed_at),
        ]);
    }
    output.list(&page, &rows)
}
