//! The command line of Segno: one binary, `segno`.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | what can be said |
//! | `serve` | `segno dev` and `segno serve` |
//! | `config` | `segno config …` |
//! | `keys` | `segno keys …` |
//! | `action` | `segno action …` |
//! | `recurring` | `segno recurring …`, one file per verb |
//! | `remote` | all that talks to a server, one file per verb |
//! | `selftest` | `segno selftest`: does this disk keep its word |
//! | `store` | `segno store …`, one file per verb |
//! | `moment` | times as people say them: `now+10m` |
//! | `log` | what is logged, for people or for programs |
//! | `traces` | where spans go |
//! | `otlp` | spans to a collector (feature `otlp`) |
//! | `output` | what is printed: for people or as JSON |
//! | `progress` | how far something is: a bar on a terminal, lines elsewhere |
//! | `exit` | exit codes |
//!
//! Data goes to stdout, everything else to stderr.

mod action;
mod arguments;
mod config;
mod exit;
mod keys;
mod log;
mod moment;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod progress;
mod recurring;
mod remote;
mod selftest;
mod serve;
mod store;
mod traces;

use std::panic::resume_unwind;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command, Format};
use exit::Failure;

/// Turns are many small allocations, which this allocator serves about twice as fast.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if matches!(arguments.command, Command::Dev(_) | Command::Serve(_)) {
        // A server hears signals itself, and ends in order.
        return finished(run(arguments).await);
    }
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
    finished(outcome)
}

fn finished(outcome: Result<(), Failure>) -> ExitCode {
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
    let format = arguments.output;
    match arguments.command {
        Command::Dev(arguments) => serve::dev(arguments).await,
        Command::Serve(arguments) => serve::serve(arguments).await,
        Command::Config(arguments) => config::run(arguments, format),
        Command::Keys(arguments) => keys::run(arguments, format).await,
        Command::Action(arguments) => action::run(arguments, format).await,
        Command::Recurring(arguments) => recurring::run(arguments, format).await,
        Command::Remote(command) => remote::run(command, format).await,
        Command::Store(arguments) => store::run(arguments, format).await,
        Command::Selftest(arguments) => selftest::run(arguments, format).await,
        Command::Bench(arguments) => {
            let command = arguments.command;
            let command = if format == Format::Json { command.as_json() } else { command };
            segno_bench::run(&command).await.map_err(|error| Failure::Measuring(format!("{error:#}")))
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "segno", &mut script);
            output::write(&script)
        }
    }
}
