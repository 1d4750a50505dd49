//! The command line of Segno, as a library: [`Program`] is the whole of it, and the binary `segno` is a `main` that calls it. A program of
//! your own that calls it has your orchestrations and functions in its servers, and every verb besides.
//!
//! | file | what |
//! |---|---|
//! | `program` | the program: what it runs, and what it is called |
//! | `arguments` | what can be said |
//! | `serve` | `segno dev` and `segno serve` |
//! | `config` | `segno config …` |
//! | `first_key` | handing over the key of the first administrator |
//! | `keys` | `segno keys …` |
//! | `action` | `segno action …` |
//! | `recurring` | `segno recurring …`, one file per verb |
//! | `runbook` | `segno runbook …`, one file per verb |
//! | `dag`, `run`, `backfill`, `asset` | `segno dag …`, `segno run …` and `segno task …`, `segno backfill …`, `segno asset …` |
//! | `documents` | files that users write, read up to a limit, and their problems |
//! | `remote` | all that talks to a server, one file per verb |
//! | `selftest` | `segno selftest`: does this disk keep its word |
//! | `ledger` | `segno ledger check` |
//! | `store` | `segno store …`, one file per verb |
//! | `version` | `segno version` |
//! | `invocation` | the arguments of the process: flags at any place, and mistakes in them |
//! | `moment` | times and durations of flags: `now+10m`, `30s` |
//! | `notify` | tells the service manager that a server is ready or stops |
//! | `file_size_limit` | a file that may not grow is an error and not the end of the process |
//! | `log` | what is logged, for people or for programs |
//! | `traces` | where spans go |
//! | `otlp` | spans to a collector (feature `otlp`) |
//! | `output` | what is printed: tables for people, JSON and YAML for programs, one file per part |
//! | `wording` | what a server says, in the words of the command line |
//! | `progress` | how far something is: a bar on a terminal, lines elsewhere |
//! | `exit` | how a command fails: exit codes and reports |
//! | `code` | the codes of failures that are found without a server |
//!
//! Data goes to stdout, everything else to stderr.

mod action;
mod arguments;
mod asset;
mod backfill;
mod code;
mod config;
mod dag;
mod demo;
mod documents;
mod exit;
mod file_size_limit;
mod first_key;
mod invocation;
mod keys;
mod ledger;
mod log;
mod log_throttle;
mod moment;
mod notify;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod program;
mod progress;
mod recurring;
mod remote;
mod run;
mod runbook;
mod selftest;
mod serve;
mod store;
mod traces;
mod version;
mod wording;

pub use program::Program;
