//! What an input leads to outside the rows. The driver commits effects together with the rows.

use jiff::Timestamp;

use crate::message::{CorrelationData, EventMessage};
use crate::rows::{
    BatchId, BatchStatus, MemberId, MemberStatus, Origin, PhaseId, PhaseReason, PhaseStatus, WorkKey,
};

/// A job to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// The row that it is for.
    pub work: WorkKey,
    /// Id of the attempt. Starting an id twice is starting it once.
    pub job_id: String,
    /// The batch.
    pub batch_id: BatchId,
    /// The worker pool.
    pub worker_id: String,
    /// The function.
    pub function_name: String,
    /// Its parameters as JSON text.
    pub params_json: String,
    /// What the worker returns with the result.
    pub correlation_data: CorrelationData,
    /// Seconds that the call may be without a lease.
    pub dispatch_timeout_sec: u64,
}

/// A job to cancel. Its result no longer counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelJob {
    /// The row that it was for.
    pub work: WorkKey,
    /// Id of the attempt.
    pub job_id: String,
    /// The worker pool.
    pub worker_id: String,
}

/// A call to look after. The driver answers with a `CallReport`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookAfter {
    /// The row that it is for.
    pub work: WorkKey,
    /// Id of the attempt.
    pub job_id: String,
    /// The worker pool.
    pub worker_id: String,
}

/// Something to announce on the bus and on the event stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A message of the seed.
    Bus(EventMessage),
    /// The batch has another state.
    Batch(BatchStatus),
    /// The batch was paused or resumed.
    Paused {
        /// Since when; none if it was resumed.
        since: Option<Timestamp>,
    },
    /// A phase has another state.
    Phase {
        /// The phase.
        phase: PhaseId,
        /// Its state.
        status: PhaseStatus,
        /// Why, if it failed or was left out.
        reason: Option<PhaseReason>,
    },
    /// A member has another state.
    Member {
        /// The member.
        member: MemberId,
        /// Its state.
        status: MemberStatus,
    },
    /// A rollback has failed; a person may retry it.
    RollbackFailed {
        /// The step that was to be rolled back.
        origin: Origin,
    },
    /// The removal steps of a member have failed; a person may retry them.
    RemovalFailed {
        /// The member.
        member: MemberId,
    },
}

/// Something that people have to know, by webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A phase waits for an approval.
    ApprovalWanted {
        /// The phase.
        phase: PhaseId,
        /// Its name.
        phase_name: String,
        /// What the approver has to know.
        message: Option<String>,
        /// When it is too late.
        deadline: Option<Timestamp>,
    },
    /// A phase has failed.
    PhaseFailed {
        /// The phase.
        phase: PhaseId,
        /// Its name.
        phase_name: String,
        /// Why.
        reason: PhaseReason,
        /// Members that failed in it.
        members_failed: u32,
    },
    /// The error budget of a phase is spent; no further step of it begins.
    BudgetSpent {
        /// The phase.
        phase: PhaseId,
        /// Its name.
        phase_name: String,
        /// Members that failed in it.
        members_failed: u32,
    },
}

/// One effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send a job.
    Dispatch(Dispatch),
    /// Cancel a job.
    CancelJob(CancelJob),
    /// Look after a call.
    LookAfter(LookAfter),
    /// Slow down a pool, because its worker reported that it was throttled.
    SlowDown {
        /// The worker pool.
        worker_id: String,
    },
    /// Announce something.
    Announce(Event),
    /// Tell people.
    Notify(Notice),
}

/// Why an input changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IgnoredReason {
    /// The row does not exist.
    Unknown,
    /// The row has ended, or is past the state that the input is about.
    Ended,
    /// It is about an earlier attempt or an earlier version.
    Stale,
    /// It was applied before.
    Duplicate,
    /// It came before its time.
    Early,
}

/// What became of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was applied.
    Applied,
    /// It changed nothing.
    Ignored(IgnoredReason),
    /// A request that cannot be fulfilled, with the reason for its sender.
    Refused(String),
    /// A request about a row that the batch does not have.
    NotFound(String),
    /// Part of it was applied. Keep the message and apply it again after the commit.
    Again,
}

/// What an input leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects {
    /// What became of the input.
    pub verdict: Verdict,
    /// What is to be done outside, in order.
    pub list: Vec<Effect>,
}
