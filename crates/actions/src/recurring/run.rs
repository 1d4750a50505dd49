//! Running a recurring action out of schedule, because a caller says so.
//!
//! A run has a key. The record that says that a key was used is written in the commit that fires, and only if it is not there:
//! the same key is the same run, also when two callers are at it at once.

use std::time::Duration;

use jiff::Timestamp;
use segno::Code;
use segno::store::ErrorKind;
use serde::{Deserialize, Serialize};

use super::advance::later;
use super::book::{MAX_TRIES, RecurringActions, busy};
use super::decide::before;
use super::dispatch::Firing;
use super::history::{Decision, HistoryEntry};
use super::model::RecurringAction;
use super::plan::{Plan, is_stored};
use super::policy::OverlapPolicy;
use super::record::{RUN_KIND, decode_run, run_id, run_write};
use crate::action::ActionError;
use crate::functions::Scope;
use crate::telemetry;

/// Longest key of a run in bytes.
pub const MAX_RUN_KEY_BYTES: usize = 256;

/// What became of a run out of schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The time by which the history has it.
    pub time: Timestamp,
    /// Whether its call was started, suppressed by its dedup key, or could not be made.
    pub decision: Decision,
    /// Why it was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The instance of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// The answer to a wish to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAnswer {
    /// Id of the recurring action.
    pub recurring_id: String,
    /// Whether this wish made the run; false when its key had been used.
    pub is_new: bool,
    /// What became of it.
    pub run: Run,
}

impl RecurringActions {
    /// Runs a recurring action now, whether or not it is paused. The run counts as an execution and is in the history as a
    /// manual one; the schedule stays as it is.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` for a key that is none, `action-state` when another run is in the
    /// way or there may be no more executions.
    pub async fn run(&self, scope: &Scope, id: &str, key: &str) -> Result<RunAnswer, ActionError> {
        check_key(key)?;
        for _ in 0..MAX_TRIES {
            let stored = self.read(scope, id).await?;
            let (mut action, now) = (stored.action, self.now());
            let recurring_id = action.id.clone();
            let known = run_id(scope, &recurring_id, key);
            if let Some(record) = self.store.get_record(RUN_KIND, &known).await? {
                return Ok(RunAnswer { recurring_id, is_new: false, run: decode_run(&record)? });
            }
            self.check_run(&action).await?;
            let time = self.free_time(&action, now).await?;
            let (mut plan, was) = (Plan::default(), action.before());
            let cancels = action.policy.overlap_policy == OverlapPolicy::CancelOther;
            let firing = Firing { time, note: None, cancels, is_manual: true };
            let entry = self.dispatcher().fire(&mut action, firing, now, &mut plan).await?;
            plan.conclude(&*self.store, was, &action, now).await?;
            let ended: Vec<HistoryEntry> =
                plan.entries().filter(|entry| entry.decision == Decision::Disabled).cloned().collect();
            let run = Run {
                time,
                decision: entry.decision,
                detail: entry.detail.or(entry.reason.map(|reason| reason.as_str().to_owned())),
                instance: entry.instance,
            };
            let keep = self.options.keep_history;
            let mut batch = plan.into_batch(&action, stored.version, self.options.history())?;
            batch.writes.push(run_write(known, &run, keep)?);
            match self.store.commit_records(batch).await {
                Ok(_) => {
                    ended.iter().for_each(|entry| entry.tell(&action.id));
                    tell(&action.id, &run);
                    return Ok(RunAnswer { recurring_id, is_new: true, run });
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy(id))
    }

    /// Refuses a run that a policy does not allow.
    async fn check_run(&self, action: &RecurringAction) -> Result<(), ActionError> {
        let policy = &action.policy;
        if policy.max_executions.is_some_and(|most| action.execution_count >= most) {
            let problem = "max_executions is reached; raise it before you run the action".to_owned();
            return Err(ActionError::State { problem });
        }
        let name = match policy.overlap_policy {
            OverlapPolicy::Allow | OverlapPolicy::CancelOther => return Ok(()),
            OverlapPolicy::Skip => "skip",
            OverlapPolicy::BufferOne => "buffer_one",
        };
        for running in &action.progress.running {
            let has_ended = match self.client.instance(&running.instance).await {
                Ok(instance) => instance.has_ended(),
                Err(error) if error.code() == Code::NotFound => true,
                Err(error) => return Err(error.into()),
            };
            if !has_ended {
                let problem = format!(
                    "instance {} of it has not ended, and overlap_policy is {name}; wait for its end, cancel it, or set \
                     overlap_policy to allow",
                    running.instance
                );
                return Err(ActionError::State { problem });
            }
        }
        Ok(())
    }

    /// A time for a run: now, or the first millisecond after it that no entry of the history has or will have.
    async fn free_time(&self, action: &RecurringAction, now: Timestamp) -> Result<Timestamp, ActionError> {
        // One whose schedule cannot be read any more has no occurrences.
        let schedule = self.schedule_of(action).ok();
        let is_occurrence = |time: Timestamp| {
            let schedule = schedule.as_ref()?;
            schedule.next_after(before(time)).filter(|next| next.time == time)
        };
        let mut time = now;
        while is_occurrence(time).is_some() || is_stored(&*self.store, action, time).await? {
            time = later(time, Duration::from_millis(1));
        }
        Ok(time)
    }
}

fn check_key(key: &str) -> Result<(), ActionError> {
    let is_key = (1..=MAX_RUN_KEY_BYTES).contains(&key.len()) && !key.chars().any(char::is_control);
    match is_key {
        true => Ok(()),
        false => {
            let problem = format!("must be 1 to {MAX_RUN_KEY_BYTES} bytes without control characters");
            Err(ActionError::invalid("key", problem))
        }
    }
}

/// Counts and logs a run, once it is committed.
fn tell(recurring_id: &str, run: &Run) {
    match run.decision {
        Decision::Fired => {
            metrics::counter!(telemetry::RECURRING_DISPATCHED).increment(1);
            tracing::info!(recurring_id, time = %run.time, instance = run.instance, "recurring.run");
        }
        _ => tracing::warn!(recurring_id, time = %run.time, detail = run.detail, "recurring.run_refused"),
    }
}
