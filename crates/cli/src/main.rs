//! The command line of Segno: one binary, `segno`.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | what can be said |
//! | `store` | `segno store …`, one file per verb |
//! | `output` | what is printed: for people or as JSON |
//! | `progress` | how far something is: a bar on a terminal, lines elsewhere |
//! | `exit` | exit codes |
//!
//! Data goes to stdout, everything else to stderr.

mod arguments;
mod exit;
mod output;
mod progress;
mod store;

use std::panic::resume_unwind;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};
use exit::Failure;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // On a task of its own, so that Ctrl-C is heard whatever the work is busy with.
    let mut work = tokio::spawn(run(arguments));
    let outcome = tokio::select! {
        outcome = &mut work => outcome.unwrap_or_else(|error| resume_unwind(error.into_panic())),
        _ = tokio::signal::ctrl_c() => {
            // What was being made is dropped, and with it what it left on the disk. A second Ctrl-C does not wait for that.
            work.abort();
            tokio::select! {
                _ = &mut work => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            Err(Failure::Interrupted)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("segno: {failure}");
            // Not by returning: that would wait for work that cannot be dropped.
            std::process::exit(failure.code().into())
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Store(arguments) => store::run(arguments).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "segno", &mut script);
            output::write(&script)
        }
    }
}
