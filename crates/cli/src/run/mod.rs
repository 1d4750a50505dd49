//! `segno run …` and `segno task …`: runs of DAGs and their tasks.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | what can be said |
//! | `start` | starting and repeating runs |
//! | `list`, `show` | looking at runs |
//! | `watch` | following a run until it ends |
//! | `steer` | cancel, pause, resume |
//! | `task` | tasks: their details, outputs, logs; clear and mark |
//! | `graph` | the graph of a DAG as text |

pub mod arguments;
pub mod graph;
mod list;
mod show;
mod start;
mod steer;
mod task;
mod watch;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{RunArguments, RunVerb};

pub use start::parameter;
pub use task::run as run_task;

/// Runs a verb of `segno run`.
pub async fn run(arguments: RunArguments, output: &Output) -> Result<(), Failure> {
    let client = &arguments.connection.client(output)?;
    match arguments.verb {
        RunVerb::Start(arguments) => start::start(client, arguments, output).await,
        RunVerb::Rerun(arguments) => start::rerun(client, arguments, output).await,
        RunVerb::List(arguments) => list::run(client, arguments, output).await,
        RunVerb::Show(run) => show::run(client, &run.id, output).await,
        RunVerb::Watch(run) => watch::run(client, &run.id, output).await,
        RunVerb::Cancel { run, reason } => steer::cancel(client, &run.id, reason, output).await,
        RunVerb::Pause(run) => steer::pause(client, &run.id, output).await,
        RunVerb::Resume(run) => steer::resume(client, &run.id, output).await,
    }
}
