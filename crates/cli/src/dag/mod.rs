//! `segno dag …`: published DAGs.

pub mod arguments;
mod published;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{DagArguments, DagVerb};

/// Runs a verb.
pub async fn run(arguments: DagArguments, output: &Output) -> Result<(), Failure> {
    let client = || arguments.connection.client(output);
    match arguments.verb {
        DagVerb::Published(verb) => published::run(&client()?, verb, output).await,
    }
}
