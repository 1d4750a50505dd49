//! Arguments of `segno run` and `segno task`.

use clap::{Args, Subcommand, ValueEnum};
use segno_api::run::RunStatus;

use crate::moment::{self, Moment, past_help};
use crate::output::Paging;
use crate::remote::connection::Connection;

/// What to do with runs.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: RunVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub enum RunVerb {
    /// Start a run of a DAG.
    #[command(after_help = "Examples:\n  segno run start daily-sales --partition 2026-11-18 --watch\n  \
                      segno run start daily-sales --param region=eu --run-key eu-2026-11-18 --label team=sales")]
    Start(StartRun),
    /// List runs, newest first.
    #[command(
        after_help = "Example:\n  segno run list --dag daily-sales --status failed,cancelled --since 1d --label team=sales"
    )]
    List(ListRuns),
    /// Show a run, the graph of its tasks, and why they wait.
    #[command(after_help = "Example:\n  segno run show run_ba6mduulcrdaksbnw2imp3eiwq")]
    Show(OneRun),
    /// Follow a run until it ends.
    #[command(
        after_help = "On a terminal the graph is redrawn; otherwise there is a line for each change of a task. The exit code is 0 if \
                      the run succeeds and 8 if it fails or is cancelled.\n\nExample:\n  segno run watch run_ba6mduulcrdaksbnw2imp3eiwq"
    )]
    Watch(OneRun),
    /// Cancel a run: tasks that have not started end at once, running ones are cancelled.
    #[command(
        after_help = "Example:\n  segno run cancel run_ba6mduulcrdaksbnw2imp3eiwq --reason 'wrong partition'"
    )]
    Cancel {
        /// The run.
        #[command(flatten)]
        run: OneRun,
        /// Why, for people.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Pause a run: no further attempts are dispatched; running ones go on.
    #[command(after_help = "Example:\n  segno run pause run_ba6mduulcrdaksbnw2imp3eiwq")]
    Pause(OneRun),
    /// Resume a paused run.
    #[command(after_help = "Example:\n  segno run resume run_ba6mduulcrdaksbnw2imp3eiwq")]
    Resume(OneRun),
    /// Repeat a run that has ended, as a new run: what did not succeed, or the tasks that are named.
    #[command(after_help = "Examples:\n  segno run rerun run_ba6mduulcrdaksbnw2imp3eiwq\n  \
                      segno run rerun run_ba6mduulcrdaksbnw2imp3eiwq --task clean --downstream --watch")]
    Rerun(Rerun),
}

/// A run.
#[derive(Debug, Args)]
pub struct OneRun {
    /// Id of the run.
    pub id: String,
}

/// A run to start.
#[derive(Debug, Args)]
pub struct StartRun {
    /// Name of the DAG.
    pub dag: String,
    /// Version of the DAG; the active one by default.
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u32>,
    /// A parameter; the value is JSON, or else text. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// All parameters as a JSON object; `@FILE` reads a file and `-` standard input.
    #[arg(long = "params", value_name = "JSON", conflicts_with = "params")]
    pub params_json: Option<String>,
    /// Key of the partition.
    #[arg(long, value_name = "KEY")]
    pub partition: Option<String>,
    /// Run these tasks alone: `load`, `+load` with all before it, `load+` with all after it. May be repeated.
    #[arg(long = "select", value_name = "TERM")]
    pub select: Vec<String>,
    /// Names the run: the same key with the same parameters is the same run.
    #[arg(long, value_name = "TEXT")]
    pub run_key: Option<String>,
    /// A label. May be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Makes the call safe to repeat: the same key starts one run.
    #[arg(long, value_name = "TEXT")]
    pub idempotency_key: Option<String>,
    /// Follow the run until it ends.
    #[arg(long)]
    pub watch: bool,
}

