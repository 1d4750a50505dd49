//! `segno archive …`: what retention has moved out of the store, and its erasure.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use segno_api::archive::{ArchivedGroup, Erased};

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
    /// Erase all archived rows of an instance or of something else, or the whole archive of the tenant.
    #[command(
        after_help = "Examples:\n  segno archive erase ada\n  segno archive erase --of recurring 019a1f2e-7c00-7000-8000-000000000001\n  segno archive erase --all --yes"
    )]
    Erase {
        /// Id of the instance, or of what --of names.
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// What the id is the id of.
        #[arg(long, default_value = "instances", value_parser = group())]
        of: ArchivedGroup,
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
        ArchiveVerb::Erase { id: Some(id), of, .. } => {
            let erased = client.erase_archived(of, &id).await?;
            output.print(&erased, table(&erased).line("erased", &id))
        }
        ArchiveVerb::Erase { id: None, yes, .. } => {
            if !yes {
                let problem = "this erases the whole archive of the tenant for good; pass --yes to continue";
                return Err(Failure::Refused(problem.to_owned()));
            }
            let erased = client.erase_archive().await?;
            let mut table = Table::default().line("files", count(erased.files));
            if !erased.kept.is_empty() {
                let kept: Vec<&str> = erased.kept.iter().map(|group| group.as_str()).collect();
                table = table.line("kept", kept.join(", "));
            }
            output.print(&erased, table)
        }
    }
}

/// The names of what ids are ids of.
fn group() -> impl TypedValueParser<Value = ArchivedGroup> {
    let names = PossibleValuesParser::new(ArchivedGroup::ALL.map(ArchivedGroup::as_str));
    names.try_map(|name| {
        let found = ArchivedGroup::ALL.into_iter().find(|group| group.as_str() == name);
        found.ok_or("it is not archived")
    })
}

fn table(erased: &Erased) -> Table {
    Table::default().line("rows", count(erased.rows)).line("files", count(erased.files))
}
