//! `segno audit`: which key changed what.

use clap::Args;
use segno_api::audit::ListAudit;

use super::connection::Connection;
use crate::exit::Failure;
use crate::moment::{self, Moment, past_help};
use crate::output::{Output, Page, Paging, Rows};

/// Which entries.
#[derive(Debug, Args)]
pub struct AuditArguments {
    /// Only changes by this key, by its id (`segno keys list`).
    #[arg(long, value_name = "KEY_ID")]
    pub actor: Option<String>,
    /// Only these operations: a method (`DELETE`), a word of the route (`cancel`), or both as printed.
    #[arg(long, value_name = "TEXT")]
    pub action: Option<String>,
    /// Only changes of this: a path (`/v1/instances`) with all below it, or an id or name in one.
    #[arg(long, value_name = "PATH_OR_ID")]
    pub resource: Option<String>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only at or after this time"))]
    pub since: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only before this time"))]
    pub until: Option<Moment>,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Does it.
pub async fn run(arguments: AuditArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let request = ListAudit {
        actor: arguments.actor,
        action: arguments.action,
        resource: arguments.resource,
        since: output.optional_moment(arguments.since)?,
        until: output.optional_moment(arguments.until)?,
        ..ListAudit::default()
    };
    let (client, request) = (&client, &request);
    let page = arguments.paging.gather(|page| async move {
        let request = ListAudit { limit: page.limit, cursor: page.cursor, ..request.clone() };
        let page = client.audit(&request).await?;
        Ok(Page::of(page.entries, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["at", "key", "operation", "answer", "path", "request"]);
    for entry in &page.items {
        rows.add([
            output.time(entry.at),
            entry.key.clone().unwrap_or_default(),
            entry.operation.clone(),
            entry.status.to_string(),
            entry.path.clone(),
            entry.request_id.clone(),
        ]);
    }
    output.list(&page, &rows)
}
