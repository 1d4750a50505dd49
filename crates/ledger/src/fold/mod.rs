//! The fold: a pure function from events to the rows of all tables, kept in memory with indexes and
//! dirty flags.
//!
//! **Invariants.** Order is the order of event ids; the time of an event is the time inside its id.
//! A row changes only together with its `row_version`. An idempotency key is recorded only for an
//! event that was applied. The fold appends no events: what follows from events (ready, skipped,
//! run ended) exists in rows alone.
//!
//! | file | what it has |
//! |---|---|
//! | `apply.rs` | the order of events, their keys, and which rule handles which event |
//! | `state.rs`, `view.rs` | the state of a scope: loaded, changed, dumped; what readers and controllers ask of it |
//! | `rebuild.rs` | a run folded again from all of its events, because one of them came late |
//! | `live_run.rs` | a run as a graph with dirty flags; every change of a row goes through it |
//! | `shared.rs`, `table.rs` | what belongs to no run, and how changes are tracked there; what expires |
//! | `index.rs` | tasks by what they wait for |
//! | `runs.rs`, `tasks.rs`, `dep_satisfaction.rs`, `timers.rs`, `dispatch_outbox.rs` | the rules, by table |
//! | `schedules.rs`, `sensors.rs`, `run_keys.rs`, `backfills.rs`, `partition_status.rs`, `pools.rs` | the same for what belongs to no run |
//! | `run_slots.rs` | how many runs of a DAG are under way at a time |
//! | `plan.rs`, `correction.rs`, `trigger_rule.rs` | graphs and lists; clearing and marking; which ends let a task begin |

mod apply;
mod backfills;
mod correction;
mod dep_satisfaction;
mod dispatch_outbox;
mod index;
mod live_run;
mod moment;
mod partition_status;
mod plan;
mod pools;
mod rebuild;
mod run_keys;
mod run_slots;
mod runs;
mod schedules;
mod sensors;
mod shared;
mod state;
mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;
mod trigger_rule;
mod view;

pub(crate) use apply::run_of;
pub use apply::{FoldReport, fold};
pub(crate) use index::lost_at;
pub use index::{Due, TaskRef};
pub use rebuild::rebuild_run;
pub use run_slots::{NO_LIMIT, backfills_pool, runs_pool};
pub use shared::Scope;
pub use state::{ChangedRun, FailedRun, State};
pub use view::PoolReady;
