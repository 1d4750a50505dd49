//! Instances that may wait in vain because a part of a queue is damaged.
//!
//! A damaged row of a queue does not show its instance. What is known is which instances have not
//! ended and have nothing queued: each waits for a signal or a child, or for what is on the damaged
//! block.

use segno::store::ExecutionStatus;

use crate::error::RowError;
use crate::rows::keys::{self, AgeIndex};
use crate::rows::layers::Rows;
use crate::state::machine::Restored;

/// Most instances that are named.
const MAX_NAMED: usize = 100;

/// States of instances that something queued brings on.
const WAITING: [ExecutionStatus; 3] =
    [ExecutionStatus::Pending, ExecutionStatus::Running, ExecutionStatus::ContinuedAsNew];

/// Instances that have not ended and have nothing queued.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stranded {
    /// The first of them.
    pub(crate) named: Vec<String>,
    pub(crate) count: usize,
}

impl Stranded {
    /// Those of a store whose queues were restored.
    ///
    /// # Errors
    /// When the disk cannot be read. Damage of the index hides instances.
    pub(crate) fn of(rows: &Rows, restored: &Restored) -> Result<Self, RowError> {
        let mut stranded = Stranded::default();
        for status in WAITING {
            let prefix = AgeIndex::Status(status).prefix();
            for entry in rows.scan_past_damage(&prefix, std::ops::Bound::Included(&prefix)) {
                let key = match entry {
                    Ok((key, _)) => key,
                    Err(RowError::Corrupt(_)) => continue,
                    Err(error) => return Err(error),
                };
                let Some((_, id)) = keys::aged(&key, prefix.len()) else { continue };
                if restored.orchestrations.knows(id) || !restored.work.of_instance(id).is_empty() {
                    continue;
                }
                stranded.count += 1;
                if stranded.named.len() < MAX_NAMED {
                    stranded.named.push(id.to_owned());
                }
            }
        }
        Ok(stranded)
    }

    /// Writes them to the log.
    pub(crate) fn report(&self) {
        tracing::error!(
            count = self.count,
            instances = ?self.named,
            "a part of a queue is damaged, and these instances have nothing queued: each waits for a signal or a child, or for \
             what cannot be read; cancel and start again those that wait in vain"
        );
    }
}
