//! Calls that were looked after: ended → take the outcome; missing → start again; leased → wait;
//! waiting for too long → cancel it and fail, with retry and rollback.

use super::effect::{IgnoredReason, Verdict};
use super::turn::{Step, Turn};
use crate::message::{CallReport, CallSeen, Outcome};
use crate::rows::WorkKey;

impl Turn<'_> {
    pub(super) fn take_report(&mut self, report: &CallReport) -> Step<Verdict> {
        let key = match self.current_work(report.work, &report.job_id)? {
            Ok(key) => key,
            Err(reason) => return Ok(Verdict::Ignored(reason)),
        };
        match &report.seen {
            CallSeen::Ended { outcome } => self.take_outcome(key, outcome)?,
            CallSeen::Missing => self.dispatch_again(key)?,
            CallSeen::Leased => {
                if let Some(mut work) = self.rows.work(key)?.cloned() {
                    work.see_lease(self.now(), self.context.dispatch_timeout_sec);
                    self.rows.put_work(key, work)?;
                }
            }
            CallSeen::Waiting => self.see_no_lease(key)?,
        }
        Ok(Verdict::Applied)
    }

    fn see_no_lease(&mut self, key: WorkKey) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        let is_too_long = work.see_no_lease(self.now(), self.context.dispatch_timeout_sec);
        self.rows.put_work(key, work)?;
        if is_too_long { self.dispatch_timeout(key) } else { Ok(()) }
    }

    /// No worker took a call in time: it is cancelled, and the attempt has failed.
    pub(super) fn dispatch_timeout(&mut self, key: WorkKey) -> Step<()> {
        let Some(work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        self.cancel_call(key, &work);
        let message = format!(
            "no worker of pool {:?} worked on {} for {} s, the dispatch time-out",
            work.worker_id,
            work.job_id.as_deref().unwrap_or("the job"),
            self.context.dispatch_timeout_sec
        );
        self.take_outcome(key, &Outcome::failed(message))
    }

    /// Whether a message of the bus about a dispatch time-out is about the current attempt.
    pub(super) fn take_dispatch_timeout(
        &mut self,
        key: WorkKey,
        dispatched_at: jiff::Timestamp,
    ) -> Step<Verdict> {
        let Some(work) = self.rows.work(key)? else {
            return Ok(Verdict::Ignored(IgnoredReason::Unknown));
        };
        if work.status.is_terminal() {
            return Ok(Verdict::Ignored(IgnoredReason::Ended));
        }
        if !work.is_called() || work.dispatched_at != Some(dispatched_at) {
            return Ok(Verdict::Ignored(IgnoredReason::Stale));
        }
        self.dispatch_timeout(key)?;
        Ok(Verdict::Applied)
    }
}
