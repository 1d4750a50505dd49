//! `segno dag …`: DAGs before they are published (`check`, `plan`, `test`; need no server), and published ones.

pub mod arguments;
mod check;
mod input;
mod plan;
mod published;
mod test;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{DagArguments, DagVerb};

/// Runs a verb.
pub async fn run(arguments: DagArguments, output: &Output) -> Result<(), Failure> {
    match arguments.verb {
        DagVerb::Check { file } => check::run(&file, output),
        DagVerb::Plan(arguments) => plan::run(&arguments, output),
        DagVerb::Test(arguments) => test::run(&arguments, output),
        DagVerb::Published(verb) => {
            let client = arguments.connection.client(output)?;
            published::run(&client, verb, output).await
        }
    }
}
