//! Segno as a service: HTTP API, workers' protocol, keys and tenants, metrics, live streams.
//!
//! | file | what |
//! |---|---|
//! | `server` | a server: put together, started, stopped |
//! | `preflight` | what is checked before a server touches its store |
//! | `settings` | what can be set, and where it came from |
//! | `routes` | the routes, one file per resource; `mod.rs` has the groups and what each needs |
//! | `access` | who may do what: keys, roles, grants, the guard |
//! | `scope`, `body_scope` | namespace and tenant of a request |
//! | `extract` | reading requests |
//! | `known_parameters` | which query parameters and preconditions each operation takes |
//! | `operation` | what a request performs: its deadline, and whether it may have changed something |
//! | `detached` | requests that change something end, whether or not their caller waits |
//! | `problem` | answers that are not a success |
//! | `idempotency` | a request that is sent again |
//! | `incarnation` | which processes are alive |
//! | `audit` | who changed what |
//! | `archiving` | what a node does for the archive |
//! | `audit_archive`, `batch_archive` | how entries of the audit log and batches get into the archive |
//! | `bus` | the message bus of the settings |
//! | `refused` | refused requests in the audit log, within bounds |
//! | `bucket` | so many requests a second |
//! | `open_requests` | how many live streams and long polls are open, and whose |
//! | `events` | what happens to instances, for callers who listen |
//! | `stats` | time series of tenants: counted on each node, summed over all |
//! | `objects` | object stores of the ledger and the archive: opened, and probed before anything relies on them |
//! | `readiness` | whether the store takes writes |
//! | `request_id` | an id for every request |
//! | `telemetry`, `http_metrics` | what is measured, and the recorder behind `/metrics` |
//! | `trace` | a span for every request, and the trace that instances go on with |
//! | `listen` | connections, TLS, time limits |
//! | `app` | what every route needs, and the ways from routes to data: `Tenant`, `System`, `Keys`, `Ingress` |
//! | `work` | work for workers elsewhere: leases, long polls, presence, pushing |
//! | `sql` | queries of runbooks on PostgreSQL |
//! | `ui` | the web UI at every path that is not the API's |
//! | `views` | views of the runbooks' tables, on PostgreSQL |
//! | `samples` | what `segno dev` has to play with |
//!
//! **Invariants.** Deny by default: only the public group of routes has no guard. A tenant's routes reach
//! data through `Tenant` alone, so no id of one tenant can name a thing of another. An answer leaves when what it says is on the disk.

mod access;
mod app;
mod archiving;
mod audit;
mod audit_archive;
mod batch_archive;
mod body_scope;
mod bucket;
mod bus;
mod detached;
mod disk;
mod events;
mod extract;
mod http_metrics;
mod idempotency;
mod incarnation;
mod known_parameters;
mod listen;
mod nodes;
mod objects;
mod open_requests;
mod operation;
mod preflight;
mod problem;
mod readiness;
mod refused;
mod request_id;
mod routes;
mod same_json;
pub mod samples;
mod scope;
mod server;
pub mod settings;
mod sql;
mod stats;
pub mod telemetry;
mod trace;
mod ui;
mod views;
mod work;

pub use access::{KeyStore, NewKey, REVOKED_WITHIN};
pub use listen::bind;
pub use objects::{ProbedPlace, probe_objects};
pub use preflight::{WithoutKeys, check_paths, check_start};
pub use problem::{Code, Refusal};
pub use segno_actions::functions::{FunctionsBuilder, HumanDuration};
pub use segno_actions::hooks::{Verification, signed_headers};
pub use segno_actions::schedule;
pub use server::{Server, ServerBuilder, ServerError};
pub use trace::CurrentTrace;
