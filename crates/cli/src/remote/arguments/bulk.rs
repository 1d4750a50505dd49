//! One change for many instances.

use clap::{Args, Subcommand};

use super::Filter;
use crate::remote::connection::Connection;

/// Which change for many instances.
#[derive(Debug, Args)]
pub struct Bulk {
    /// The change.
    #[command(subcommand)]
    pub verb: BulkVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with all instances that match.
#[derive(Debug, Subcommand)]
pub enum BulkVerb {
    /// Cancel all instances that match, with their children.
    #[command(after_help = "Example:\n  segno bulk cancel --prefix import- --dry-run")]
    Cancel {
        /// Which instances.
        #[command(flatten)]
        matching: Matching,
        /// Why, kept in the history of each instance.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Pause all instances that match.
    #[command(after_help = "Example:\n  segno bulk pause --label team=eu --reason 'wait for the fix' --yes")]
    Pause {
        /// Which instances.
        #[command(flatten)]
        matching: Matching,
        /// Why, kept in the history of each instance.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume all paused instances that match.
    #[command(after_help = "Example:\n  segno bulk resume --status paused --label team=eu --yes")]
    Resume {
        /// Which instances.
        #[command(flatten)]
        matching: Matching,
    },
    /// Delete all instances that match, with their children and histories.
    #[command(after_help = "Example:\n  segno bulk delete --status completed --created-before 30d --dry-run")]
    Delete {
        /// Which instances.
        #[command(flatten)]
        matching: Matching,
        /// Delete also instances that have not ended.
        #[arg(long)]
        force: bool,
    },
}

/// Which instances, and whether they are changed at once. At least one filter is needed; `--prefix ''` matches all.
#[derive(Debug, Args)]
pub struct Matching {
    /// Which instances.
    #[command(flatten)]
    pub filter: Filter,
    /// Only count the instances that match, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}
