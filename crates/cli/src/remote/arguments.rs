//! What can be said to a server.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use segno_api::Client;
use segno_api::instance::{BulkAction, Status};
use segno_server::HumanDuration;

use super::audit::AuditArguments;
use super::dead_letters::DeadLettersArguments;
use super::executions::ExecutionsArguments;
use super::hook::arguments::Hook;
use super::profiles;
use super::tree::TreeArguments;
use crate::exit::Failure;
use crate::moment::{self, Moment, future_help, past_help};
use crate::output::{Output, Paging};

/// Which server, and where on it.
#[derive(Debug, Args)]
pub struct Connection {
    /// Address of the server.
    #[arg(long, global = true, env = "SEGNO_SERVER", value_name = "URL", help_heading = "Server")]
    pub server: Option<String>,
    /// API key; better in the environment or in a profile, where other users of the machine do not see it.
    #[arg(
        long,
        global = true,
        env = "SEGNO_KEY",
        hide_env_values = true,
        value_name = "KEY",
        help_heading = "Server"
    )]
    pub key: Option<String>,
    /// Server, key, namespace and tenant from a profile of this name.
    #[arg(long, global = true, env = "SEGNO_PROFILE", value_name = "NAME", help_heading = "Server")]
    pub profile: Option<String>,
    /// Namespace.
    #[arg(long, global = true, env = "SEGNO_NAMESPACE", value_name = "NAME", help_heading = "Server")]
    pub namespace: Option<String>,
    /// Tenant.
    #[arg(long, global = true, env = "SEGNO_TENANT", value_name = "NAME", help_heading = "Server")]
    pub tenant: Option<String>,
}

/// The server when nothing names one.
const DEFAULT_SERVER: &str = "http://127.0.0.1:7070";

impl Connection {
    /// A client. What was said wins over the profile.
    ///
    /// # Errors
    /// When the profile or the address is wrong.
    pub fn client(&self, output: &Output) -> Result<Client, Failure> {
        let profile = profiles::load(self.profile.as_deref(), output)?;
        let pick = |said: &Option<String>, stored: Option<String>| said.clone().or(stored);
        let server = pick(&self.server, profile.server).unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let or_default = |name: Option<String>| name.unwrap_or_else(|| "default".to_owned());
        let namespace = or_default(pick(&self.namespace, profile.namespace));
        let tenant = or_default(pick(&self.tenant, profile.tenant));
        let client = Client::new(&server)?.scope(namespace, tenant).retry_for(RETRY_FOR);
        Ok(match pick(&self.key, profile.key) {
            Some(key) => client.key(key),
            None => client,
        })
    }
}

/// How long a command repeats a call while the server cannot be reached: long enough for a restart, and not so long that a
/// wrong address looks like a server.
const RETRY_FOR: Duration = Duration::from_secs(5);

