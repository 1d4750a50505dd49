//! What can be said to `segno sql`.

use std::path::PathBuf;

use clap::Args;
use segno_server::HumanDuration;

use crate::moment;
use crate::remote::connection::Connection;

/// A query.
#[derive(Debug, Args)]
pub struct SqlArguments {
    /// One SELECT; `-` reads it from standard input. Without it, and without --query, a console begins.
    #[arg(value_name = "SQL", conflicts_with = "query")]
    pub sql: Option<String>,
    /// Run a shipped query (`--queries` lists them).
    #[arg(long, value_name = "NAME")]
    pub query: Option<String>,
    /// List the shipped queries.
    #[arg(long, conflicts_with_all = ["sql", "query", "explain", "csv"])]
    pub queries: bool,
    /// Also print what was read of each table, and which conditions the tables applied themselves.
    #[arg(long)]
    pub explain: bool,
    /// Print comma-separated values.
    #[arg(long)]
    pub csv: bool,
    /// Write the answer to this file as Parquet, and print nothing. A file that is there stays.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["queries", "csv", "explain"])]
    pub parquet: Option<PathBuf>,
    /// Most rows of the answer; 1000 without it.
    #[arg(long, value_name = "NUMBER")]
    pub max_rows: Option<usize>,
    /// Longest time of the query, as in `30s`; a number alone is seconds. 10 seconds without it.
    #[arg(long, value_name = "DURATION", value_parser = moment::seconds)]
    pub timeout: Option<HumanDuration>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}
