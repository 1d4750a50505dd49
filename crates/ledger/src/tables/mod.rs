//! The tables that the fold produces: one file for each, plus what they have in common.
//!
//! `column.rs` has columns, cells and the values that fit them, `row.rs` the trait of rows, the
//! merge rule and the macro that derives a row from its columns, `all.rs` one field for each table
//! for code that treats all of them alike.

mod all;
mod backfill_chunks;
mod backfills;
mod column;
mod dep_satisfaction;
mod dispatch_outbox;
#[cfg(test)]
mod golden_tests;
mod idempotency_keys;
mod partition_status;
mod pools;
mod row;
mod run_key_conflicts;
mod run_key_index;
mod runs;
mod schedule_definitions;
mod schedule_state;
mod schedule_ticks;
mod sensor_evals;
mod sensor_state;
mod tasks;
mod timers;

pub use all::{Changes, Rows, TableChanges, VisitChanges, VisitRows, VisitTables, visit_tables};
pub use backfill_chunks::{BackfillChunkRow, ChunkState};
pub use backfills::{BackfillRow, BackfillState};
pub use column::{Cell, Column, Kind, UnexpectedCell, Value};
pub use dep_satisfaction::{DepRow, Resolution};
pub use dispatch_outbox::{OutboxRow, OutboxStatus};
pub use idempotency_keys::IdempotencyKeyRow;
pub use partition_status::PartitionRow;
pub use pools::PoolRow;
pub use row::{Row, merge_rows};
pub use run_key_conflicts::RunKeyConflictRow;
pub use run_key_index::RunKeyRow;
pub use runs::{RunRow, RunState};
pub use schedule_definitions::ScheduleDefinitionRow;
pub use schedule_state::ScheduleStateRow;
pub use schedule_ticks::ScheduleTickRow;
pub use sensor_evals::SensorEvalRow;
pub use sensor_state::SensorStateRow;
pub use tasks::{Completion, TaskRow, TaskState, TriggerRule};
pub use timers::{TimerRow, TimerState, TimerType};
