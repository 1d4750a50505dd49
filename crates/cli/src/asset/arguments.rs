//! Arguments of `segno asset`.

use clap::{Args, Subcommand};

use crate::output::Paging;
use crate::remote::connection::Connection;

/// What to do with assets.
#[derive(Debug, Args)]
pub struct AssetArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: AssetVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with assets.
#[derive(Debug, Subcommand)]
pub enum AssetVerb {
    /// List the assets of published DAGs, with what was made last.
    #[command(after_help = "Example:\n  segno asset list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show an asset: its tasks, its neighbours, and the state of its partitions.
    #[command(after_help = "Example:\n  segno asset show raw/sales")]
    Show {
        /// Key of the asset.
        asset: String,
    },
    /// Show what an asset is made of, and what is made of it; of one partition also the runs that have made it.
    #[command(after_help = "Examples:\n  segno asset lineage report/sales\n  \
                            segno asset lineage report/sales --partition 2026-03-29 --depth 1")]
    Lineage {
        /// Key of the asset.
        asset: String,
        /// The key of the partition.
        #[arg(long, value_name = "KEY")]
        partition: Option<String>,
        /// At most so many edges away.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        depth: Option<u32>,
    },
}
