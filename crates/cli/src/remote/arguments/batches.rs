//! Batches of runbooks and their members.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use segno_api::batch::{BatchStatus, MemberStatus, RetryFrom};

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
        /// Only batches in this state; several are given with commas, or by repeating it.
        #[arg(long, value_parser = parse_batch_status, value_delimiter = ',')]
        status: Vec<BatchStatus>,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a batch, its phases, and why it waits.
    #[command(after_help = "Example:\n  segno batch show 7")]
    Show(OneBatch),
    /// Add the members of a CSV file to a batch, update existing ones, and restore removed ones.
    #[command(name = "add-members", after_help = "Example:\n  segno batch add-members 7 late.csv")]
    AddMembers {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// A CSV file with the members; its first line has the names of the columns. `-` reads standard input.
        file: PathBuf,
    },
    /// Remove members from a batch: their open steps are cancelled, then the removal steps of the runbook run.
    #[command(
        name = "remove-members",
        after_help = "Example:\n  segno batch remove-members 7 ada@example.com grace@example.com"
    )]
    RemoveMembers {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// Keys of the members; case-insensitive.
        #[arg(required = true)]
        keys: Vec<String>,
    },
    /// Explain why a batch, or a row of a batch, waits, and what will wake it.
    #[command(
        after_help = "Examples:\n  segno batch explain 7\n  segno batch explain 7 step-1042\n  segno batch explain 7 cutover"
    )]
    Explain {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// A row: `phase-108`, `member-501`, `step-1042`, `init-7`, or the name of a phase.
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
    #[command(after_help = "Example:\n  segno batch members 7\n  segno batch members 7 --status failed")]
    Members {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// Only the member with this key; case-insensitive.
        #[arg(long, value_name = "KEY")]
        member: Option<String>,
        /// Only members in this state; several are given with commas, or by repeating it.
        #[arg(long, value_parser = parse_member_status, value_delimiter = ',', conflicts_with = "member")]
        status: Vec<MemberStatus>,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// A request about a batch.
    #[command(flatten)]
    Request(RequestVerb),
}

fn parse_batch_status(text: &str) -> Result<BatchStatus, String> {
    serde_json::from_value(text.into())
        .map_err(|_| "use detected, init_dispatched, active, completed, failed or cancelled".to_owned())
}

fn parse_member_status(text: &str) -> Result<MemberStatus, String> {
    serde_json::from_value(text.into()).map_err(|_| "use active, removed, failed or cancelled".to_owned())
}

/// A request about a batch, which the node applies that holds it.
#[derive(Debug, Subcommand)]
pub enum RequestVerb {
    /// Begin the init steps, or the next phase, of a batch without a start time.
    #[command(after_help = "Example:\n  segno batch advance 7")]
    Advance(OneBatch),
    /// Pause a batch: no further step is dispatched; calls that were dispatched still run.
    #[command(after_help = "Example:\n  segno batch pause 7 --reason 'wait for the fix'")]
    Pause {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// Why, for humans.
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
        /// Why, for humans.
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
        #[arg(long = "member", value_name = "ID", value_parser = id)]
        members: Vec<u64>,
        /// From where.
        #[command(flatten)]
        origin: RetryOrigin,
    },
    /// Retry the init step that failed the batch.
    #[command(name = "retry-init", after_help = "Example:\n  segno batch retry-init 7")]
    RetryInit(OneBatch),
    /// Retry a failed rollback from its failed step.
    #[command(
        name = "retry-rollback",
        after_help = "Examples:\n  segno batch retry-rollback 7 step-1042\n  segno batch retry-rollback 7 init-3"
    )]
    RetryRollback {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        /// The step that is rolled back: `step-1042` or `init-7`.
        row: String,
    },
    /// Move the start of a batch; phases that have not begun move with it.
    #[command(after_help = "Example:\n  segno batch reschedule 7 --start now+2d")]
    Reschedule {
        /// The batch.
        #[command(flatten)]
        batch: OneBatch,
        #[arg(
            long,
            value_name = "TIME",
            value_parser = moment::anytime,
            help = moment::anytime_help!("The new reference time of the phases")
        )]
        start: Moment,
    },
    /// Approve a phase.
    #[command(after_help = "Example:\n  segno batch approve 7 cutover")]
    Approve(OfPhase),
    /// Reject a phase: the phase fails before it begins.
    #[command(after_help = "Example:\n  segno batch reject 7 cutover")]
    Reject(OfPhase),
    /// Skip a phase.
    #[command(name = "skip-phase", after_help = "Example:\n  segno batch skip-phase 7 prepare")]
    SkipPhase(OfPhase),
    /// Cancel a phase: its open steps are cancelled, and the phase fails.
    #[command(name = "cancel-phase", after_help = "Example:\n  segno batch cancel-phase 7 prepare")]
    CancelPhase(OfPhase),
    /// Resume a phase whose error budget was spent, with a fresh budget.
    #[command(name = "resume-phase", after_help = "Example:\n  segno batch resume-phase 7 prepare")]
    ResumePhase(OfPhase),
    /// Skip a step, also one that has failed; the member continues with the next.
    #[command(name = "skip-step", after_help = "Example:\n  segno batch skip-step 7 1042")]
    SkipStep(OfStep),
    /// Cancel an open step, and its member with it.
    #[command(name = "cancel-step", after_help = "Example:\n  segno batch cancel-step 7 1042")]
    CancelStep(OfStep),
}

