//! The object store below the ledger: where things lie, and calls whose outcome is known when they
//! return.
//!
//! | file | what it has |
//! |---|---|
//! | `paths.rs` | the path of every kind of object of a scope |
//! | `stores.rs` | the two stores of a ledger: for the log, and for what is folded |
//! | `location.rs` | where a store is, as text |
//! | `bucket.rs` | clients of buckets: options, and credentials of the environment |
//! | `probe.rs` | a probe of the stores before anything relies on them |
//! | `access.rs` | get, put if absent, put over, delete, list: with limits, retries, and read-back after time-outs |
//! | `error.rs` | the error, by what the caller can do about it |
//! | `limits.rs` | every limit |

mod access;
mod bucket;
#[cfg(test)]
mod conformance_tests;
mod error;
#[cfg(test)]
pub(crate) mod faulty;
pub mod limits;
mod location;
mod paths;
mod probe;
mod stores;
#[cfg(test)]
pub(crate) mod testing;

pub use access::{Listed, Objects, Put};
pub use error::StorageError;
pub use location::Location;
pub use paths::Paths;
pub use probe::{Duty, PROBES, Probe, Usage};
pub use stores::Stores;
