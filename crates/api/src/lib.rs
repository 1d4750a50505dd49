//! What goes over the wire between Segno's server and its callers: one file per resource.
//!
//! | file | what |
//! |---|---|
//! | `json` | user data: JSON that is passed through untouched |
//! | `problem` | every answer that is not a success |
//! | `bulk` | one change for many instances |
//! | `bus` | messages of the built-in bus, and its dead letters |
//! | `instance`, `orchestration` | starting, reading, steering and listing instances; what can be started |
//! | `change` | what happens to instances, as it happens |
//! | `explain` | what an instance waits for |
//! | `history` | recorded events |
//! | `function` | functions, and what their tools wrote |
//! | `hook` | webhooks: routes, payloads, events |
//! | `invocation`, `call` | calls of functions, and how far one is |
//! | `action`, `recurring` | functions run once at a set time, or on a schedule |
//! | `dag`, `run`, `backfill`, `asset` | DAGs, their runs, runs over ranges of partitions, and partitions of assets |
//! | `callback` | the start, heartbeats and end of an attempt, reported with a task token |
//! | `work`, `worker`, `pool` | the workers' protocol, who speaks it, and pools of workers |
//! | `dead_letter` | what was given up, and the way back |
//! | `key` | API keys, roles and grants |
//! | `archive` | what retention has removed from the store |
//! | `audit` | who changed what |
//! | `client` | a client that speaks all of it |
//! | `session` | sessions of browsers, and who a caller is |
//! | `several` | filters that take one value or several |
//! | `saved` | views and queries that a tenant keeps under a name |
//! | `problems`, `stats` | what is wrong in a tenant now; what happened in it, by the minute |
//! | `counts`, `search`, `timer` | how many instances there are; search across kinds; what wakes up by itself |
//! | `sql` | read-only queries over live tables |
//! | `system` | the state of a node and of the store |
//! | `unreadable` | stored rows that cannot be read, in listings |
//!
//! **Invariants.** These types are the wire format and nothing else: they hold no logic, and no stored format depends on
//! them. Unknown fields in a request are refused. Times are RFC 3339 in UTC.

pub mod action;
pub mod archive;
pub mod asset;
pub mod audit;
pub mod automation;
pub mod backfill;
pub mod batch;
pub mod bulk;
pub mod bus;
pub mod call;
pub mod callback;
pub mod change;
pub mod client;
pub mod counts;
pub mod dag;
pub mod dead_letter;
pub mod explain;
pub mod function;
pub mod history;
pub mod hook;
pub mod instance;
pub mod invocation;
pub mod json;
pub mod key;
pub mod orchestration;
pub mod pool;
pub mod problem;
pub mod problems;
pub mod recurring;
pub mod run;
pub mod runbook;
pub mod saved;
pub mod search;
pub mod session;
pub mod several;
pub mod sql;
pub mod stats;
pub mod system;
pub mod timer;
pub mod unreadable;
pub mod work;
pub mod worker;

pub use client::{Client, ClientError};
pub use json::Json;
pub use problem::{FieldProblem, Problem};
pub use unreadable::Unreadable;
