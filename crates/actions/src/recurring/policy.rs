//! What a recurring action does when things do not go by the clock.

use serde::{Deserialize, Serialize};

use crate::functions::HumanDuration;

/// How far back missed occurrences are caught up with, unless said otherwise.
const CATCH_UP_WINDOW: HumanDuration = HumanDuration::from_secs(60 * 60);

/// How many missed occurrences are caught up with, unless said otherwise.
const CATCH_UP_LIMIT: u32 = 100;

/// For how long a dedup key suppresses further calls, unless said otherwise.
const DEDUP_WINDOW: HumanDuration = HumanDuration::from_secs(24 * 60 * 60);

/// What becomes of an occurrence whose predecessor still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// Both run.
    #[default]
    #[serde(alias = "allow_all")]
    Allow,
    /// It does not run.
    Skip,
    /// It runs when the other has ended; more than one do not wait.
    BufferOne,
    /// The other is cancelled.
    CancelOther,
}

/// What becomes of occurrences while nobody was there to fire them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// They do not run.
    #[default]
    None,
    /// The last of them runs.
    Latest,
    /// They run, as many as `catch_up_window` and `catch_up_limit` allow.
    All,
}

/// What a recurring action does when things do not go by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecurringPolicy {
    /// When the run before has not ended.
    pub overlap_policy: OverlapPolicy,
    /// When nobody was there.
    pub missed: MissedPolicy,
    /// With `missed: all`: how far back.
    pub catch_up_window: HumanDuration,
    /// With `missed: all`: how many in a row.
    pub catch_up_limit: u32,
    /// Each occurrence is fired up to this much later, always by the same amount for the same occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<HumanDuration>,
    /// After so many executions it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_executions: Option<u64>,
    /// After so many failures in a row it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_after_failures: Option<u32>,
    /// For how long a dedup key suppresses further calls.
    pub dedup_window: HumanDuration,
}

impl Default for RecurringPolicy {
    fn default() -> Self {
        RecurringPolicy {
            overlap_policy: OverlapPolicy::default(),
            missed: MissedPolicy::default(),
            catch_up_window: CATCH_UP_WINDOW,
            catch_up_limit: CATCH_UP_LIMIT,
            jitter: None,
            max_executions: None,
            pause_after_failures: None,
            dedup_window: DEDUP_WINDOW,
        }
    }
}
