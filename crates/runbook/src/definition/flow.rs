//! Phases and what governs how members go through them.

use segno_actions::schedule::Exclusion;

use super::step::StepDefinition;

/// A stretch of work that is due at a time relative to the batch's start.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Unique within the runbook, compared case-insensitively.
    pub name: String,
    /// Minutes before the batch's start at which it is due; seconds are rounded up.
    pub offset_minutes: u64,
    /// Its steps, in order; at least one.
    pub steps: Vec<StepDefinition>,
    /// Percentage of members that must succeed for the phase to be completed; 100 unless set.
    pub success_threshold: u8,
    /// Most members with a step in progress at once; `None` is no limit.
    pub max_parallel: Option<u32>,
    /// Groups of members, one after the other, the last of 100 percent; empty is one group of all.
    pub waves: Vec<Wave>,
    /// Failed members with which no further step of the phase is released.
    pub error_budget: Option<ErrorBudget>,
    /// Whether a person must approve before the phase begins.
    pub approval: Option<Approval>,
}

/// Failed members with which a phase stops; at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorBudget {
    /// A number of members.
    Members(u32),
    /// A percentage of the batch's members.
    Percent(u8),
}

/// A group of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wave {
    /// Percentage of the batch's members, cumulative: 5, 25, 100.
    pub percent: u8,
    /// How long to wait after the wave has ended before the next one begins.
    pub pause_sec: u64,
}

/// A decision by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// What the approver is told.
    pub message: Option<String>,
    /// How long to wait for it; then the phase fails. `None` waits for good.
    pub timeout_sec: Option<u64>,
}

/// How members of a batch relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Members {
    /// Step index i+1 begins when all steps of index i are terminal and their rollbacks have ended.
    #[default]
    Barrier,
    /// Each member goes on by itself.
    Independent,
}

/// What a failed phase does to the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPhaseFailure {
    /// Later phases run for the members that have not failed.
    #[default]
    Continue,
    /// The batch is paused until a person resumes it.
    Pause,
    /// The batch ends as failed, later phases are skipped.
    Stop,
}

/// A window of local time in which no step is dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blackout {
    /// Days on which the window begins; empty is every day.
    pub days: Vec<Exclusion>,
    /// Seconds since midnight at which it begins.
    pub from_sec: u32,
    /// Seconds since midnight at which it ends; at or before `from_sec` it ends on the next day.
    pub to_sec: u32,
    /// Time zone of all of them, a name of the IANA database.
    pub timezone: String,
}
