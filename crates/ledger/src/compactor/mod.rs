//! The compactor of a scope: events in, files and a manifest out. One at a time; an epoch fences
//! the others.
//!
//! | file | what it has |
//! |---|---|
//! | `compactor.rs` | opening, taking over, what callers read |
//! | `step.rs` | one fold: fetch → decide (the projection) → publish |
//! | `publish.rs` | what a fold writes: deltas or a base, day partitions, joined events, the manifest |
//! | `archive.rs` | finished runs: out to day partitions, and back for late events |
//! | `history.rs` | all events of a run, or of the scope, from segments and batches |
//! | `plan.rs`, `merge.rs` | which pieces are merged, and merging them |
//! | `background.rs` | merges, deletions and the pointer copy, beside folding |
//! | `sweep.rs` | files that no manifest names |
//! | `change.rs`, `output.rs` | changes as cells, cells as files |
//! | `projection.rs` | what is folded into |
//! | `limits.rs` | every limit |
//!
//! **Invariants:** a manifest names only files that were written before it. A file is deleted only
//! after a manifest that does not name it was published and its grace period is over. State in
//! memory is what the newest manifest says; after any error it is read again.

mod archive;
mod background;
mod change;
#[expect(clippy::module_inception, reason = "the file is named by its noun")]
mod compactor;
mod history;
pub mod limits;
mod merge;
mod output;
mod plan;
mod projection;
mod publish;
mod retention;
mod step;
mod sweep;
#[cfg(test)]
mod tests;

pub use compactor::{Compactor, Options, Published, Setup};
pub use projection::Projection;
