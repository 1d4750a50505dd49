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
    pub max_parallel: Option<MemberLimit>,
    /// Groups of members, one after the other, the last of 100 percent; empty is one group of all.
    pub waves: Vec<Wave>,
    /// Failed members with which no further step of the phase is released.
    pub error_budget: Option<MemberLimit>,
    /// Whether a person must approve before the phase begins.
    pub approval: Option<Approval>,
}

/// A number of members, absolute or as a share; at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberLimit {
    /// A number of members.
    Members(u32),
    /// A percentage of the members that take part in the phase.
    Percent(u8),
}

impl MemberLimit {
    /// The number, rounded up, of a phase with so many members.
    pub fn of(self, members: u32) -> u32 {
        let number = match self {
            MemberLimit::Members(number) => u64::from(number),
            MemberLimit::Percent(percent) => (u64::from(members) * u64::from(percent)).div_ceil(100),
        };
        u32::try_from(number).unwrap_or(u32::MAX).max(1)
    }
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
