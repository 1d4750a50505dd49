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
        after_help = "Examples:\n  segno backfill create daily-sales --from 2026-10-01 --to 2026-10-30\n  \
                      segno backfill create daily-sales --partition 2026-10-07 --partition 2026-10-09 --chunk-size 1"
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
    /// Cancel a backfill: no further chunks are started; runs that have begun go on.
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
    /// Key of the first partition.
    #[arg(long, value_name = "KEY", requires = "to", conflicts_with = "partitions")]
    pub from: Option<String>,
    /// Key of the last partition.
    #[arg(long, value_name = "KEY", requires = "from")]
    pub to: Option<String>,
    /// Key of a partition, in place of a range. May be repeated.
    #[arg(long = "partition", value_name = "KEY", required_unless_present = "from")]
    pub partitions: Vec<String>,
    /// A parameter of the runs; the value is JSON, or else text. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Partitions in a chunk; 10 by default.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk_size: Option<u32>,
    /// Runs at a time; 2 by default.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_concurrent_runs: Option<u32>,
}
