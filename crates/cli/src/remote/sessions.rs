//! `segno sessions …`: browsers that are signed in.

use clap::{Args, Subcommand};

use super::connection::Connection;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table};

/// What to do with sessions.
#[derive(Debug, Args)]
pub struct SessionsArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: SessionsVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsVerb {
    /// List the sessions of the key, or all of them with an administrator's key for all tenants.
    #[command(after_help = "Example:\n  segno sessions list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Revoke a session: its browser has to sign in again.
    #[command(after_help = "Example:\n  segno sessions revoke 9f8e7d6c-0123456789abcdef")]
    Revoke {
        /// Id of the session.
        id: String,
    },
}

/// Does what was asked.
pub async fn run(arguments: SessionsArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        SessionsVerb::List { paging } => {
            let page = paging.gather(async |request| {
                let page = client.sessions(request).await?;
                Ok(Page::of(page.sessions, page.unreadable, page.next_cursor))
            });
            let page = page.await?;
            let mut rows = Rows::new(["id", "key", "signed in", "ends"]);
            for session in &page.items {
                let (created, expires) = (output.time(session.created_at), output.time(session.expires_at));
                rows.add([session.id.clone(), session.key.clone(), created, expires]);
            }
            output.list(&page, &rows)
        }
        SessionsVerb::Revoke { id } => {
            client.end_session(&id).await?;
            output.print(&serde_json::json!({ "revoked": id }), Table::default().line("revoked", &id))
        }
    }
}
