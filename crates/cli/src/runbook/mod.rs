//! `segno runbook …`: runbooks before they are published (`check`, `plan`; need no server), and published ones.

pub mod arguments;
mod check;
mod input;
mod plan;
mod published;

pub use input::read;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{RunbookArguments, RunbookVerb};

/// Runs a verb.
pub async fn run(arguments: RunbookArguments, output: &Output) -> Result<(), Failure> {
    let client = || arguments.connection.client(output);
    match arguments.verb {
        RunbookVerb::Check(arguments) => check::run(&arguments, output),
        RunbookVerb::Plan(arguments) => plan::run(&arguments, output),
        RunbookVerb::Publish(arguments) => published::publish(&client()?, &arguments, output).await,
        RunbookVerb::List { paging } => published::list(&client()?, &paging, output).await,
        RunbookVerb::Show(arguments) => published::show(&client()?, arguments, output).await,
    }
}
