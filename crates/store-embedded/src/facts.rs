//! What a checkpoint knows of the whole store: how far it goes, which numbers are used up, and how many there are of what.

use bytes::Bytes;

use segno::store::{ExecutionStatus, SystemMetrics};

use crate::codec::{Decoder, Encoder, Undecodable};
use crate::instance_row::InstanceRow;
use crate::keys::status_number;

/// Number of the row in the meta table.
pub const FACTS: u8 = 2;

/// Number of the row that says up to where lock tokens are reserved. It is written by commits, not by checkpoints.
pub const TOKENS: u8 = 3;

/// Number of the row that is there while the store is being filled by an import. It is written by commits.
pub const FILLING: u8 = 5;

/// Number of the row that says up to which commit the log was written when the checkpoint was made. Written by checkpoints.
pub const LOGGED: u8 = 6;

/// Number of the row that names a segment of the log that is there. Written by checkpoints, and by opening a store whose
/// newest segment no other one links to.
pub const ANCHOR: u8 = 7;

const FACTS_VERSION: u8 = 1;

/// One more than the highest number of a state.
const STATUS_SLOTS: usize = 8;

/// The row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Last commit that the checkpoint includes.
    pub covered: u64,
    /// Highest number in use, of messages, activities and record versions.
    pub last_message_id: u64,
    pub last_item_id: u64,
    pub last_record_version: u64,
    pub counters: Counters,
}

impl Facts {
    pub fn encode(&self) -> Bytes {
        let mut row = Encoder::new(FACTS_VERSION);
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

    pub fn decode(bytes: &Bytes) -> Result<Self, Undecodable> {
        let row = &mut Decoder::new(bytes, FACTS_VERSION)?;
        let mut facts = Facts {
            covered: row.u64()?,
            last_message_id: row.u64()?,
            last_item_id: row.u64()?,
            last_record_version: row.u64()?,
            counters: Counters { executions: row.u64()?, events: row.u64()?, ..Counters::default() },
        };
        for count in &mut facts.counters.by_status {
            *count = row.u64()?;
        }
        Ok(facts)
    }
}

/// How many there are of what; a sum over all instance rows, kept up to date by every change of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    executions: u64,
    events: u64,
    by_status: [u64; STATUS_SLOTS],
}

impl Counters {
    /// Counts a row.
    pub fn add(&mut self, row: &InstanceRow) {
        self.executions += row.execution_count;
        self.events += row.event_count;
        self.by_status[usize::from(status_number(row.current.status))] += 1;
    }

    /// Undoes [`Self::add`].
    pub fn subtract(&mut self, row: &InstanceRow) {
        // A row that was changed over damage may never have been counted.
        self.executions = self.executions.saturating_sub(row.execution_count);
        self.events = self.events.saturating_sub(row.event_count);
        let by_status = &mut self.by_status[usize::from(status_number(row.current.status))];
        *by_status = by_status.saturating_sub(1);
    }

    /// What callers see.
    pub fn metrics(&self) -> SystemMetrics {
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
