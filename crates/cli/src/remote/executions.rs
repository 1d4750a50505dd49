//! `segno executions`: the executions of an instance.

use clap::Args;

use super::connection::Connection;
use super::list::status;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, count};

/// Executions.
#[derive(Debug, Args)]
pub struct ExecutionsArguments {
    /// Id of the instance.
    pub id: String,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Does it.
pub async fn run(arguments: ExecutionsArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let (client, id) = (&client, &arguments.id);
    let page = arguments.paging.gather(|request| async move {
        let page = client.executions(id, request).await?;
        Ok(Page::of(page.executions, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["execution", "status", "started", "ended", "events"]);
    for execution in &page.items {
        rows.add([
            execution.execution.to_string(),
            status(execution.status),
            output.time(execution.started_at),
            output.time_or_none(execution.completed_at),
            count(execution.events),
        ]);
    }
    output.list(&page, &rows)
}
