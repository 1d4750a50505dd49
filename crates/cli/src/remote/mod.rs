//! All that talks to a server, one file per verb.

pub mod arguments;
mod bulk;
mod functions;
mod health;
mod history;
mod hook;
mod invoke;
mod list;
mod profiles;
mod show;
pub mod start;
mod steer;
mod tail;
mod timeline;
mod top;
mod wait;

use arguments::RemoteCommand;

use crate::arguments::Format;
use crate::exit::Failure;

/// Does what was asked.
pub async fn run(command: RemoteCommand, format: Format) -> Result<(), Failure> {
    match command {
        RemoteCommand::Start(arguments) => start::run(arguments, format).await,
        RemoteCommand::List(arguments) => list::run(arguments, format).await,
        RemoteCommand::Show(arguments) => show::run(arguments, format).await,
        RemoteCommand::History(arguments) => history::run(arguments, format).await,
        RemoteCommand::Wait(arguments) => wait::run(arguments, format).await,
        RemoteCommand::Tail(arguments) => tail::run(arguments, format).await,
        RemoteCommand::Signal(arguments) => steer::signal(arguments, format).await,
        RemoteCommand::Enqueue(arguments) => steer::enqueue(arguments, format).await,
        RemoteCommand::Cancel(arguments) => steer::cancel(arguments, format).await,
        RemoteCommand::Pause(arguments) => steer::pause(arguments, format).await,
        RemoteCommand::Resume(arguments) => steer::resume(arguments, format).await,
        RemoteCommand::Restart(arguments) => steer::restart(arguments, format).await,
        RemoteCommand::Delete(arguments) => steer::delete(arguments, format).await,
        RemoteCommand::Bulk(arguments) => bulk::run(arguments, format).await,
        RemoteCommand::Invoke(arguments) => invoke::run(arguments, format).await,
        RemoteCommand::Functions(arguments) => functions::run(arguments, format).await,
        RemoteCommand::Hook(arguments) => hook::run(arguments, format).await,
        RemoteCommand::Workers(arguments) => functions::workers(arguments, format).await,
        RemoteCommand::Logs(arguments) => functions::logs(arguments, format).await,
        RemoteCommand::Queues(arguments) => top::queues(arguments, format).await,
        RemoteCommand::Top(arguments) => top::run(arguments, format).await,
        RemoteCommand::Health(arguments) => health::run(arguments, format).await,
    }
}
