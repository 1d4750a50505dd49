//! The metadata of a checkpoint: the last commit in it, the highest ids in use, and counters.

use bytes::Bytes;

use segno::store::{ExecutionStatus, SystemMetrics};

use crate::rows::codec::{Decoder, Encoder, Undecodable};
use crate::rows::instance_row::InstanceRow;
use crate::rows::keys::status_number;

/// Number of the row in the meta table.
pub(crate) const CHECKPOINT_META: u8 = 2;

/// Number of the row with the end of the reserved lock tokens. Written by commits, not by checkpoints.
pub(crate) const TOKENS: u8 = 3;

/// Number of the row that exists while an import fills the store. Written by commits.
pub(crate) const FILLING: u8 = 5;

/// Number of the row with the last commit in the log when the checkpoint was made. Written by checkpoints.
pub(crate) const LOGGED: u8 = 6;

/// Number of the row that names an existing segment of the log. Written by checkpoints, and by opening a
/// store whose newest segment no other one links to.
pub(crate) const ANCHOR: u8 = 7;

const CHECKPOINT_META_VERSION: u8 = 1;

/// One more than the highest number of a state.
const STATUS_SLOTS: usize = 8;

/// The row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CheckpointMeta {
    /// Last commit that the checkpoint includes.
    pub(crate) covered: u64,
    /// Highest number in use, of messages, activities and record versions.
    pub(crate) last_message_id: u64,
    pub(crate) last_item_id: u64,
    pub(crate) last_record_version: u64,
    pub(crate) counters: Counters,
}

impl CheckpointMeta {
    pub(crate) fn encode(&self) -> Bytes {
        let mut row = Encoder::new(CHECKPOINT_META_VERSION);
        row.u64(self.covered);
        row.u64(self.last_message_id);
        row.u64(self.last_item_id);
        row.u64(self.last_record_version);
        row.u64(self.counters.executions);
        row.u64(self.counters.events);
        for count in self.counters.by_status {
            row.u64(count);
        }
        row.finish()
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, Undecodable> {
        let row = &mut Decoder::new(bytes, CHECKPOINT_META_VERSION)?;
        let mut meta = CheckpointMeta {
            covered: row.u64()?,
            last_message_id: row.u64()?,
            last_item_id: row.u64()?,
            last_record_version: row.u64()?,
            counters: Counters { executions: row.u64()?, events: row.u64()?, ..Counters::default() },
        };
        for count in &mut meta.counters.by_status {
            *count = row.u64()?;
        }
        Ok(meta)
    }
}

/// Counts over all instance rows, updated by every change of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    executions: u64,
    events: u64,
    by_status: [u64; STATUS_SLOTS],
}

impl Counters {
    /// Counts a row.
    pub(crate) fn add(&mut self, row: &InstanceRow) {
        self.executions += row.execution_count;
        self.events += row.event_count;
        self.by_status[usize::from(status_number(row.current.status))] += 1;
    }

    /// Undoes [`Self::add`].
    pub(crate) fn subtract(&mut self, row: &InstanceRow) {
        // A row that was changed over damage may never have been counted.
        self.executions = self.executions.saturating_sub(row.execution_count);
        self.events = self.events.saturating_sub(row.event_count);
        let by_status = &mut self.by_status[usize::from(status_number(row.current.status))];
        *by_status = by_status.saturating_sub(1);
    }

    /// The metrics for callers.
    pub(crate) fn metrics(&self) -> SystemMetrics {
        let count = |status| self.by_status[usize::from(status_number(status))];
        SystemMetrics {
            total_instances: self.by_status.iter().sum(),
            total_executions: self.executions,
            pending_instances: count(ExecutionStatus::Pending),
            running_instances: count(ExecutionStatus::Running) + count(ExecutionStatus::ContinuedAsNew),
            paused_instances: count(ExecutionStatus::Paused),
            completed_instances: count(ExecutionStatus::Completed),
            failed_instances: count(ExecutionStatus::Failed),
            cancelled_instances: count(ExecutionStatus::Cancelled),
            total_events: self.events,
        }
    }
}
