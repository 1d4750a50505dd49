//! Arguments of `segno backfill`.

use clap::{Args, Subcommand};

use crate::output::Paging;
use crate::remote::connection::Connection;

/// What to do with backfills.
#[derive(Debug, Args)]
pub struct BackfillArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: BackfillVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with backfills.
#[derive(Debug, Subcommand)]
pub enum BackfillVerb {
    /// Create a backfill: runs of a DAG for a range of partitions, chunk by chunk.
    #[command(
        after_help = "Examples:\n  segno backfill create daily-sales --partitions 2026-10-01..2026-10-30\n  \
                      segno backfill create daily-sales --partitions '*' --chunk-size 1 --max-concurrent-runs 4"
    )]
    Create(Create),
    /// List backfills, newest first.
    #[command(after_help = "Example:\n  segno backfill list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a backfill and its chunks.
    #[command(after_help = "Example:\n  segno backfill show backfill-7")]
    Show {
        /// Id of the backfill.
        id: String,
        /// How many chunks.
        #[command(flatten)]
        paging: Paging,
    },
    /// Pause a backfill: no further chunks are started.
    #[command(after_help = "Example:\n  segno backfill pause backfill-7")]
    Pause {
        /// Id of the backfill.
        id: String,
    },
    /// Resume a paused backfill.
    #[command(after_help = "Example:\n  segno backfill resume backfill-7")]
    Resume {
        /// Id of the backfill.
        id: String,
    },
    /// Run the chunks of a backfill again that have failed, as a new backfill.
    #[command(after_help = "Example:\n  segno backfill retry backfill-7")]
    Retry {
        /// Id of the backfill.
        id: String,
    },
    /// Cancel a backfill: no further chunks are started; runs that have begun are cancelled.
    #[command(after_help = "Example:\n  segno backfill cancel backfill-7")]
    Cancel {
        /// Id of the backfill.
        id: String,
    },
}

/// A backfill to create.
#[derive(Debug, Args)]
pub struct Create {
    /// Name of the DAG.
    pub dag: String,
    /// The partitions: `FIRST..LAST` with both ends, one key, or `*` for all up to now.
    #[arg(long, value_name = "RANGE")]
    pub partitions: String,
    /// A parameter of the runs; the value is JSON, or else text. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Partitions of one run; 10 by default.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk_size: Option<u32>,
    /// Runs at a time; 2 by default.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_concurrent_runs: Option<u32>,
}
