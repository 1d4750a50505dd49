//! The binary from outside: servers as processes, commands as people type them. One binary of tests, which is linked once.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod actions;
mod batch;
mod batch_watch;
mod bell;
mod bulk;
mod bus;
mod clouds;
mod dag;
mod dag_runs;
mod damage;
mod failures;
#[cfg(target_os = "linux")]
mod full_disk;
mod guide;
mod kill_server;
mod ledger_backup;
mod operators;
#[cfg(feature = "otlp")]
mod otlp;
mod pipeline;
mod postgres;
mod printing;
mod process;
mod recurring;
mod recurring_nodes;
mod refusals;
mod restarts;
mod runbook;
mod server;
mod service;
mod snapshots;
mod store;
