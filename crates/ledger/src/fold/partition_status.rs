//! `partition_status`: what was last made and last tried of a partition. The newest event counts,
//! so runs may be folded again in any order.

use std::sync::Arc;

use super::moment::Moment;
use super::shared::{Name, Shared};
use crate::event::{Outcome, TaskFinished};
use crate::tables::{PartitionRow, TaskRow};

impl Shared {
    /// Notes the end of an attempt of a task that makes a partition.
    pub(super) fn note_partition(
        &mut self,
        task: &TaskRow,
        event: &TaskFinished,
        code_version: Option<Name>,
        at: Moment,
    ) {
        let Some(asset_key) = event.asset_key.as_ref().or(task.asset_key.as_ref()) else { return };
        let partition_key = event.partition_key.as_ref().or(task.partition_key.as_ref());
        let partition_key = partition_key.cloned().unwrap_or_else(|| "".into());
        let name = (Arc::clone(asset_key), partition_key);
        let existing = self.partitions.get(&name);
        if existing.is_some_and(|row| row.row_version >= at.id) {
            return;
        }
        let mut row = existing.cloned().unwrap_or_else(|| PartitionRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            asset_key: Arc::clone(&name.0),
            partition_key: Arc::clone(&name.1),
            last_materialization_run_id: None,
            last_materialization_at: None,
            last_materialization_code_version: None,
            last_attempt_run_id: None,
            last_attempt_at: None,
            last_attempt_outcome: None,
            stale_since: None,
            stale_reason_code: None,
            partition_values: None,
            delta_table: None,
            delta_version: None,
            delta_partition: None,
            execution_lineage_ref: None,
            row_version: at.id,
        });
        row.row_version = at.id;
        row.last_attempt_run_id = Some(Arc::clone(&task.run_id));
        row.last_attempt_at = Some(at.at);
        row.last_attempt_outcome = Some(event.outcome.text().into());
        if event.outcome == Outcome::Succeeded {
            row.last_materialization_run_id = Some(Arc::clone(&task.run_id));
            row.last_materialization_at = Some(at.at);
            row.last_materialization_code_version = code_version;
            row.delta_table = task.delta_table.clone();
            row.delta_version = task.delta_version;
            row.delta_partition = task.delta_partition.clone();
            row.execution_lineage_ref = task.execution_lineage_ref.clone();
        }
        self.partitions.put(name, row);
    }
}
