//! Manifests: which files are the tables. A manifest is immutable and numbered; writing the next
//! number if it is absent is the compare-and-swap that makes a fold visible.
//!
//! | file | what it has |
//! |---|---|
//! | `model.rs` | the stored form: manifests, files, pieces, deltas |
//! | `parts.rs` | what does not change with every fold lies in objects of its own: the base, and a list of day partitions per month |
//! | `publish.rs` | finding the newest manifest, and publishing the next one under an epoch |
//! | `limits.rs` | every limit |
//!
//! **Invariant:** a file that manifest `n` does not name, and whose own number is at most `n`, is
//! never named again.

mod catalog;
pub mod limits;
mod model;
mod parts;
mod publish;
#[cfg(test)]
mod tests;

pub(crate) use catalog::month_of;
pub use catalog::{Catalog, Group, Place};
pub use model::{
    BaseSnapshot, Delta, EventRange, FileRef, L0Limits, LogState, Manifest, Part, Piece, SCHEMA_VERSION,
    Watermarks,
};
pub use parts::{Base, History, Month, MonthRef};
pub(crate) use publish::sha256;
pub use publish::{Manifests, Outcome};
