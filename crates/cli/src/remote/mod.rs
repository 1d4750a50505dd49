//! All that talks to a server, one file per verb.

mod administration;
mod archive;
pub mod arguments;
mod audit;
mod batch;
mod batch_matrix;
mod batch_report;
mod batch_watch;
mod bulk;
mod bus;
mod call;
pub mod connection;
mod count;
mod dead_letters;
mod executions;
mod explain;
mod following;
pub mod functions;
mod health;
pub(crate) mod history;
mod hook;
mod invoke;
mod list;
mod member;
mod nodes;
mod pool;
mod problems;
mod profiles;
mod saved;
mod search;
mod sessions;
mod show;
mod sql;
pub mod start;
mod stats;
mod steer;
mod tail;
mod timeline;
mod timers;
mod top;
mod tree;
mod wait;

use arguments::RemoteCommand;

use crate::exit::Failure;
use crate::output::Output;

/// Does what was asked.
pub async fn run(command: RemoteCommand, output: &Output) -> Result<(), Failure> {
    match command {
        RemoteCommand::Start(arguments) => start::run(arguments, output).await,
        RemoteCommand::List(arguments) => list::run(arguments, output).await,
        RemoteCommand::Show(arguments) => show::run(arguments, output).await,
        RemoteCommand::Explain(arguments) => explain::run(arguments, output).await,
        RemoteCommand::History(arguments) => history::run(arguments, output).await,
        RemoteCommand::Wait(arguments) => wait::run(arguments, output).await,
        RemoteCommand::Tail(arguments) => tail::run(arguments, output).await,
        RemoteCommand::Signal(arguments) => steer::signal(arguments, output).await,
        RemoteCommand::Enqueue(arguments) => steer::enqueue(arguments, output).await,
        RemoteCommand::Cancel(arguments) => steer::cancel(arguments, output).await,
        RemoteCommand::Pause(arguments) => steer::pause(arguments, output).await,
        RemoteCommand::Resume(arguments) => steer::resume(arguments, output).await,
        RemoteCommand::Restart(arguments) => steer::restart(arguments, output).await,
        RemoteCommand::Retry(arguments) => steer::retry(arguments, output).await,
        RemoteCommand::Delete(arguments) => steer::delete(arguments, output).await,
        RemoteCommand::Bulk(arguments) => bulk::run(arguments, output).await,
        RemoteCommand::Invoke(arguments) => invoke::run(arguments, output).await,
        RemoteCommand::Functions(arguments) => functions::run(arguments, output).await,
        RemoteCommand::Hook(arguments) => hook::run(arguments, output).await,
        RemoteCommand::Pool(arguments) => pool::run(arguments, output).await,
        RemoteCommand::Batch(arguments) => batch::run(arguments, output).await,
        RemoteCommand::Member(arguments) => member::run(arguments, output).await,
        RemoteCommand::Tree(arguments) => tree::run(arguments, output).await,
        RemoteCommand::Executions(arguments) => executions::run(arguments, output).await,
        RemoteCommand::Archive(arguments) => archive::run(arguments, output).await,
        RemoteCommand::Audit(arguments) => audit::run(arguments, output).await,
        RemoteCommand::Bus(arguments) => bus::run(arguments, output).await,
        RemoteCommand::DeadLetters(arguments) => dead_letters::run(arguments, output).await,
        RemoteCommand::Saved(arguments) => saved::run(arguments, output).await,
        RemoteCommand::Workers(arguments) => functions::workers(arguments, output).await,
        RemoteCommand::Logs(arguments) => functions::logs(arguments, output).await,
        RemoteCommand::Problems(arguments) => problems::run(arguments, output).await,
        RemoteCommand::Stats(arguments) => stats::run(arguments, output).await,
        RemoteCommand::Count(arguments) => count::run(arguments, output).await,
        RemoteCommand::Search(arguments) => search::run(arguments, output).await,
        RemoteCommand::Timers(arguments) => timers::run(arguments, output).await,
        RemoteCommand::Settings(arguments) => administration::settings(arguments, output).await,
        RemoteCommand::Usage(arguments) => administration::usage(arguments, output).await,
        RemoteCommand::Nodes(arguments) => nodes::run(arguments, output).await,
        RemoteCommand::Sessions(arguments) => sessions::run(arguments, output).await,
        RemoteCommand::Queues(arguments) => top::queues(arguments, output).await,
        RemoteCommand::Top(arguments) => top::run(arguments, output).await,
        RemoteCommand::Sql(arguments) => sql::run(arguments, output).await,
        RemoteCommand::Health(arguments) => health::run(arguments, output).await,
    }
}
