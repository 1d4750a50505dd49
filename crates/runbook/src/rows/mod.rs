//! What is stored about a batch: one record for each row, as JSON with the columns of the seed's tables.
//!
//! A column that is null is left out. Columns and values beyond the seed:
//!
//! | table | added columns | added values |
//! |---|---|---|
//! | `batches` | `runbook_name`, `runbook_version`, `is_manual`, `is_sealed`, `completed_at`, `error_message`, `paused_at`, `pause_reason`, `blackout_until`, `ending`, `members`, `member_blocks`, `member_counts`, `worker_data`, `rollback_of`, `rollback_runs`, `retry_cursor`, `list_cursor`, `parts` | `cancelled` |
//! | `batch_members` | `ordinal`, `data`, `worker_data`, `failed_at`, `_first_seen_at`, `_last_seen_at`, `_is_current`, `rollback_of`, `rollback_runs`, `removal_state`, `removal_runs`, `removal_steps`, `removal_error`, `is_returning` | `failed`, `cancelled` |
//! | `phase_executions` | `position`, `steps`, `reason`, `wake_at`, `ending`, `preparing_at`, `created`, `created_before`, `is_closed`, `step_blocks`, `groups`, `wave`, `wave_at`, `released`, `release_cursor`, `cancel_cursor`, `step_counts`, `members_succeeded`, `members_failed`, `places_taken`, `approval_requested_at`, `approved_at`, `approved_by`, `stopped_at`, `budget_base` | `superseded` |
//! | `step_executions`, `init_executions` | `retry_count`, `retry_limit`, `retry_interval_sec`, `retry_after`, `call_state`, `unleased_since`, `check_at`, `rollback_state`, `rollback_run`, `rollback_error` | `skipped` |
//! | `rollback_executions`, `removal_executions`, `member_keys` | the whole table | |
//!
//! | file | what |
//! |---|---|
//! | `batch.rs`, `member.rs`, `phase.rs`, `step.rs`, `init.rs`, `rollback.rs`, `removal.rs` | one table each |
//! | `work.rs` | the columns that steps of all kinds share |
//! | `status.rs`, `ids.rs`, `numbering.rs` | states; ids; their arithmetic |
//! | `state.rs` | the state of a row as it is announced |
//! | `key.rs` | keys of rows, and rows of any table |
//! | `loaded.rs` | the rows that a part of work has in memory, with undo |
//!
//! **Invariants.** Counters of a phase change in [`PhaseRow::count`] only, those of a batch where a
//! member is written. A row has at most one wake-up, its earliest.

mod batch;
mod ids;
mod init;
mod key;
mod loaded;
mod member;
mod numbering;
mod phase;
mod removal;
mod rollback;
mod state;
mod status;
mod step;
mod work;

pub use batch::{BatchRow, ListCursor, MemberCounts, RetryCursor, RetryFrom};
pub use ids::{BatchId, InitId, MemberId, PhaseId, RunbookId, StepId};
pub use init::InitRow;
pub use key::{Row, RowKey, Table, WorkKey};
pub use loaded::{Changes, Ids, Missing, Rows, Want};
pub use member::{MemberKeyRow, MemberRow, normal_key};
pub use numbering::{BLOCK_ORDINALS, Blocks, Ordinal, Place, block_end, block_ids};
pub use phase::{Group, PhaseEnding, PhaseReason, PhaseRow, ReleaseCursor, StepCounts};
pub use removal::RemovalRow;
pub use rollback::{Origin, RollbackRow};
pub use state::{PhaseHeld, RowState};
pub use status::{BatchStatus, MemberStatus, PhaseStatus, SequenceState, WorkStatus};
pub use step::StepRow;
pub use work::{CallState, Work};
pub(crate) use work::{earlier, later};

#[cfg(test)]
mod golden_tests;
