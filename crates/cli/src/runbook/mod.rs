//! `segno runbook …`: runbooks before they are published, one file per verb. Needs no server.

pub mod arguments;
mod check;
mod input;
mod plan;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{RunbookArguments, RunbookVerb};

/// Runs a verb.
pub fn run(arguments: RunbookArguments, output: &Output) -> Result<(), Failure> {
    match arguments.verb {
        RunbookVerb::Check(arguments) => check::run(&arguments, output),
        RunbookVerb::Plan(arguments) => plan::run(&arguments, output),
    }
}
