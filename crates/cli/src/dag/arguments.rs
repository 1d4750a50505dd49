//! Arguments of `segno dag`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::published::PublishedVerb;
use crate::moment::{self, Moment};
use crate::remote::connection::Connection;

/// What to do with DAGs.
#[derive(Debug, Args)]
pub struct DagArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: DagVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with DAGs.
#[derive(Debug, Subcommand)]
pub enum DagVerb {
    /// Check a DAG and list all its problems, each with its line. Needs no server.
    #[command(after_help = "Example:\n  segno dag check daily-sales.yaml")]
    Check {
        /// The DAG, a YAML or JSON file; `-` reads standard input.
        file: PathBuf,
    },
    /// Show the tasks of a run in their order, with inputs as far as they are known, and a graph. Needs no server.
    #[command(after_help = "Examples:\n  segno dag plan daily-sales.yaml --partition 2026-03-29\n  \
                            segno dag plan daily-sales.yaml --partition 2026-03-29 --param max_shops=5 --select +load")]
    Plan(RunArguments),
    /// Play a run through without a server and without waiting: a file of stubs has the answers of functions.
    #[command(after_help = "Examples:\n  segno dag test daily-sales.yaml --partition 2026-03-29\n  \
                            segno dag test daily-sales.yaml --partition 2026-03-29 --stubs stubs.yaml")]
    Test(Test),
    /// On a server.
    #[command(flatten)]
    Published(PublishedVerb),
}

/// Which run.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The DAG, a YAML or JSON file; `-` reads standard input.
    pub file: PathBuf,
    /// Set a parameter. The value is JSON, or else text.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// The key of the partition.
    #[arg(long, value_name = "KEY")]
    pub partition: Option<String>,
    /// Only this task; `+TASK` with all that come before it, `TASK+` with all that come after it.
    #[arg(long, value_name = "TASK")]
    pub select: Vec<String>,
}

/// Which run to play through.
#[derive(Debug, Args)]
pub struct Test {
    /// Which run.
    #[command(flatten)]
    pub run: RunArguments,
    /// A YAML or JSON file with what functions answer. Without it they return their inputs.
    #[arg(long, value_name = "FILE")]
    pub stubs: Option<PathBuf>,
    /// Begin at this time: `now`, `now+10m` or RFC 3339.
    #[arg(long, value_name = "TIME", default_value = "now", value_parser = moment::anytime)]
    pub now: Moment,
}
