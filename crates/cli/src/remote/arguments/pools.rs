//! Pools of workers.

use clap::{Args, Subcommand};

use crate::output::Paging;
use crate::remote::connection::Connection;

/// What to do with pools.
#[derive(Debug, Args)]
pub struct Pools {
    /// What to do.
    #[command(subcommand)]
    pub verb: PoolsVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with pools.
#[derive(Debug, Subcommand)]
pub enum PoolsVerb {
    /// List pools with their workers and state.
    #[command(after_help = "Example:\n  segno pool list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a pool, its functions and its workers.
    #[command(after_help = "Example:\n  segno pool show cloud-01")]
    Show {
        /// Name of the pool.
        name: String,
        /// How many of its workers.
        #[command(flatten)]
        paging: Paging,
    },
    /// Pause a pool: its calls wait until it is resumed.
    #[command(after_help = "Example:\n  segno pool pause cloud-01 --reason maintenance")]
    Pause {
        /// Name of the pool.
        name: String,
        /// Why the pool is paused, for people.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume a paused or throttled pool.
    #[command(after_help = "Example:\n  segno pool resume cloud-01")]
    Resume {
        /// Name of the pool.
        name: String,
    },
    /// Forget a pool that its workers have announced.
    #[command(after_help = "Example:\n  segno pool delete cloud-01")]
    Delete {
        /// Name of the pool.
        name: String,
    },
}
