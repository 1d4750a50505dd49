//! Init steps: once for a batch, one after the other, before its phases.

use super::turn::{Step, Turn};
use crate::rows::{BatchStatus, InitId, InitRow, WorkKey, WorkStatus};

impl Turn<'_> {
    /// The init step whose turn it is, if it waits for it.
    pub(super) fn next_init(&self) -> Option<&InitRow> {
        let open = self.rows.inits().find(|init| init.work.status.is_open())?;
        (open.work.status == WorkStatus::Pending && open.work.retry_after.is_none()).then_some(open)
    }

    /// Sends the next init step, or ends init.
    pub(super) fn settle_init(&mut self) -> Step<bool> {
        if self.batch().status != BatchStatus::InitDispatched || self.batch().ending.is_some() {
            return Ok(false);
        }
        if self.rows.inits().all(|init| init.work.status.is_terminal()) {
            self.set_batch_status(BatchStatus::Active);
            return Ok(true);
        }
        let Some(next) = self.next_init().map(|init| init.id) else { return Ok(false) };
        if self.is_batch_held()? {
            return Ok(false);
        }
        self.dispatch(WorkKey::Init(next))?;
        Ok(true)
    }

    /// An init step has failed for good: the batch fails once its rollback has ended.
    pub(super) fn fail_init(&mut self, id: InitId) -> Step<()> {
        let later: Vec<InitId> =
            self.rows.inits().filter(|init| init.work.status.is_open()).map(|init| init.id).collect();
        for open in later {
            self.give_up(WorkKey::Init(open), WorkStatus::Cancelled)?;
        }
        let work = self.rows.init(id).map(|init| &init.work);
        let name = work.map_or("", |work| work.step_name.as_str());
        let error = work.and_then(|work| work.error_message.as_deref()).unwrap_or_default();
        let message = format!("init step {name:?} failed: {error}");
        let batch = self.batch_mut();
        batch.error_message = Some(super::attempt::kept_message(&message));
        if !batch.is_cancelling() {
            batch.ending = Some(BatchStatus::Failed);
        }
        self.start_init_rollback(id)
    }

    /// Tries the failed init step again, and those after it.
    pub(super) fn retry_init(&mut self) -> Step<()> {
        let ended: Vec<InitRow> =
            self.rows.inits().filter(|init| !init.work.status.is_passed()).cloned().collect();
        for mut init in ended {
            let blueprint = self.blueprint(WorkKey::Init(init.id))?;
            init.work.reset(blueprint.map_or(0, |blueprint| blueprint.step().retry.max_retries));
            init.rollback_state = None;
            init.rollback_run = None;
            init.rollback_error = None;
            self.rows.put_init(init);
        }
        self.reopen_batch(BatchStatus::InitDispatched);
        Ok(())
    }
}
