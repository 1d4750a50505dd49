//! One change for many instances.

use clap::{Args, Subcommand};

use super::{Ends, Filter};
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
    /// Restart all ended instances that match, each with the input of its last start.
    #[command(
        after_help = "Examples:\n  segno bulk restart --failure card-declined --ended-from 1h --dry-run\n  \
                            segno bulk restart --ids failed.txt --idempotency-key fix-4711 --yes"
    )]
    Restart {
        /// Which instances.
        #[command(flatten)]
        matching: Matching,
        /// Why, kept in the audit log.
        #[arg(long)]
        reason: Option<String>,
        /// Restart also instances that have not ended.
        #[arg(long)]
        force: bool,
    },
    /// Let the activities of all instances that match run at once, instead of after their backoff.
    #[command(after_help = "Example:\n  segno bulk retry --function charge --status running --yes")]
    Retry {
        /// Which instances.
        #[command(flatten)]
        matching: Matching,
        /// Why, kept in the audit log.
        #[arg(long)]
        reason: Option<String>,
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

/// The flags of a filter.
const FILTERS: [&str; 12] = [
    "prefix",
    "status",
    "orchestration",
    "function",
    "label",
    "created_from",
    "created_before",
    "failure",
    "ended_from",
    "ended_before",
    "longer_than",
    "shorter_than",
];

/// Which instances, and whether they are changed at once. At least one filter or id is needed; `--prefix ''` matches all.
#[derive(Debug, Args)]
pub struct Matching {
    /// Which instances.
    #[command(flatten)]
    pub filter: Filter,
    /// How they ended.
    #[command(flatten)]
    pub ends: Ends,
    /// The instance of this id, instead of those that match a filter; may be repeated.
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = FILTERS
    )]
    pub id: Vec<String>,
    /// The instances of the ids in this file, one on each line; `-` reads standard input.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = FILTERS
    )]
    pub ids: Option<String>,
    /// Makes the command safe to repeat: with the same key and arguments it continues where it stopped.
    #[arg(long, value_name = "TEXT")]
    pub idempotency_key: Option<String>,
    /// Only count the instances that match, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
}
