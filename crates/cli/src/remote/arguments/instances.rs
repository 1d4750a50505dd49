//! Instances: starting, finding, following and changing one.

use clap::{Args, ValueEnum};
use segno_api::instance::Status;
use segno_server::HumanDuration;

use crate::moment::{self, Moment, future_help, past_help};
use crate::output::Paging;
use crate::remote::connection::Connection;

/// A start.
#[derive(Debug, Args)]
pub struct Start {
    /// Name of the orchestration.
    pub orchestration: String,
    /// Id of the instance; a new one without it.
    #[arg(long)]
    pub id: Option<String>,
    /// Input, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long, default_value = "null")]
    pub input: String,
    /// Version of the orchestration.
    #[arg(long)]
    pub version: Option<String>,
    /// A label.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("Start the instance at this time"))]
    pub at: Option<Moment>,
    /// What to do when an instance of this id exists already.
    #[arg(long, value_enum, default_value_t = OnConflict::Reject)]
    pub on_conflict: OnConflict,
    /// Makes the call safe to repeat: the same key starts once.
    #[arg(long, value_name = "TEXT")]
    pub idempotency_key: Option<String>,
    /// Wait for the end and print the result.
    #[arg(long)]
    pub wait: bool,
    /// Wait at most this long, such as `30s`; a number alone is seconds.
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = moment::seconds)]
    pub timeout: Option<HumanDuration>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do when an instance of the id exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnConflict {
    /// Fail.
    Reject,
    /// Use the existing instance.
    UseExisting,
    /// Cancel the existing instance if it runs, and begin its next execution.
    Replace,
}

/// Which instances.
#[derive(Debug, Args)]
pub struct Filter {
    /// Only ids that start with this.
    #[arg(long)]
    pub prefix: Option<String>,
    /// Only in this state; several are given with commas, or by repeating it.
    #[arg(long, value_parser = parse_status, value_delimiter = ',')]
    pub status: Vec<Status>,
    /// Only of this orchestration.
    #[arg(long)]
    pub orchestration: Option<String>,
    /// Only calls of this function, from any source.
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Only with this label; of several, all must hold.
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    #[arg(
        long,
        visible_alias = "since",
        value_name = "TIME",
        value_parser = moment::past,
        help = past_help!("Only created at or after this time")
    )]
    pub created_from: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only created before this time"))]
    pub created_before: Option<Moment>,
}

fn parse_status(text: &str) -> Result<Status, String> {
    serde_json::from_value(text.into()).map_err(|_| {
        "use pending, running, paused, completed, failed, cancelled or continued_as_new".to_owned()
    })
}

/// How and when instances ended, and how long they took.
#[derive(Debug, Args)]
pub struct Ends {
    /// Only those that failed with this code, or with this category where there is no code.
    #[arg(long, value_name = "CODE")]
    pub failure: Option<String>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only those that ended at or after this time"))]
    pub ended_from: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Only those that ended before this time"))]
    pub ended_before: Option<Moment>,
    /// Only those that took longer than this.
    #[arg(long, value_name = "DURATION")]
    pub longer_than: Option<HumanDuration>,
    /// Only those that took less than this.
    #[arg(long, value_name = "DURATION")]
    pub shorter_than: Option<HumanDuration>,
}

/// A listing.
#[derive(Debug, Args)]
pub struct List {
    /// Which instances.
    #[command(flatten)]
    pub filter: Filter,
    /// How they ended.
    #[command(flatten)]
    pub ends: Ends,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// One instance.
#[derive(Debug, Args)]
pub struct One {
    /// Id of the instance.
    pub id: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to follow.
#[derive(Debug, Args)]
pub struct Tail {
    /// Id of the instance; without it, the changes of all instances are printed.
    #[arg(conflicts_with_all = ["prefix", "status", "orchestration", "function", "label"])]
    pub id: Option<String>,
    /// Only ids that start with this.
    #[arg(long)]
    pub prefix: Option<String>,
    /// Only changes that led to this state; several are given with commas, or by repeating it.
    #[arg(long, value_parser = parse_status, value_delimiter = ',')]
    pub status: Vec<Status>,
    /// Only of this orchestration.
    #[arg(long)]
    pub orchestration: Option<String>,
    /// Only calls of this function, from any source.
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Only with this label; of several, all must hold.
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Events.
#[derive(Debug, Args)]
pub struct History {
    /// Id of the instance.
    pub id: String,
    /// Which execution; the current one without it.
    #[arg(long)]
    pub execution: Option<u64>,
    /// Show all data of events; without it long data is cut.
    #[arg(long)]
    pub full: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A wait.
#[derive(Debug, Args)]
pub struct Wait {
    /// Id of the instance.
    pub id: String,
    /// Wait at most this long, such as `30s`; a number alone is seconds.
    #[arg(long, value_name = "DURATION", value_parser = moment::seconds)]
    pub timeout: Option<HumanDuration>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A message.
#[derive(Debug, Args)]
pub struct Send {
    /// Id of the instance.
    pub id: String,
    /// Name of the signal or mailbox.
    pub name: String,
    /// What to send, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long, default_value = "null")]
    pub data: String,
    /// Id of the message; repeats of it are dropped.
    #[arg(long)]
    pub message_id: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Something with a reason.
#[derive(Debug, Args)]
pub struct Because {
    /// Id of the instance.
    pub id: String,
    /// Why, kept in the audit log and, if the instance records it, in its history.
    #[arg(long)]
    pub reason: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A new start.
#[derive(Debug, Args)]
pub struct Restart {
    /// Id of the instance.
    pub id: String,
    /// Start a new instance with this id, and leave the old one unchanged.
    #[arg(long)]
    pub new_id: Option<String>,
    /// Begin with this input instead of that of the last start, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// Restart the instance even if it has not ended.
    #[arg(long)]
    pub force: bool,
    /// Why, kept in the audit log.
    #[arg(long)]
    pub reason: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A deletion.
#[derive(Debug, Args)]
pub struct Delete {
    /// Id of the instance.
    pub id: String,
    /// Delete the instance even if it has not ended.
    #[arg(long)]
    pub force: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}
