//! What can be said about actions.

use clap::{Args, Subcommand, ValueEnum};
use segno_server::HumanDuration;

use crate::moment::{self, Moment, future_help};
use crate::output::Paging;
use crate::remote::connection::Connection;

/// What to do with actions.
#[derive(Debug, Args)]
pub struct ActionArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: ActionVerb,
}

/// What to do with actions.
#[derive(Debug, Subcommand)]
pub enum ActionVerb {
    /// Call a function, or start an orchestration, at a given time.
    #[command(
        after_help = "Examples:\n  segno action add greeting --function greet --input '\"Ada\"' --at now+10m\n  \
                      segno action add nightly --function backup --at 2026-03-27T02:00:00Z --every 1d"
    )]
    Add(Add),
    /// List actions.
    #[command(after_help = "Example:\n  segno action list --status pending")]
    List(List),
    /// Show an action.
    #[command(after_help = "Example:\n  segno action show 0198c0de-0000-7000-8000-000000000001")]
    Show(One),
    /// Cancel a pending or running action.
    #[command(after_help = "Example:\n  segno action cancel ID")]
    Cancel(One),
    /// Run an action now; an ended one is repeated as a new action.
    #[command(after_help = "Example:\n  segno action run ID")]
    Run(One),
}

/// One action.
#[derive(Debug, Args)]
pub struct One {
    /// Id of the action.
    pub id: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// An action to be made.
#[derive(Debug, Args)]
pub struct Add {
    /// Label of the action, for humans; the name of the function or orchestration without it.
    pub label: Option<String>,
    /// The function.
    #[arg(long, visible_alias = "tool", value_name = "NAME", required_unless_present = "orchestration")]
    pub function: Option<String>,
    /// The orchestration to start, in place of a function.
    #[arg(long, value_name = "NAME", conflicts_with = "function")]
    pub orchestration: Option<String>,
    /// Input, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long, default_value = "null")]
    pub input: String,
    #[arg(long, value_name = "TIME", default_value = "now", value_parser = moment::future, help = future_help!("When the action is due"))]
    pub at: Moment,
    /// Repeat the action this long after the time it was due, in whole seconds.
    #[arg(long, value_name = "DURATION")]
    pub every: Option<HumanDuration>,
    /// What to do with the action if its process stops while it runs.
    #[arg(long, value_enum, default_value_t)]
    pub on_restart: OnRestart,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What becomes of an action that is running when its process goes down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OnRestart {
    /// The action is marked as failed.
    Fail,
    /// The action is continued.
    #[default]
    Resume,
}

/// How far an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum State {
    /// The action waits for its time.
    Pending,
    /// The action was started.
    Running,
    /// The action is done.
    Completed,
    /// The action failed or was cancelled.
    Failed,
}

impl State {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Running => "running",
            State::Completed => "completed",
            State::Failed => "failed",
        }
    }
}

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only in this state; several are given with commas, or by repeating it.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub status: Vec<State>,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}
