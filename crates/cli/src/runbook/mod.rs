//! `segno runbook …`: runbooks before they are published (`check`, `plan`; need no server), and published ones.

pub mod arguments;
mod automation;
mod check;
mod input;
mod moves;
mod plan;
mod published;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{RunbookArguments, RunbookVerb};
use segno_api::automation::SetAutomation;

/// Runs a verb.
pub async fn run(arguments: RunbookArguments, output: &Output) -> Result<(), Failure> {
    let client = || arguments.connection.client(output);
    match arguments.verb {
        RunbookVerb::Check(arguments) => check::run(&arguments, output),
        RunbookVerb::Plan(arguments) => plan::run(&arguments, output),
        RunbookVerb::Publish(arguments) => published::publish(&client()?, &arguments, output).await,
        RunbookVerb::Delete { name, version } => published::delete(&client()?, &name, version, output).await,
        RunbookVerb::List { paging } => published::list(&client()?, &paging, output).await,
        RunbookVerb::Enable { name } => {
            let switch = SetAutomation { enabled: true };
            automation::switch(&client()?, &name, switch, output).await
        }
        RunbookVerb::Disable { name } => {
            let switch = SetAutomation { enabled: false };
            automation::switch(&client()?, &name, switch, output).await
        }
        RunbookVerb::ApproveRemoval(removal) => automation::approve(&client()?, &removal, output).await,
        RunbookVerb::RejectRemoval(removal) => automation::reject(&client()?, &removal, output).await,
        RunbookVerb::Preview(arguments) => automation::preview(&client()?, &arguments, output).await,
        RunbookVerb::Show(arguments) => published::show(&client()?, arguments, output).await,
    }
}
