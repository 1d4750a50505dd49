//! Functions, calls and workers.

use clap::{Args, Subcommand};
use segno_server::HumanDuration;

use crate::moment;
use crate::output::Paging;
use crate::remote::connection::Connection;

/// The logs of an instance.
#[derive(Debug, Args)]
pub struct Logs {
    /// Id of the instance.
    pub id: String,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Which workers.
#[derive(Debug, Args)]
pub struct Workers {
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A call.
#[derive(Debug, Args)]
pub struct Invoke {
    /// Name of the function.
    pub function: String,
    /// Input, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long, default_value = "null")]
    pub input: String,
    /// Idempotency key of this call: repeats with the same key are one call.
    #[arg(long, value_name = "TEXT")]
    pub call_key: Option<String>,
    /// Only workers with this tag run the call.
    #[arg(long)]
    pub tag: Option<String>,
    /// Workers of this pool run the call.
    #[arg(long, conflicts_with = "tag")]
    pub pool: Option<String>,
    /// Attempts in total.
    #[arg(long)]
    pub attempts: Option<u32>,
    /// Longest time of one attempt, as in `30s`.
    #[arg(long, value_name = "DURATION")]
    pub attempt_timeout: Option<HumanDuration>,
    /// Longest time of all attempts, as in `10m`.
    #[arg(long, value_name = "DURATION")]
    pub deadline: Option<HumanDuration>,
    /// A label.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Do not wait for the result; print the id of the instance.
    #[arg(long)]
    pub no_wait: bool,
    /// Wait at most this long, such as `30s`; a number alone is seconds.
    #[arg(long, value_name = "DURATION", conflicts_with = "no_wait", value_parser = moment::seconds)]
    pub timeout: Option<HumanDuration>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with functions.
#[derive(Debug, Args)]
pub struct Functions {
    /// What to do.
    #[command(subcommand)]
    pub verb: FunctionsVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with functions.
#[derive(Debug, Subcommand)]
pub enum FunctionsVerb {
    /// List functions.
    #[command(after_help = "Example:\n  segno functions list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show the declaration of a function.
    #[command(after_help = "Example:\n  segno functions show echo")]
    Show {
        /// Name of the function.
        name: String,
    },
    /// Store a function, or replace it.
    #[command(after_help = "Example:\n  segno functions put word-count '{\"executor\":\"remote\"}'")]
    Put {
        /// Name of the function.
        name: String,
        /// Declaration of the function, JSON; `@FILE` reads a file and `-` standard input.
        declaration: String,
        /// Only if the stored function has this version.
        #[arg(long)]
        version: Option<u64>,
    },
    /// Delete a stored function.
    #[command(after_help = "Example:\n  segno functions delete word-count")]
    Delete {
        /// Name of the function.
        name: String,
    },
}
