//! JSON Schemas of inputs. The validator bounds neither its steps nor its recursion, so both are bounded here: a
//! declaration is checked before it is compiled (`declaration`, `graph`), an evaluation is counted before it is made
//! (`cost`), and both run on threads with a stated stack (`threads`) that tenants share fairly (`fair_queue`). Compiled
//! schemas are kept (`cache`) within what they take at worst (`footprint`). See ADR 0024.

mod cache;
mod cost;
mod declaration;
mod fair_queue;
mod footprint;
mod graph;
mod input;
mod pattern;
mod references;
pub(super) mod threads;

pub(super) use cache::SchemaCache;
pub(super) use input::Unchecked;
pub use input::{InputSchema, Violation};
