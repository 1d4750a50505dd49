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

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};
use exit::Failure;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let work = async {
        match arguments.command {
            Command::Store(arguments) => store::run(arguments).await,
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Arguments::command(), "segno", &mut io::stdout());
                Ok(())
            }
        }
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        // What was being made is dropped, and with it what it left on the disk.
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("segno: {failure}");
            ExitCode::from(failure.code())
        }
    }
}