/// The id of a batch, member or step.
fn id(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "ids are whole numbers; the verbs list, members and show print them".to_owned())
}

/// From where members are retried.
#[derive(Debug, Args)]
pub struct RetryOrigin {
    /// Retry from the first step of the phase in which they failed.
    #[arg(long)]
    from_phase: bool,
}

impl RetryOrigin {
    /// As the API names it.
    pub fn retry_from(&self) -> RetryFrom {
        if self.from_phase { RetryFrom::Phase } else { RetryFrom::Step }
    }
}

/// A batch.
#[derive(Debug, Args)]
pub struct OneBatch {
    /// Id of the batch.
    #[arg(value_parser = id)]
    pub id: u64,
}

/// A phase of a batch.
#[derive(Debug, Args)]
pub struct OfPhase {
    /// Id of the batch.
    #[arg(value_parser = id)]
    pub id: u64,
    /// Name of the phase, or the id of its execution.
    pub phase: String,
}

/// A step of a batch.
#[derive(Debug, Args)]
pub struct OfStep {
    /// Id of the batch.
    #[arg(value_parser = id)]
    pub id: u64,
    /// Id of the step; `segno member show` lists them.
    #[arg(value_parser = id)]
    pub step: u64,
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
    Show(OneMember),
    /// Retry a failed member from the step that failed.
    #[command(after_help = "Examples:\n  segno member retry 7 501\n  segno member retry 7 501 --from-phase")]
    Retry {
        /// The member.
        #[command(flatten)]
        member: OneMember,
        /// From where.
        #[command(flatten)]
        origin: RetryOrigin,
    },
    /// Cancel a member with its open steps.
    #[command(after_help = "Example:\n  segno member cancel 7 501")]
    Cancel(OneMember),
    /// Resume a member that was cancelled or has failed.
    #[command(after_help = "Example:\n  segno member resume 7 501")]
    Resume(OneMember),
    /// Retry the failed removal steps of a member that has left.
    #[command(name = "retry-removal", after_help = "Example:\n  segno member retry-removal 7 501")]
    RetryRemoval(OneMember),
}

/// A member of a batch.
#[derive(Debug, Args)]
pub struct OneMember {
    /// Id of the batch.
    #[arg(value_parser = id)]
    pub batch: u64,
    /// Id of the member, or its key if that is no whole number; `segno batch members` lists both.
    pub member: String,
}
