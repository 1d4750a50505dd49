//! `segno dag …`: DAGs before they are published. Needs no server.

pub mod arguments;
mod check;
mod input;
mod plan;
mod test;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{DagArguments, DagVerb};

/// Runs a verb.
pub fn run(arguments: &DagArguments, output: &Output) -> Result<(), Failure> {
    match &arguments.verb {
        DagVerb::Check { file } => check::run(file, output),
        DagVerb::Plan(arguments) => plan::run(arguments, output),
        DagVerb::Test(arguments) => test::run(arguments, output),
    }
}
