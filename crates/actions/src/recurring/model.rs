//! A recurring action, as it is stored and shown.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use segno::Payload;
use serde::{Deserialize, Serialize};

use super::policy::RecurringPolicy;
use crate::functions::{Namespace, Scope, Tenant};
use crate::moment::due_ms;
use crate::schedule::{ScheduleSpec, jitter_of};
use crate::target::OrchestrationName;

/// What is called at each occurrence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecurringActionTemplate {
    /// The function; empty if an orchestration is started.
    pub provider: String,
    /// The orchestration that is started, in place of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<OrchestrationName>,
    /// What sort of action it is, for the function to tell apart. If it is empty, the function gets the payload as it is;
    /// else an object with the payload in it, as `docs/guide/actions.md` describes.
    pub action_type: String,
    /// Input of the function.
    pub payload: Payload,
    /// Labels that the function gets with each call.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// A text that stands for the call: a second call with the same text within the dedup window is suppressed.
    /// `{{recurring_id}}` and `{{execution_time}}` (the scheduled time) are expanded.
    #[serde(default)]
    pub dedup_key: Option<String>,
}

/// An occurrence whose call has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningOccurrence {
    /// Its scheduled time.
    pub time: Timestamp,
    /// The instance that runs it.
    pub instance: String,
    /// When it was started.
    pub started_at: Timestamp,
}

/// How far a recurring action is: what the next decision follows from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// The scheduled time up to which everything is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_until: Option<Timestamp>,
    /// The first occurrence before the next one that the calendar leaves out, until that is written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded: Option<Timestamp>,
    /// Occurrences whose calls have not ended. Only so many are remembered if runs may overlap.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningOccurrence>,
    /// An occurrence that waits for the end of another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffered: Option<Timestamp>,
    /// Occurrences in a row that were caught up with.
    pub caught_up: u32,
    /// When those that run are looked after, should their ends not have come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_at: Option<Timestamp>,
    /// The zone database that the next time was found with.
    pub zones: String,
}

/// Something to do again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecurringAction {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub namespace: Namespace,
    /// Whose it is.
    pub tenant: Tenant,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When: `cron_expr`, `timezone`, `ends_at` and so on.
    #[serde(flatten)]
    pub schedule: ScheduleSpec,
    /// Whether it fires. It does not when it is paused, and when it has come to its end.
    pub enabled: bool,
    /// What is called.
    pub action_template: RecurringActionTemplate,
    /// What happens when things do not go by the clock.
    #[serde(flatten)]
    pub policy: RecurringPolicy,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed by somebody.
    pub updated_at: Timestamp,
    /// When it last fired.
    pub last_executed_at: Option<Timestamp>,
    /// The next scheduled time; none while it is paused and when it has come to its end.
    pub next_execution_at: Option<Timestamp>,
    /// How often it has fired.
    pub execution_count: u64,
    /// How many of its calls have failed.
    #[serde(default)]
    pub failure_count: u64,
    /// How many of its calls have failed since one succeeded.
    #[serde(default)]
    pub consecutive_failures: u32,
    /// Why the last failure was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The instance of its last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_id: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Why somebody paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_note: Option<String>,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<Timestamp>,
    /// Why it does not fire any more, if nobody paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// For finding and sorting.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// How far it is.
    #[serde(default)]
    pub progress: Progress,
}

impl RecurringAction {
    /// Whose it is.
    pub fn scope(&self) -> Scope {
        Scope { namespace: self.namespace.clone(), tenant: self.tenant.clone() }
    }

    /// When an occurrence is fired: its scheduled time and its jitter.
    pub fn fires_at(&self, time: Timestamp) -> Timestamp {
        let Some(max) = self.policy.jitter else { return time };
        let jitter = SignedDuration::try_from(jitter_of(max.get(), &self.id, time)).unwrap_or_default();
        time.checked_add(jitter).unwrap_or(time)
    }

    /// When somebody has to look at it, in Unix milliseconds; never if nothing will happen by itself.
    pub(crate) fn due_at_ms(&self) -> Option<u64> {
        let progress = &self.progress;
        let waiting = progress.buffered.filter(|_| progress.running.is_empty());
        let by_time = match waiting.or(self.next_execution_at) {
            _ if !self.enabled => self.resumes_at,
            Some(time) => Some(self.fires_at(time)),
            // There is nothing more to come, which is to be written down.
            None if progress.buffered.is_none() => Some(Timestamp::UNIX_EPOCH),
            None => None,
        };
        let check = progress.check_at.filter(|_| !progress.running.is_empty());
        let excluded = progress.excluded.filter(|_| self.enabled);
        [by_time, check, excluded].into_iter().flatten().min().map(due_ms)
    }
}