/// What to do on a server.
#[derive(Debug, Subcommand)]
pub enum RemoteCommand {
    /// Start an instance.
    #[command(after_help = "Example:\n  segno start greet --id ada --input '{\"name\":\"Ada\"}' --wait")]
    Start(Start),
    /// List instances, newest first.
    #[command(
        after_help = "Example:\n  segno list --status failed,cancelled --label team=eu --label stage=test --created-from 1h"
    )]
    List(List),
    /// Show an instance and draw what it did.
    #[command(after_help = "Example:\n  segno show ada")]
    Show(One),
    /// Print the events of an instance.
    #[command(after_help = "Examples:\n  segno history ada --full\n  segno history ada -o jsonl")]
    History(History),
    /// Show an instance and its descendants.
    #[command(after_help = "Example:\n  segno tree order-7")]
    Tree(TreeArguments),
    /// List the executions of an instance, newest first.
    #[command(after_help = "Example:\n  segno executions ada")]
    Executions(ExecutionsArguments),
    /// Wait for the end of an instance and print its result.
    #[command(after_help = "Example:\n  segno wait ada --timeout 1m")]
    Wait(Wait),
    /// Print the events of an instance as they happen, until it ends; without an id, what happens to all instances.
    #[command(after_help = "Example:\n  segno tail ada\n  segno tail --status failed --prefix order-")]
    Tail(Tail),
    /// Raise a signal.
    #[command(after_help = "Example:\n  segno signal ada wave --data '{\"by\":\"Bob\"}'")]
    Signal(Send),
    /// Put a message into a mailbox.
    #[command(after_help = "Example:\n  segno enqueue ada orders --data '{\"order\":7}'")]
    Enqueue(Send),
    /// Cancel an instance with its children.
    #[command(after_help = "Example:\n  segno cancel ada --reason 'no longer needed'")]
    Cancel(Because),
    /// Hold an instance.
    #[command(after_help = "Example:\n  segno pause ada --reason 'wait for the fix'")]
    Pause(Because),
    /// Let a held instance go on.
    #[command(after_help = "Example:\n  segno resume ada")]
    Resume(One),
    /// Start an instance again with its input; earlier executions stay.
    #[command(after_help = "Example:\n  segno restart ada\n  segno restart ada --new-id ada-2")]
    Restart(Restart),
    /// Delete an instance with its children and its history.
    #[command(after_help = "Example:\n  segno delete ada")]
    Delete(Delete),
    /// Cancel, pause, resume or delete all instances that match.
    #[command(after_help = "Example:\n  segno bulk cancel --prefix import- --dry-run")]
    Bulk(Bulk),
    /// Call a function and print its result.
    #[command(after_help = "Example:\n  segno invoke echo --input '{\"a\":1}'")]
    Invoke(Invoke),
    /// Look after functions.
    Functions(Functions),
    /// Look after webhooks.
    Hook(Hook),
    /// List, show, pause and resume pools of workers.
    Pool(Pools),
    /// Look after what was given up: messages, turns and activities.
    #[command(name = "dead-letters")]
    DeadLetters(DeadLettersArguments),
    /// Show which key changed what, newest first. Needs an administrator's key.
    #[command(after_help = "Example:\n  segno audit --action cancel --since 1d")]
    Audit(AuditArguments),
    /// Show which workers are connected.
    #[command(after_help = "Example:\n  segno workers")]
    Workers(Workers),
    /// Print what the tools of an instance wrote to stderr.
    #[command(after_help = "Example:\n  segno logs ada")]
    Logs(One),
    /// Show the lengths of the queues.
    #[command(after_help = "Example:\n  segno queues")]
    Queues(Nothing),
    /// Show what the server is doing, again and again on a terminal.
    #[command(after_help = "Example:\n  segno top")]
    Top(Nothing),
    /// Check that a server can work: exit code 0 if it is ready and its store takes writes, 1 if not. Needs no key.
    #[command(after_help = "Example:\n  segno health --server http://127.0.0.1:7070")]
    Health(Nothing),
}

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
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("Not before this time"))]
    pub at: Option<Moment>,
    /// What to do when there is one of this id already.
    #[arg(long, value_enum, default_value_t = OnConflict::Reject)]
    pub on_conflict: OnConflict,
    /// Makes the call safe to repeat: the same key starts once.
    #[arg(long, value_name = "TEXT")]
    pub idempotency_key: Option<String>,
    /// Wait for the end and print the result.
    #[arg(long)]
    pub wait: bool,
    /// Wait at most so long, as in `30s`; a number alone is seconds.
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = moment::seconds)]
    pub timeout: Option<HumanDuration>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do when there is one of the id already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnConflict {
    /// Fail.
    Reject,
    /// Take the one that is there.
    UseExisting,
    /// Cancel the one that is there if it runs, and begin its next execution.
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
    /// Only calls of this function, whatever made them.
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

/// A listing.
#[derive(Debug, Args)]
pub struct List {
    /// Which instances.
    #[command(flatten)]
    pub filter: Filter,
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
    /// Id of the instance; what happens to all instances without it.
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
    /// Only calls of this function, whatever made them.
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
    /// Wait at most so long, as in `30s`; a number alone is seconds.
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
    /// Kept in the history.
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
    /// Start it under this id and leave the old one as it is.
    #[arg(long)]
    pub new_id: Option<String>,
    /// Also when it has not ended.
    #[arg(long)]
    pub force: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A deletion.
#[derive(Debug, Args)]
pub struct Delete {
    /// Id of the instance.
    pub id: String,
    /// Also when it has not ended.
    #[arg(long)]
    pub force: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Many instances.
#[derive(Debug, Args)]
pub struct Bulk {
    /// What to do.
    #[arg(value_parser = parse_action)]
    pub action: BulkAction,
    /// Which instances; something must be said, `--prefix ''` means all.
    #[command(flatten)]
    pub filter: Filter,
    /// Kept in the histories.
    #[arg(long)]
    pub reason: Option<String>,
    /// Only count what would be touched.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Delete also what has not ended.
    #[arg(long)]
    pub force: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

fn parse_action(text: &str) -> Result<BulkAction, String> {
    serde_json::from_value(text.into()).map_err(|_| "use cancel, pause, resume or delete".to_owned())
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

/// Nothing but the server.
#[derive(Debug, Args)]
pub struct Nothing {
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
    /// Your name for this call: the same one is the same call, however often it is made.
    #[arg(long, value_name = "TEXT")]
    pub call_key: Option<String>,
    /// Only workers with this tag take it.
    #[arg(long)]
    pub tag: Option<String>,
    /// Workers of this pool run it.
    #[arg(long, conflicts_with = "tag")]
    pub pool: Option<String>,
    /// Attempts in all.
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
    /// Wait at most so long, as in `30s`; a number alone is seconds.
    #[arg(long, value_name = "DURATION", conflicts_with = "no_wait", value_parser = moment::seconds)]
    pub timeout: Option<HumanDuration>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with pools.
#[derive(Debug, Args)]
pub struct Pools {
    /// What to do.
    #[command(subcommand)]
    pub verb: PoolsVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with pools.
#[derive(Debug, Subcommand)]
pub enum PoolsVerb {
    /// List pools with their workers and state.
    #[command(after_help = "Example:\n  segno pool list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a pool, its functions and its workers.
    #[command(after_help = "Example:\n  segno pool show cloud-01")]
    Show {
        /// Its name.
        name: String,
    },
    /// Pause a pool: its calls wait until it is resumed.
    #[command(after_help = "Example:\n  segno pool pause cloud-01 --reason maintenance")]
    Pause {
        /// Its name.
        name: String,
        /// Why, for people.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume a paused or throttled pool.
    #[command(after_help = "Example:\n  segno pool resume cloud-01")]
    Resume {
        /// Its name.
        name: String,
    },
    /// Forget a pool that its workers have announced.
    #[command(after_help = "Example:\n  segno pool delete cloud-01")]
    Delete {
        /// Its name.
        name: String,
    },
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
        /// Its name.
        name: String,
    },
    /// Store a function, or replace it.
    #[command(after_help = "Example:\n  segno functions put word-count '{\"executor\":\"remote\"}'")]
    Put {
        /// Its name.
        name: String,
        /// Its declaration, JSON; `@FILE` reads a file and `-` standard input.
        declaration: String,
        /// Only if the stored one has this version.
        #[arg(long)]
        version: Option<u64>,
    },
    /// Delete a stored function.
    #[command(after_help = "Example:\n  segno functions delete word-count")]
    Delete {
        /// Its name.
        name: String,
    },
}
