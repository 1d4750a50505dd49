//! DAGs as users write them, and the plans of their runs. Everything here is pure: texts, times and outputs come in;
//! definitions, keys and planned tasks go out.
//!
//! | module | what it has |
//! |---|---|
//! | [`definition`] | a published DAG |
//! | [`yaml`] | DAGs as they are written: parsing and validation |
//! | `builder.rs` | DAGs built in Rust |
//! | [`graph`], [`sketch`] | topological order, depth, critical path; a drawing for terminals |
//! | [`partition`] | keys of partitions, ranges and mappings |
//! | `selection.rs` | some tasks of a DAG |
//! | `compile.rs` | the plan of a run: `PlanCreated` tasks with an id that follows from their content |
//! | [`input`] | inputs of planned tasks, resolved as far as they can be |
//! | `dispatch.rs` | the input of a task that is ready, and the tasks that a list adds |
//! | [`rehearsal`] | plans run without a server, with stubs for functions |
//! | [`names`], [`limits`] | which names are allowed; every limit |

mod builder;
mod compile;
pub mod definition;
mod dispatch;
mod error;
pub mod graph;
pub mod input;
pub mod limits;
pub mod names;
pub mod partition;
pub mod rehearsal;
mod selection;
pub mod sketch;
pub mod yaml;

pub use builder::{DagBuilder, Function, Orchestration, TaskBuilder};
pub use compile::{OtherOutputs, Plan, RunRequest};
pub use definition::Dag;
pub use dispatch::{ExpandError, expand, expanded_key, resolve_input};
pub use error::{INVALID_RUN, PlanError};
pub use input::{InputError, PlannedInput, RunNames};
pub use names::NameKind;
pub use selection::Selection;
pub use yaml::{INVALID_DAG, InvalidDag, Parsed, parse};
