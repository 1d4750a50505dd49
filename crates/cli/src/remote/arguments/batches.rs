//! Batches of runbooks and their members.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::moment::{self, Moment};
use crate::output::Paging;
use crate::remote::connection::Connection;

/// What to do with batches.
#[derive(Debug, Args)]
pub struct Batches {
    /// What to do.
    #[command(subcommand)]
    pub verb: BatchVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with batches.
#[derive(Debug, Subcommand)]
pub enum BatchVerb {
    /// Create a batch from a CSV file. Without --start the batch is advanced by hand, phase by phase.
    #[command(after_help = "Examples:\n  segno batch create --runbook wave --members members.csv\n  \
                      segno batch create --runbook wave --members members.csv --start now+5d")]
    Create(CreateBatch),
    /// List batches, newest first.
    #[command(after_help = "Example:\n  segno batch list --runbook wave")]
    List {
        /// Only batches of this runbook.
        #[arg(long, value_name = "NAME")]
        runbook: Option<String>,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a batch, its phases, and why it waits.
    #[command(after_help = "Example:\n  segno batch show 7")]
    Show(OneBatch),
    /// Begin the init steps, or the next phase, of a batch without a start time.
    #[command(after_help = "Example:\n  segno batch advance 7")]
    Advance(OneBatch),
    /// Pause a batch: no further step is dispatched; calls that were dispatched still run.
    #[command(after_help = "Example:\n  segno batch pause 7 --reason 'wait for the fix'")]
    Pause {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// Why, for people.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume a paused batch.
    #[command(after_help = "Example:\n  segno batch resume 7")]
    Resume(OneBatch),
    /// Cancel a batch with its open steps.
    #[command(after_help = "Example:\n  segno batch cancel 7 --reason 'no longer needed'")]
    Cancel {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// Why, for people.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Retry the failed members of a batch from the step that failed.
    #[command(
        after_help = "Examples:\n  segno batch retry 7\n  segno batch retry 7 --member 501 --from-phase"
    )]
    Retry {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// Only this member, by its id; may be repeated.
        #[arg(long = "member", value_name = "ID")]
        members: Vec<u64>,
        /// Retry from the first step of the phase in which they failed.
        #[arg(long)]
        from_phase: bool,
    },
    /// Approve a phase.
    #[command(after_help = "Example:\n  segno batch approve 7 cutover")]
    Approve(OfPhase),
    /// Reject a phase: the phase fails without having begun.
    #[command(after_help = "Example:\n  segno batch reject 7 cutover")]
    Reject(OfPhase),
    /// Skip a phase.
    #[command(name = "skip-phase", after_help = "Example:\n  segno batch skip-phase 7 prepare")]
    SkipPhase(OfPhase),
    /// Explain why a batch, or a row of a batch, waits, and what will wake it.
    #[command(after_help = "Examples:\n  segno batch explain 7\n  segno batch explain 7 step-1042")]
    Explain {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// A row: `phase-108`, `member-501`, `step-1042` or `init-7`.
        row: Option<String>,
    },
    /// Follow a batch until it ends: counts, an estimate of the end, and members × steps.
    #[command(
        after_help = "On a terminal the display is redrawn; otherwise there is a line for each change. The exit code is 0 if \
                      the batch completes and 8 if it fails or is cancelled.\n\nExample:\n  segno batch watch 7 --limit 50"
    )]
    Watch {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// Members that are shown, 0 to 200.
        #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u16).range(0..=200))]
        limit: u16,
    },
    /// Delete a batch that has ended, with its members and steps.
    #[command(after_help = "Example:\n  segno batch delete 7")]
    Delete(OneBatch),
    /// Print the members and steps of a batch as CSV.
    #[command(after_help = "Example:\n  segno batch report 7 > batch-7.csv")]
    Report(OneBatch),
    /// List the members of a batch.
    #[command(after_help = "Example:\n  segno batch members 7")]
    Members {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
}

/// A batch.
#[derive(Debug, Args)]
pub struct OneBatch {
    /// Id of the batch.
    pub id: u64,
}

/// A phase of a batch.
#[derive(Debug, Args)]
pub struct OfPhase {
    /// Id of the batch.
    pub id: u64,
    /// Name of the phase, or the id of its execution.
    pub phase: String,
}

/// A batch to create.
#[derive(Debug, Args)]
pub struct CreateBatch {
    /// Name of the runbook.
    #[arg(long, value_name = "NAME")]
    pub runbook: String,
    /// A CSV file with the members; its first line has the names of the columns. `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub members: PathBuf,
    #[arg(
        long,
        value_name = "TIME",
        value_parser = moment::anytime,
        help = moment::anytime_help!("Reference time of the phases")
    )]
    pub start: Option<Moment>,
    /// Version of the runbook; the active one by default.
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u32>,
}

/// What to do with members.
#[derive(Debug, Args)]
pub struct Members {
    /// What to do.
    #[command(subcommand)]
    pub verb: MemberVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with members.
#[derive(Debug, Subcommand)]
pub enum MemberVerb {
    /// Show a member and its steps in all phases.
    #[command(after_help = "Example:\n  segno member show 7 501")]
    Show {
        /// Id of the batch.
        batch: u64,
        /// Id of the member; `segno batch members` lists them.
        member: u64,
    },
}