/// A run to repeat.
#[derive(Debug, Args)]
pub struct Rerun {
    /// The run.
    #[command(flatten)]
    pub run: OneRun,
    /// Run this task, whatever became of it. May be repeated. Without it, all tasks run that did not succeed.
    #[arg(long = "task", value_name = "KEY")]
    pub tasks: Vec<String>,
    /// Run everything downstream of these tasks as well.
    #[arg(long, requires = "tasks")]
    pub downstream: bool,
    /// Follow the new run until it ends.
    #[arg(long)]
    pub watch: bool,
}

/// Which runs to list.
#[derive(Debug, Args)]
pub struct ListRuns {
    /// Only runs of this DAG.
    #[arg(long, value_name = "NAME")]
    pub dag: Option<String>,
    /// Only runs in this state; several are given with commas, or by repeating it.
    #[arg(long, value_parser = parse_status, value_delimiter = ',')]
    pub status: Vec<RunStatus>,
    /// Only runs with this label.
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Option<String>,
    #[arg(
        long,
        visible_alias = "since",
        value_name = "TIME",
        value_parser = moment::past,
        help = past_help!("Only triggered at or after this time")
    )]
    pub triggered_from: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only triggered before this time"))]
    pub triggered_before: Option<Moment>,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
}

fn parse_status(text: &str) -> Result<RunStatus, String> {
    serde_json::from_value(text.into())
        .map_err(|_| "use triggered, running, succeeded, failed or cancelled".to_owned())
}

/// What to do with tasks.
#[derive(Debug, Args)]
pub struct TaskArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: TaskVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with tasks.
#[derive(Debug, Subcommand)]
pub enum TaskVerb {
    /// Show a task of a run: its attempt, input and output, and why it waits.
    #[command(after_help = "Example:\n  segno task show run_ba6mduulcrdaksbnw2imp3eiwq clean")]
    Show(OneTask),
    /// Print what a task returned, whatever its size.
    #[command(after_help = "Example:\n  segno task output run_ba6mduulcrdaksbnw2imp3eiwq clean > clean.json")]
    Output(OneTask),
    /// Print what the tools of a task wrote to stderr.
    #[command(after_help = "Example:\n  segno task logs run_ba6mduulcrdaksbnw2imp3eiwq clean")]
    Logs {
        /// The task.
        #[command(flatten)]
        task: OneTask,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Clear tasks that have ended: they run again in the same run, with everything downstream.
    #[command(after_help = "Examples:\n  segno task clear run_ba6mduulcrdaksbnw2imp3eiwq clean\n  \
                      segno task clear run_ba6mduulcrdaksbnw2imp3eiwq clean load --only")]
    Clear {
        /// The run.
        run: String,
        /// Keys of the tasks.
        #[arg(required = true)]
        tasks: Vec<String>,
        /// Leave downstream tasks as they are, unless they were left out because of these.
        #[arg(long)]
        only: bool,
    },
    /// Set the state of a task by hand.
    #[command(
        after_help = "Examples:\n  segno task mark run_ba6mduulcrdaksbnw2imp3eiwq clean succeeded --output-json '{\"rows\":3}'\n  \
                      segno task mark run_ba6mduulcrdaksbnw2imp3eiwq clean skipped --reason 'no data today'"
    )]
    Mark(Mark),
}

/// A task of a run.
#[derive(Debug, Args)]
pub struct OneTask {
    /// Id of the run.
    pub run: String,
    /// Key of the task.
    pub task: String,
}

/// A state that is set by hand.
#[derive(Debug, Args)]
pub struct Mark {
    /// The task.
    #[command(flatten)]
    pub task: OneTask,
    /// New state of the task.
    #[arg(value_enum)]
    pub state: MarkedState,
    /// Output of the task, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long = "output-json", value_name = "JSON")]
    pub returned: Option<String>,
    /// Why, for people.
    #[arg(long)]
    pub reason: Option<String>,
}

/// States that can be set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MarkedState {
    /// The task counts as succeeded.
    Succeeded,
    /// The task counts as failed, without another attempt.
    Failed,
    /// Left out.
    Skipped,
}
