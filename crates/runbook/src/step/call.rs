//! Calls that were looked after: ended → take the outcome; missing → start again; leased → wait;
//! waiting for too long → cancel it and fail, with retry and rollback.

use super::effect::{IgnoredReason, Verdict};
use super::turn::{Step, Turn};
use crate::message::{CallReport, CallSeen, Outcome, PoolReport};
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
            CallSeen::Unsent => self.see_unsent(key)?,
        }
        Ok(Verdict::Applied)
    }

    /// A job was not sent. Its time without a lease counts; the pool is kept in mind, so that the
    /// job goes out as soon as the pool takes it.
    fn see_unsent(&mut self, key: WorkKey) -> Step<()> {
        let pool = self.rows.work(key)?.map(|work| work.worker_id.clone());
        if let Some(pool) = pool.filter(|pool| !self.batch().unsent_pools.contains(pool)) {
            self.batch_mut().unsent_pools.insert(pool);
        }
        self.see_no_lease(key)
    }

    /// A pool takes jobs again; the calls of the pool are looked after next.
    pub(super) fn take_pool_report(&mut self, report: &PoolReport) -> Verdict {
        if !self.batch().unsent_pools.contains(&report.worker_id) {
            return Verdict::Ignored(IgnoredReason::Duplicate);
        }
        self.batch_mut().unsent_pools.remove(&report.worker_id);
        Verdict::Applied
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
