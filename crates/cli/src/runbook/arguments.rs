//! Arguments of `segno runbook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::moment::{self, Moment};
use crate::output::Paging;
use crate::remote::connection::Connection;

/// What to do with runbooks.
#[derive(Debug, Args)]
pub struct RunbookArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: RunbookVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with runbooks.
#[derive(Debug, Subcommand)]
pub enum RunbookVerb {
    /// Check a runbook and list all its problems, each with its line. Needs no server.
    #[command(
        after_help = "Examples:\n  segno runbook check wave.yaml\n  segno runbook check wave.yaml --columns Id,Upn,WaveTime\n  \
                      segno runbook check wave.yaml --data members.csv -o json"
    )]
    Check(Check),
    /// Show what a runbook would do for the rows of a CSV file: batches, times and calls with their
    /// parameters. Nothing is sent. Needs no server.
    #[command(after_help = "Examples:\n  segno runbook plan wave.yaml --data members.csv\n  \
                      segno runbook plan wave.yaml --data members.csv --now 2026-03-12T00:00:00Z --member ada@example.com")]
    Plan(Plan),
    /// Publish a runbook: a new version, which is active at once. Open batches with a start time move to it.
    #[command(after_help = "Examples:\n  segno runbook publish wave.yaml --dry-run\n  \
                      segno runbook publish wave.yaml --ignore-overdue")]
    Publish(Publish),
    /// Delete a runbook that has no batches, or one of its versions that no batch uses.
    #[command(after_help = "Examples:\n  segno runbook delete wave-mailbox-move\n  \
                      segno runbook delete wave-mailbox-move --version 2")]
    Delete {
        /// Name of the runbook.
        name: String,
        /// Delete this version only; the active one stays.
        #[arg(long, value_name = "NUMBER")]
        version: Option<u32>,
    },
    /// List published runbooks by name.
    #[command(after_help = "Example:\n  segno runbook list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a published runbook and its versions, or one version.
    #[command(after_help = "Examples:\n  segno runbook show wave-mailbox-move\n  \
                      segno runbook show wave-mailbox-move --version 2 --yaml")]
    Show(Show),
    /// Query the data source of a runbook now and then every interval: its rows become members of batches.
    #[command(after_help = "Example:\n  segno runbook enable wave-mailbox-move")]
    Enable {
        /// Name of the runbook.
        name: String,
    },
    /// Stop querying the data source of a runbook. Its batches continue.
    #[command(after_help = "Example:\n  segno runbook disable wave-mailbox-move")]
    Disable {
        /// Name of the runbook.
        name: String,
    },
    /// Run the query of a runbook and show its rows, their batches, and what would change. Changes nothing.
    #[command(
        after_help = "Examples:\n  segno runbook preview wave-mailbox-move\n  segno runbook preview wave.yaml"
    )]
    Preview(Preview),
    /// Approve the removal of members that the query no longer returns, if they exceed `max_removed_percent`.
    #[command(after_help = "Example:\n  segno runbook approve-removal wave-mailbox-move --set 12")]
    ApproveRemoval(Removal),
    /// Keep members that the query no longer returns, until it has returned them again.
    #[command(after_help = "Example:\n  segno runbook reject-removal wave-mailbox-move --set 12")]
    RejectRemoval(Removal),
}

/// Which query to preview.
#[derive(Debug, Args)]
pub struct Preview {
    /// Name of a published runbook, or a YAML file; `-` reads standard input.
    #[arg(value_name = "NAME|FILE")]
    pub runbook: String,
}

/// Which removal is decided about.
#[derive(Debug, Args)]
pub struct Removal {
    /// Name of the runbook.
    pub name: String,
    /// The members that were shown, by the number that `segno runbook show` prints.
    #[arg(long, value_name = "NUMBER")]
    pub set: u64,
}

/// What to publish.
#[derive(Debug, Args)]
pub struct Publish {
    /// The runbook, a YAML file; `-` reads standard input.
    pub file: PathBuf,
    /// Skip phases of running batches that were due before, instead of running them at once.
    #[arg(long)]
    pub ignore_overdue: bool,
    /// Run the init steps again in batches that move to this version.
    #[arg(long)]
    pub rerun_init: bool,
    /// Show what the version would do to open batches, and publish nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Which runbook to show.
#[derive(Debug, Args)]
pub struct Show {
    /// Name of the runbook.
    pub name: String,
    /// Show this version only.
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u32>,
    /// Print the YAML text of the version, or of the active one.
    #[arg(long)]
    pub yaml: bool,
}

/// Which runbook to check.
#[derive(Debug, Args)]
pub struct Check {
    /// The runbook, a YAML file; `-` reads standard input.
    pub file: PathBuf,
    /// Names of the data source's columns, to find variables that nothing provides.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "data")]
    pub columns: Vec<String>,
    /// A CSV file with members, which is checked as well; its first line has the names of the columns.
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
}

/// What to plan.
#[derive(Debug, Args)]
pub struct Plan {
    /// The runbook, a YAML file; `-` reads standard input.
    pub file: PathBuf,
    /// A CSV file with the members; its first line has the names of the columns.
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Plan as if now were this time: `now`, `now+10m` or RFC 3339.
    #[arg(long, value_name = "TIME", default_value = "now", value_parser = moment::anytime)]
    pub now: Moment,
    #[arg(
        long,
        value_name = "TIME",
        value_parser = moment::anytime,
        help = moment::anytime_help!("Plan one batch with this start, as `segno batch create --start` makes it")
    )]
    pub start: Option<Moment>,
    /// Show the calls of this member only.
    #[arg(long, value_name = "KEY")]
    pub member: Option<String>,
    /// Show the calls of at most this many members of each batch.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub limit: usize,
}
