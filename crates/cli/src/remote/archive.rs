//! `segno archive …`: what retention has moved out of the store, and its erasure.

use clap::{Args, Subcommand};
use segno_api::archive::Erased;

use super::connection::Connection;
use crate::exit::Failure;
use crate::output::{Output, Page, Rows, Table, count, size};

/// What to do with the archive.
#[derive(Debug, Args)]
pub struct ArchiveArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: ArchiveVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with the archive.
#[derive(Debug, Subcommand)]
pub enum ArchiveVerb {
    /// Show how many files the archive has, by kind, and from which days.
    #[command(after_help = "Example:\n  segno archive show")]
    Show,
    /// Erase all archived rows of an instance, or the whole archive of the tenant.
    #[command(after_help = "Examples:\n  segno archive erase ada\n  segno archive erase --all --yes")]
    Erase {
        /// Id of the instance.
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Erase the whole archive of the tenant. Needs an administrator's key.
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// Do not ask before the whole archive is erased.
        #[arg(long, requires = "all")]
        yes: bool,
    },
}

/// Does what was asked.
pub async fn run(arguments: ArchiveArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        ArchiveVerb::Show => {
            let summary = client.archive().await?;
            if !summary.enabled {
                output.warn("this server has no archive; set archive.enabled");
            }
            let page = Page::of(summary.kinds, Vec::new(), None);
            let mut rows = Rows::new(["kind", "files", "size", "oldest day", "newest day"]);
            for kind in &page.items {
                rows.add([
                    kind.kind.clone(),
                    count(kind.files),
                    size(kind.bytes),
                    kind.oldest_day.clone().unwrap_or_default(),
                    kind.newest_day.clone().unwrap_or_default(),
                ]);
            }
            output.list(&page, &rows)
        }
        ArchiveVerb::Erase { id: Some(id), .. } => {
            let erased = client.erase_instance(&id).await?;
            output.print(&erased, table(&erased).line("erased", &id))
        }
        ArchiveVerb::Erase { id: None, yes, .. } => {
            if !yes {
                let problem = "this erases the whole archive of the tenant for good; pass --yes to continue";
                return Err(Failure::Refused(problem.to_owned()));
            }
            let erased = client.erase_archive().await?;
            output.print(&erased, Table::default().line("files", count(erased.files)))
        }
    }
}

fn table(erased: &Erased) -> Table {
    Table::default().line("rows", count(erased.rows)).line("files", count(erased.files))
}
