//! `segno saved …`: views and queries that a tenant shares under a name.

use clap::{Args, Subcommand, ValueEnum};
use segno_api::Client;
use segno_api::client::Expected;
use segno_api::saved::{Save, Saved, SavedKind};

use super::connection::Connection;
use super::history::shortened;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table};

/// What to do with saved views and queries.
#[derive(Debug, Args)]
pub struct SavedArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: SavedVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with saved views and queries.
#[derive(Debug, Subcommand)]
pub enum SavedVerb {
    /// List saved views and queries by name.
    #[command(after_help = "Example:\n  segno saved list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a saved view or query.
    #[command(after_help = "Example:\n  segno saved show 'failed today'")]
    Show {
        /// Name of the view or query.
        name: String,
    },
    /// Save a view or query under a name, and replace what is there.
    #[command(
        after_help = "Examples:\n  segno saved set 'failed today' --kind view --page instances --text 'status:failed started:<1d'\n  \
                      segno saved set 'by state' --kind query --page sql --text 'SELECT status, count(*) FROM instances GROUP BY status'"
    )]
    Set {
        /// Name of the view or query.
        name: String,
        /// Kind of the entry.
        #[arg(long, value_enum)]
        kind: Kind,
        /// The page of the web UI that shows it.
        #[arg(long)]
        page: Option<String>,
        /// The filter or query.
        #[arg(long)]
        text: String,
        /// Fail if something is saved under the name already.
        #[arg(long)]
        new: bool,
    },
    /// Delete a saved view or query.
    #[command(after_help = "Example:\n  segno saved delete 'failed today'")]
    Delete {
        /// Name of the view or query.
        name: String,
    },
}

/// What is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The filter of a list.
    View,
    /// A query in SQL.
    Query,
}

/// Does what was asked.
pub async fn run(arguments: SavedArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        SavedVerb::List { paging } => list(&client, &paging, output).await,
        SavedVerb::Show { name } => {
            let saved = client.saved_one(&name).await?;
            output.print(&saved, table(&saved, output))
        }
        SavedVerb::Set { name, kind, page, text, new } => {
            let kind = match kind {
                Kind::View => SavedKind::View,
                Kind::Query => SavedKind::Query,
            };
            let saved =
                client.save(&name, &Save { kind, page, text }, new.then_some(Expected::Absent)).await?;
            output.print(&saved, table(&saved, output))
        }
        SavedVerb::Delete { name } => {
            client.delete_saved(&name, None).await?;
            output.print(&serde_json::json!({ "deleted": name }), Table::default().line(&name, "deleted"))
        }
    }
}

async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.saved(request).await?;
        Ok(Page::of(page.saved, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["name", "kind", "page", "saved", "text"]);
    for saved in &page.items {
        rows.add([
            saved.name.clone(),
            kind(saved.kind).to_owned(),
            saved.page.clone().unwrap_or_default(),
            output.time(saved.saved_at),
            shortened(&saved.text),
        ]);
    }
    output.list(&page, &rows)
}

fn table(saved: &Saved, output: &Output) -> Table {
    let mut table = Table::default().line("name", &saved.name).line("kind", kind(saved.kind));
    if let Some(page) = &saved.page {
        table = table.line("page", page);
    }
    table = table.line("saved", output.time(saved.saved_at));
    if let Some(key) = &saved.saved_by {
        table = table.line("by key", key);
    }
    table.line("text", &saved.text)
}

fn kind(kind: SavedKind) -> &'static str {
    match kind {
        SavedKind::View => "view",
        SavedKind::Query => "query",
    }
}
