//! An action that runs and has not told how it ended: its instance is asked.

use segno::Code;
use segno::clock::duration_ms;
use segno::store::{Expect, Record, RecordWrite};

use super::lane::LaneError;
use super::{Handled, Scheduler};
use crate::action::record::{ACTION_KIND, ACTION_RUN_KIND, FIRST_CHECK, check_at, decode};
use crate::action::{ActionError, ActionStatus};
use crate::ended::Ended;
use crate::moment::{due_ms, timestamp};

/// Longest time between two looks at something that runs.
const MAX_CHECK_PAUSE_MS: u64 = 60 * 60 * 1_000;

impl Scheduler {
    /// Looks after a running action: ends it if its instance has ended or is gone, and comes back later if not.
    pub(super) async fn check_action(&self, record: Record, now_ms: u64) -> Result<Handled, LaneError> {
        let Some(found) = self.store.get_record(ACTION_KIND, &record.id).await? else {
            return self.forget_run(record).await;
        };
        let stored = decode(&found).map_err(LaneError::unreadable)?;
        let action = &stored.action;
        let instance = match (&action.status, &action.instance) {
            (ActionStatus::Running, Some(instance)) => instance,
            // Whoever drives it by hand looks after it; without an instance there is nothing to ask.
            (ActionStatus::Running, None) => {
                return self.check_later(record, due_ms(action.updated_at), now_ms).await;
            }
            _ => return self.forget_run(record).await,
        };
        let Some(ended) = self.ended(instance).await? else {
            return self.check_later(record, due_ms(action.updated_at), now_ms).await;
        };
        Ok(self.finish(stored, ended, timestamp(now_ms)).await?)
    }

    /// How an instance ended; `None` while it has not. One that is gone has ended too.
    pub(super) async fn ended(&self, instance: &str) -> Result<Option<Ended>, ActionError> {
        match self.client.instance(instance).await {
            Ok(instance) => Ok(Ended::of_instance(&instance)),
            Err(error) if error.code() == Code::NotFound => {
                Ok(Some(Ended::Failed("its instance was deleted before its end was known".to_owned())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Comes back when as much time has passed again as has passed since the start, within bounds.
    async fn check_later(&self, record: Record, since_ms: u64, now_ms: u64) -> Result<Handled, LaneError> {
        let at_ms = now_ms.saturating_add(check_pause_ms(since_ms, now_ms));
        let expect = Expect::Version(record.version);
        Ok(self.commit_one(check_at(record.id, expect, at_ms)).await?)
    }

    async fn forget_run(&self, record: Record) -> Result<Handled, LaneError> {
        let expect = Expect::Version(record.version);
        let delete = RecordWrite::Delete { kind: ACTION_RUN_KIND.to_owned(), id: record.id, expect };
        Ok(self.commit_one(delete).await?)
    }
}

/// How long to wait before something that runs is looked at again: the longer it runs, the longer.
pub(super) fn check_pause_ms(since_ms: u64, now_ms: u64) -> u64 {
    now_ms.saturating_sub(since_ms).clamp(duration_ms(FIRST_CHECK), MAX_CHECK_PAUSE_MS)
}
