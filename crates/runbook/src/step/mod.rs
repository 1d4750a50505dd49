//! The one function that decides: rows and an input in, changed rows and effects out. No clock, no
//! store, no randomness.
//!
//! # Transitions of a piece of work
//! A transition whose guard does not hold changes nothing; the input is [`Verdict::Ignored`] and counted.
//!
//! | to | from | on | also sets |
//! |---|---|---|---|
//! | `dispatched` | `pending` | its turn has come, or its retry is due | `job_id`, `dispatched_at`, `call_state`, `check_at` |
//! | `succeeded` | `dispatched`, `polling` | result of the current job | `completed_at`, `result_json` |
//! | `polling` | `dispatched`, `polling` | `{complete: false}` of the current job, on a step with `poll` | `poll_started_at` if null, `last_polled_at` if null |
//! | `polling` (asked again) | `polling` without a call | poll interval elapsed | `job_id`, `poll_count` + 1, `last_polled_at` |
//! | `poll_timeout` | `polling` without a call | poll time-out elapsed | `completed_at` |
//! | `pending` (retry) | `dispatched`, `polling` | failure with retries left, or throttled | `retry_count` + 1, `retry_after`; clears `job_id` and the poll columns |
//! | `failed` | `dispatched`, `polling` | failure without retries left | `completed_at`, `error_message` |
//! | `failed` | `pending` | placeholders that cannot be resolved | `completed_at`, `error_message` |
//! | `rolled_back` | `failed`, `poll_timeout` | last step of its rollback succeeded | `rollback_state` |
//! | `cancelled` | `pending`, `dispatched`, `polling` | member failed, removed or cancelled; phase or batch given up | `completed_at` |
//! | `skipped` | all but `succeeded`, `rolled_back`, `cancelled` | request | `completed_at` |
//! | `pending` (again) | `failed`, `poll_timeout`, `rolled_back`, `cancelled`, … | member retried, resumed or returned | `retry_count` + 1, fresh `retry_limit` |
//!
//! # Transitions of phases, members and batches
//!
//! | row | to | from | when |
//! |---|---|---|---|
//! | phase | `dispatched` | `pending` | due, init ended, predecessors ended, steps created, approved, batch not paused |
//! | phase | `dispatched` | `completed`, `failed` | a late, returning or retried member has steps in it |
//! | phase | `completed`, `failed` | `dispatched` | no step is open, all rollbacks have ended, all waves are through |
//! | phase | `skipped`, `superseded`, `failed` | `pending`, `dispatched` | given up, and no step is open |
//! | member | `failed` | `active` | a step failed for good |
//! | member | `removed` | `active`, `failed`, `cancelled` | the source no longer has it |
//! | member | `active` | `removed`, `failed`, `cancelled` | returned, retried, resumed |
//! | batch | `init_dispatched` | `detected`, `active` | sealed (manual: advanced) with init steps; a version that reruns init |
//! | batch | `active` | `detected`, `init_dispatched`, `failed`, `completed` | init ended; failed members are retried |
//! | batch | `completed`, `failed` | `active` | all phases ended, nothing open |
//! | batch | `failed`, `cancelled` | all but terminal | init failed, stopped, cancelled; open work has ended |
//!
//! # How it is made
//! An input changes rows; then `settle.rs` draws the consequences from the counters of phases and
//! batch until nothing changes. So consequences depend on the state, not on which message came
//! last, and none can be lost. Work over many members advances by cursors in the rows: [`next_part`] tells
//! whether there is any, and [`Input::Continue`] does a bounded part of it.
//!
//! | file | what |
//! |---|---|
//! | `turn.rs` | one input being applied: rows, effects, definitions, variables |
//! | `effect.rs` | what is to be done outside: jobs, announcements, notices |
//! | `wants.rs` | which rows an input needs |
//! | `settle.rs` | consequences, until nothing changes |
//! | `attempt.rs` | one attempt of a piece of work: sent, polled, ended |
//! | `dispatch.rs` | sending: job ids, placeholders, what holds steps back |
//! | `result.rs`, `call.rs`, `timer.rs` | results; calls that were looked after; rows that are due |
//! | `failure.rs` | retry, or the end of a member |
//! | `init.rs`, `phase.rs`, `barrier.rs` | init steps; phases from pending to ended; indexes and waves |
//! | `sweep.rs` | work over many members, part by part |
//! | `progress.rs` | which step of a member is next |
//! | `rollback.rs`, `removal.rs` | steps that undo a failed step; steps for a member that has left |
//! | `members.rs`, `revive.rs` | members that come, change, leave; members that take part again |
//! | `batch.rs`, `version.rs`, `event.rs` | creation and end; a new version; messages of the bus |
//! | `request.rs`, `refusal.rs` | requests; why one is refused |
//! | `explain.rs`, `explain_member.rs` | why a row waits, what will wake it, when; the same of a member |
//! | `template.rs`, `limits.rs` | placeholders; limits |

mod attempt;
mod barrier;
mod batch;
mod call;
mod dispatch;
mod effect;
mod event;
mod explain;
mod explain_member;
mod failure;
mod init;
pub mod limits;
mod members;
mod phase;
mod progress;
mod refusal;
mod removal;
mod request;
mod result;
mod revive;
mod rollback;
mod settle;
mod sweep;
mod template;
mod timer;
mod turn;
mod version;
mod wants;

pub use effect::{CancelJob, Dispatch, Effect, Effects, Event, IgnoredReason, LookAfter, Notice, Verdict};
pub use explain::{Explanation, Releaser, explain, releaser};
pub use sweep::{Part, next_part};
pub use template::{Resolved, StepTemplates, Templates, Unresolved};
pub use wants::wants;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use segno_actions::schedule::Zones;

use crate::definition::Definition;
use crate::message::Message;
use crate::rows::{Missing, RowKey, Rows};
use turn::Turn;

/// What a decision depends on besides the rows.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time.
    pub now: Timestamp,
    /// The batch's runbook, by version.
    pub definitions: &'a BTreeMap<u32, Arc<Definition>>,
    /// How placeholders are resolved.
    pub templates: &'a dyn Templates,
    /// Time zones, for blackouts.
    pub zones: &'a Zones,
    /// Most rows that one part of cursor work reads.
    pub rows_per_part: u32,
    /// Seconds that a call may be without a lease.
    pub dispatch_timeout_sec: u64,
}

/// Something that happened to a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A message of its inbox.
    Message(Message),
    /// A row is due.
    Due(RowKey),
    /// Cursor work goes on.
    Continue,
}

/// Applies an input to the rows of a batch.
///
/// # Errors
/// When rows, ids or definitions are not loaded. Nothing has changed then; load them and call again.
pub fn step(rows: &mut Rows, input: &Input, context: &Context<'_>) -> Result<Effects, Missing> {
    rows.begin();
    let mut turn = Turn::new(rows, context);
    match turn.apply(input) {
        Ok(verdict) => Ok(turn.into_effects(verdict)),
        Err(missing) => {
            rows.undo();
            Err(missing)
        }
    }
}

#[cfg(test)]
mod tests;
