//! Lineage: which assets there are, which tasks make and read them, what each is made of, and which run has made a partition.
//!
//! | file | what |
//! |---|---|
//! | `graph.rs` | the graph of the assets of published DAGs: pure |
//! | `assets.rs` | assets with what the tables know of them |
//! | `trace.rs` | upstream and downstream of one asset, and of one partition |
//! | `staleness.rs` | which partitions are stale, and why |
//!
//! **Invariant.** The graph follows from the active versions of DAGs, which are records. Of the tables only the partitions of the
//! assets in question are read, never runs or the log.

mod assets;
mod graph;
mod staleness;
mod trace;

pub(super) use assets::Graphs;
pub use assets::{AssetDetail, AssetState, Assets, LineagePage};
pub use graph::{AssetGraph, AssetNode, AssetTask, Edge, EdgeSource};
pub use staleness::{JudgedPartition, Stale, StaleReason};
pub use trace::{Direction, Trace, TraceQuery, TracedAsset};
