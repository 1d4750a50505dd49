//! Ends of runs that wait for their recurring action: all of one action are folded into it in one
//! commit.

use segno::store::{ErrorKind, Record, RecordBatch, folder_of};

use super::lane::LaneError;
use super::{Handled, Scheduler};
use crate::moment::timestamp;
use crate::recurring::RECURRING_KIND;
use crate::recurring::history::HistoryEntry;
use crate::recurring::plan::Plan;
use crate::recurring::record::decode;
use crate::recurring::run_end::{RunEnds, decode_end};

impl Scheduler {
    /// Takes the ends that wait for the action of this one into the action. A lane hands out one of
    /// each action at a time.
    pub(super) async fn fold_ends(&self, record: Record, now_ms: u64) -> Result<Handled, LaneError> {
        decode_end(&record).map_err(LaneError::unreadable)?;
        let folder = folder_of(&record.id);
        let id = folder.strip_suffix('/').unwrap_or(folder);
        let (action, ends) =
            segno::try_join(self.store.get_record(RECURRING_KIND, id), RunEnds::read(&*self.store, folder))
                .await?;
        if ends.is_empty() {
            return Ok(Handled::Lost);
        }
        let Some(action) = action else {
            // It was deleted while they ran.
            let writes = ends.into_deletes().collect();
            return self.commit_fold(RecordBatch { writes, ..RecordBatch::default() }).await;
        };
        let stored = decode(&action)?;
        let (mut action, now) = (stored.action, timestamp(now_ms));
        let (mut plan, before) = (Plan::default(), action.before());
        ends.fold_into(&mut action);
        plan.conclude(&*self.store, before, &action, now).await?;
        let entries: Vec<HistoryEntry> = plan.entries().cloned().collect();
        let mut batch = plan.into_batch(&action, stored.version, self.options.history())?;
        batch.writes.extend(ends.into_deletes());
        let handled = self.commit_fold(batch).await?;
        if handled == Handled::Done {
            entries.iter().for_each(|entry| entry.tell(&action.id));
        }
        Ok(handled)
    }

    /// Commits a fold. A conflict means that another node, or a firing of the action, has taken the
    /// ends in.
    async fn commit_fold(&self, batch: RecordBatch) -> Result<Handled, LaneError> {
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(Handled::Done),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Handled::Lost),
            Err(error) => Err(error.into()),
        }
    }
}
