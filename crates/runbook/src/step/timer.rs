//! Rows that are due: a retry, a poll, a poll time-out, or a call that has to be looked after.

use super::effect::{Effect, IgnoredReason, LookAfter, Verdict};
use super::limits::LOOK_AGAIN_SEC;
use super::turn::{Step, Turn};
use crate::rows::{WorkKey, WorkStatus, later};

impl Turn<'_> {
    /// A piece of work is due. One that is not, or no longer, is left alone.
    pub(super) fn take_due(&mut self, key: WorkKey) -> Step<Verdict> {
        let now = self.now();
        let Some(work) = self.rows.work(key)? else {
            return Ok(Verdict::Ignored(IgnoredReason::Unknown));
        };
        if work.status.is_terminal() {
            return Ok(Verdict::Ignored(IgnoredReason::Ended));
        }
        if work.due_at().is_none_or(|due| due > now) {
            return Ok(Verdict::Ignored(IgnoredReason::Early));
        }
        match (work.status, work.is_called()) {
            (WorkStatus::Pending, _) => self.retry_due(key)?,
            (_, true) => self.look_after(key)?,
            _ => {
                let is_poll_due = work.next_poll_at().is_some_and(|at| at <= now);
                // As in the seed, polling has timed out once its deadline is in the past. Between
                // polls there is nothing to wait for, so then it ends at the deadline.
                let is_late = work.poll_deadline().is_some_and(|deadline| deadline < now);
                if is_poll_due && !is_late { self.dispatch_poll(key)? } else { self.poll_timeout(key)? }
            }
        }
        Ok(Verdict::Applied)
    }

    fn retry_due(&mut self, key: WorkKey) -> Step<()> {
        let phase = match key {
            WorkKey::Step(id) => self.rows.locate(id).map(|(phase, place)| (phase.id, place.ordinal)),
            _ => None,
        };
        let is_held = match (key, phase) {
            (WorkKey::Step(_), Some((phase, _))) => {
                self.is_batch_held()? || self.phase(phase).stopped_at.is_some()
            }
            (WorkKey::Init(_), _) => self.is_batch_held()?,
            _ => false,
        };
        if !is_held {
            return self.dispatch(key);
        }
        // It gives its place away and begins when nothing holds it back any more.
        if let Some(mut work) = self.rows.work(key)?.cloned() {
            work.retry_after = None;
            self.rows.put_work(key, work)?;
        }
        if let Some((phase, ordinal)) = phase {
            self.hold(phase, ordinal);
        }
        Ok(())
    }

    fn look_after(&mut self, key: WorkKey) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        if let Some(job_id) = work.job_id.clone() {
            let worker_id = work.worker_id.clone();
            self.emit(Effect::LookAfter(LookAfter { work: key, job_id, worker_id }));
        }
        // Should the report be lost, the call is looked after again.
        work.check_at = Some(later(self.now(), LOOK_AGAIN_SEC));
        self.rows.put_work(key, work)
    }

    fn poll_timeout(&mut self, key: WorkKey) -> Step<()> {
        let timeout_sec = self.rows.work(key)?.and_then(|work| work.poll_timeout_sec).unwrap_or_default();
        let message = format!("still in progress after {timeout_sec} s, the time-out of its polling");
        self.fail_for_good(key, WorkStatus::PollTimeout, &message)
    }
}
