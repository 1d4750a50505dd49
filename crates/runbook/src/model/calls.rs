//! Calls of workers and how they end.

use jiff::Timestamp;

use super::Model;
use crate::message::{CallReport, CallResult, CallSeen, Message, Outcome, WorkReference};
use crate::rows::{WorkKey, later};
use crate::step::{Dispatch, Effect, LookAfter};

/// How a worker answers a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// After so many seconds it returns a result.
    After(u64, Outcome),
    /// After so many seconds the call ends, but its result is lost on the way.
    Lost(u64, Outcome),
    /// After so many seconds it returns a result, also if it was told to stop.
    Deaf(u64, Outcome),
    /// No worker takes the job.
    Never,
    /// The call disappears, as if it had never been started. Its second start is answered at once.
    Vanish(Outcome),
}

/// How far a call has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallProgress {
    /// A worker has it.
    Leased,
    /// No worker has it.
    Waiting,
    /// It has ended.
    Ended,
    /// It was cancelled.
    Cancelled,
    /// It has disappeared.
    Gone,
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The row that it is for.
    pub work: WorkKey,
    /// How far it has got.
    pub progress: CallProgress,
    reply: Reply,
    ends_at: Option<Timestamp>,
}

impl Call {
    /// When something happens to it.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.ends_at
    }

    /// Whether a worker may be at it.
    pub fn is_open(&self) -> bool {
        matches!(self.progress, CallProgress::Leased | CallProgress::Waiting)
    }

    fn outcome(&self) -> Option<&Outcome> {
        match &self.reply {
            Reply::After(_, outcome)
            | Reply::Lost(_, outcome)
            | Reply::Deaf(_, outcome)
            | Reply::Vanish(outcome) => Some(outcome),
            Reply::Never => None,
        }
    }
}

impl Model {
    /// The calls, by job id.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &Call)> {
        self.calls.iter().map(|(id, call)| (id.as_str(), call))
    }

    pub(super) fn perform(&mut self, effect: &Effect) {
        match effect {
            Effect::Dispatch(dispatch) => self.start_call(dispatch),
            Effect::CancelJob(cancel) => {
                if let Some(call) = self.calls.get_mut(&cancel.job_id).filter(|call| call.is_open()) {
                    call.progress = CallProgress::Cancelled;
                    if !matches!(call.reply, Reply::Deaf(..)) {
                        call.ends_at = None;
                    }
                }
            }
            Effect::LookAfter(look) => self.report(look),
            Effect::SlowDown { .. } | Effect::Announce(_) | Effect::Notify(_) => {}
        }
    }

    /// Starting an id twice is starting it once, unless the call has disappeared.
    fn start_call(&mut self, dispatch: &Dispatch) {
        let is_again = match self.calls.get(&dispatch.job_id) {
            Some(call) if call.progress == CallProgress::Gone => true,
            Some(_) => return,
            None => false,
        };
        let reply = if is_again {
            let outcome = self.calls[&dispatch.job_id].outcome().cloned();
            Reply::After(1, outcome.unwrap_or(Outcome::InProgress))
        } else {
            (self.workers)(dispatch)
        };
        let (progress, after_sec) = match &reply {
            Reply::After(sec, _) | Reply::Lost(sec, _) | Reply::Deaf(sec, _) => {
                (CallProgress::Leased, Some(*sec))
            }
            Reply::Never => (CallProgress::Waiting, None),
            Reply::Vanish(_) => (CallProgress::Gone, None),
        };
        let ends_at = after_sec.map(|sec| later(self.now, sec));
        let call = Call { work: dispatch.work, progress, reply, ends_at };
        self.calls.insert(dispatch.job_id.clone(), call);
    }

    /// Ends the calls whose time has come.
    pub(super) fn end_calls(&mut self) {
        let now = self.now;
        let mut messages = Vec::new();
        for (job_id, call) in &mut self.calls {
            if call.ends_at.is_none_or(|at| at > now) {
                continue;
            }
            call.ends_at = None;
            if call.progress == CallProgress::Leased {
                call.progress = CallProgress::Ended;
            }
            if let (false, Some(outcome)) = (matches!(call.reply, Reply::Lost(..)), call.outcome()) {
                let work = WorkReference::of_job_id(job_id).expect("job ids name their rows");
                let result =
                    CallResult { job_id: job_id.clone(), work, outcome: outcome.clone(), pool: None };
                messages.push(Message::Result(result));
            }
        }
        self.inbox.extend(messages);
    }

    /// Answers what was found when a call was looked after.
    fn report(&mut self, look: &LookAfter) {
        let call = self.calls.get(&look.job_id);
        let seen = match call.map(|call| (call.progress, call.outcome())) {
            Some((CallProgress::Leased, _)) => CallSeen::Leased,
            Some((CallProgress::Waiting, _)) => CallSeen::Waiting,
            Some((CallProgress::Ended, Some(outcome))) => CallSeen::Ended { outcome: outcome.clone() },
            Some((CallProgress::Cancelled, _)) => {
                CallSeen::Ended { outcome: Outcome::failed("the call was cancelled") }
            }
            Some((CallProgress::Gone, _)) | Some((CallProgress::Ended, None)) | None => CallSeen::Missing,
        };
        let work = WorkReference::of_job_id(&look.job_id).expect("job ids name their rows");
        self.inbox.push_back(Message::Call(CallReport { job_id: look.job_id.clone(), work, seen }));
    }
}
