//! The server over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod access;
mod actions;
mod administration;
mod archive;
mod archived_batches;
mod assets;
mod automation;
mod batch_live;
mod built_in;
mod bulk;
mod bus;
mod call_fairness;
mod callbacks;
mod calls;
mod changes;
mod connections;
mod cut_off;
mod dag_limits;
mod dags;
mod damage;
mod dead_letters;
mod doors;
mod examples;
mod exchange;
mod functions;
mod hang_up;
mod hooks;
mod hostile_json;
mod idempotency;
mod instances;
mod invocations;
mod lists;
mod load;
mod lookup;
mod metrics;
mod outcomes;
mod overview;
mod pools;
mod push;
mod recurring;
mod recurring_ends;
mod refusals;
mod requests;
mod retries;
mod revocation;
mod runbook_versions;
mod runbooks;
mod saved;
mod schema_fairness;
mod sessions;
mod sizes;
mod sql;
mod stand;
mod streams;
mod tenancy;
mod ui;
mod unreadable;
mod views;
mod waits;
mod work;
