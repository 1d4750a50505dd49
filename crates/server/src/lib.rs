//! Segno as a service: HTTP API, workers' protocol, keys and tenants, metrics, live streams.
//!
//! | file | what |
//! |---|---|
//! | `server` | a server: put together, started, stopped |
//! | `settings` | what can be set, and where it came from |
//! | `routes` | the routes, one file per resource; `mod.rs` has the groups and what each needs |
//! | `access` | who may do what: keys, roles, grants, the guard |
//! | `scope`, `body_scope` | namespace and tenant of a request |
//! | `extract` | reading requests |
//! | `problem` | answers that are not a success |
//! | `idempotency` | a request that is sent again |
//! | `audit` | who changed what |
//! | `bucket` | so many requests a second |
//! | `events` | what happens to instances, for callers who listen |
//! | `readiness` | whether the store takes writes |
//! | `request_id` | an id for every request |
//! | `trace` | a span for every request, and the trace that instances go on with |
//! | `listen` | connections, TLS, time limits |
//! | `app` | what every route needs |
//! | `work` | work for workers elsewhere: leases, long polls, presence, pushing |
//! | `samples` | what `segno dev` has to play with |
//!
//! **Invariants.** Deny by default: only the public group of routes has no guard. The store is reached through the caller's
//! scope, so no id of one tenant can name a thing of another. An answer leaves when what it says is on the disk.

mod access;
mod app;
mod audit;
mod body_scope;
mod bucket;
mod events;
mod extract;
mod idempotency;
mod listen;
mod problem;
mod readiness;
mod request_id;
mod routes;
pub mod samples;
mod scope;
mod server;
pub mod settings;
mod trace;
mod work;

pub use access::{KeyStore, NewKey, REVOKED_WITHIN};
pub use listen::bind;
pub use problem::{Code, Refusal};
pub use segno_actions::functions::{FunctionsBuilder, HumanDuration};
pub use segno_actions::hooks::{Verification, signed_headers};
pub use segno_actions::schedule;
pub use server::{Server, ServerBuilder, ServerError};
pub use trace::CurrentTrace;
