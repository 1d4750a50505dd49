//! What can be said to a server.
//!
//! | file | what |
//! |---|---|
//! | `instances` | starting, finding, following and changing instances |
//! | `bulk` | one change for many instances |
//! | `functions` | functions, calls and workers |
//! | `pools` | pools of workers |
//! | `batches` | batches of runbooks and their members |

mod batches;
mod bulk;
mod functions;
mod instances;
mod pools;

use clap::{Args, Subcommand};

pub use batches::{BatchVerb, Batches, CreateBatch, MemberVerb, Members, OfPhase, OneMember, RequestVerb};
pub use bulk::{Bulk, BulkVerb, Matching};
pub use functions::{Functions, FunctionsVerb, Invoke, Logs, Workers};
pub use instances::{
    Because, Delete, Ends, Filter, History, List, OnConflict, One, Restart, Send, Start, Tail, Wait,
};
pub use pools::{Pools, PoolsVerb};

use super::archive::ArchiveArguments;
use super::audit::AuditArguments;
use super::bus::BusArguments;
use super::connection::Connection;
use super::count::CountArguments;
use super::dead_letters::DeadLettersArguments;
use super::executions::ExecutionsArguments;
use super::hook::arguments::Hook;
use super::saved::SavedArguments;
use super::search::SearchArguments;
use super::sessions::SessionsArguments;
use super::sql::arguments::SqlArguments;
use super::stats::StatsArguments;
use super::tree::TreeArguments;

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
    /// Show an instance and draw its execution.
    #[command(after_help = "Example:\n  segno show ada")]
    Show(One),
    /// Show what an instance waits for, since when, and when it wakes up.
    #[command(after_help = "Example:\n  segno explain ada")]
    Explain(One),
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
    /// Print the events of an instance live, until it ends; without an id, the changes of all instances.
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
    /// Pause an instance.
    #[command(after_help = "Example:\n  segno pause ada --reason 'wait for the fix'")]
    Pause(Because),
    /// Resume a paused instance.
    #[command(after_help = "Example:\n  segno resume ada")]
    Resume(One),
    /// Start an instance again with its input or with another; earlier executions stay.
    #[command(
        after_help = "Example:\n  segno restart ada\n  segno restart ada --new-id ada-2\n  segno restart ada --input '{\"name\":\"Bob\"}'"
    )]
    Restart(Restart),
    /// Run the activities of an instance at once that wait for their next attempt.
    #[command(after_help = "Example:\n  segno retry order-7 --reason 'the bank is back'")]
    Retry(Because),
    /// Delete an instance with its children and its history.
    #[command(after_help = "Example:\n  segno delete ada")]
    Delete(Delete),
    /// Cancel, pause, resume, restart, retry or delete all instances that match.
    Bulk(Bulk),
    /// Call a function and print its result.
    #[command(after_help = "Example:\n  segno invoke echo --input '{\"a\":1}'")]
    Invoke(Invoke),
    /// List, show, store and delete functions.
    Functions(Functions),
    /// Manage webhooks and inspect what they received.
    Hook(Hook),
    /// List, show, pause and resume pools of workers.
    Pool(Pools),
    /// Create batches of runbooks, follow them, and advance, pause, approve, retry or cancel them.
    Batch(Batches),
    /// Show the members of batches.
    Member(Members),
    /// Inspect the message bus of runbooks, send messages, resubmit and discard its dead letters.
    Bus(BusArguments),
    /// List, resubmit and discard dead letters: messages, turns and activities that could not be processed.
    #[command(name = "dead-letters")]
    DeadLetters(DeadLettersArguments),
    /// Show which key changed what, newest first. Needs an administrator's key.
    #[command(after_help = "Example:\n  segno audit --action cancel --since 1d")]
    Audit(AuditArguments),
    /// Show what retention has moved out of the store, and erase it.
    Archive(ArchiveArguments),
    /// Query instances, events, actions, batches, runs and tasks with SQL; without a query, in a console.
    #[command(
        after_help = "Examples:\n  segno sql \"SELECT status, count(*) FROM instances GROUP BY status\"\n  \
                            segno sql --query slowest-functions\n  segno sql"
    )]
    Sql(SqlArguments),
    /// List, show, save and delete views and queries that a tenant shares under a name.
    Saved(SavedArguments),
    /// Show which workers are connected.
    #[command(after_help = "Example:\n  segno workers")]
    Workers(Workers),
    /// Print what the tools of an instance wrote to stderr.
    #[command(after_help = "Example:\n  segno logs ada")]
    Logs(Logs),
    /// Show what is wrong now: failures, stuck and paused instances, overdue schedules, functions without a worker, and more.
    #[command(after_help = "Example:\n  segno problems")]
    Problems(Nothing),
    /// Show how much was started, how it ended and how long it took.
    #[command(after_help = "Examples:\n  segno stats\n  segno stats --last 24h --step 1h")]
    Stats(StatsArguments),
    /// Count instances by state, name or failure.
    #[command(after_help = "Examples:\n  segno count\n  segno count --by failure --ended-from 1h")]
    Count(CountArguments),
    /// Find instances, functions, schedules, actions, runbooks, batches, DAGs and webhooks by how their ids and names begin.
    #[command(after_help = "Example:\n  segno search order-")]
    Search(SearchArguments),
    /// Show what wakes up by itself: timers, next attempts and delayed starts.
    #[command(after_help = "Example:\n  segno timers")]
    Timers(Nothing),
    /// Show the settings of a server and where each comes from, without secrets. Needs an administrator's key.
    #[command(after_help = "Example:\n  segno settings")]
    Settings(Nothing),
    /// Show what the store of a server takes on its disk.
    #[command(after_help = "Example:\n  segno usage")]
    Usage(Nothing),
    /// Show which nodes are up, have stopped or are lost.
    #[command(after_help = "Example:\n  segno nodes")]
    Nodes(Nothing),
    /// List and revoke sessions of browsers.
    Sessions(SessionsArguments),
    /// Show the lengths of the queues.
    #[command(after_help = "Example:\n  segno queues")]
    Queues(Nothing),
    /// Show the load of the server, refreshed on a terminal.
    #[command(after_help = "Example:\n  segno top")]
    Top(Nothing),
    /// Check that a server can work: exit code 0 if it is ready and its store takes writes, 4 if
    /// the store has met damage, 1 otherwise. Needs no key.
    #[command(after_help = "Example:\n  segno health --server http://127.0.0.1:7070")]
    Health(Nothing),
}

/// Nothing but the server.
#[derive(Debug, Args)]
pub struct Nothing {
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}
