//! Stored versions of runbooks: the seed's table `runbooks`, a head for each name, and the index of
//! batches.

use jiff::Timestamp;
use segno::store::{Expect, Record, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::place::{BATCH_INDEX, BatchPlace, HEADS, RUNBOOKS, head_id, version_id};
use crate::message::OverdueBehavior;
use crate::rows::{BatchId, BatchRow, BatchStatus, RunbookId};

/// A version of a runbook: a row of the seed's table `runbooks`. Only `is_active` ever changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunbookRow {
    /// Primary key.
    pub id: RunbookId,
    /// Name of the runbook.
    pub name: String,
    /// Version, from 1.
    pub version: u32,
    /// The runbook as it was published.
    pub yaml_content: String,
    /// Name of the table with the data of its members.
    pub data_table_name: String,
    /// Whether new batches follow this version.
    pub is_active: bool,
    /// What happens to overdue phases of batches that move to this version.
    pub overdue_behavior: OverdueBehavior,
    /// Whether `ignore` has been applied; each batch applies it by itself.
    #[serde(default)]
    pub ignore_overdue_applied: bool,
    /// Whether init steps run again in batches that move to this version.
    pub rerun_init: bool,
    /// When it was published.
    pub created_at: Timestamp,
    /// Who published it. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// A runbook by name: which version is active, and its switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunbookHead {
    /// The name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The version that new batches follow.
    pub active_version: u32,
    /// Id of that version.
    pub runbook_id: RunbookId,
    /// What happens to overdue phases of batches that move to it.
    pub overdue_behavior: OverdueBehavior,
    /// Whether init steps run again in batches that move to it.
    pub rerun_init: bool,
    /// Whether its data source is queried.
    pub is_automation_enabled: bool,
    /// When it was published first.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// A batch in the index of its runbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchSummary {
    /// The batch.
    pub batch_id: BatchId,
    /// Its state.
    pub status: BatchStatus,
    /// Its reference time; none in manual batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_start_time: Option<Timestamp>,
}

impl RunbookRow {
    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    pub(super) fn write(&self, scope: &Scope, expect: Expect) -> RecordWrite {
        let id = version_id(scope, &self.name, self.version);
        put(RUNBOOKS, id, expect, self)
    }

    /// `runbook_{name}_v{version}`, with letters, digits and underscores only.
    pub(crate) fn table_name(name: &str, version: u32) -> String {
        let sanitized: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        format!("runbook_{sanitized}_v{version}")
    }
}

impl RunbookHead {
    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    pub(super) fn write(&self, scope: &Scope, expect: Expect) -> RecordWrite {
        put(HEADS, head_id(scope, &self.name), expect, self)
    }
}

impl BatchSummary {
    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    /// The entry of a batch in the index.
    pub(super) fn write(place: &BatchPlace, batch: &BatchRow) -> RecordWrite {
        let summary = BatchSummary {
            batch_id: batch.id,
            status: batch.status,
            batch_start_time: batch.batch_start_time,
        };
        put(BATCH_INDEX, place.index_id(&batch.runbook_name), Expect::Anything, &summary)
    }
}

fn put(kind: &str, id: String, expect: Expect, value: &impl Serialize) -> RecordWrite {
    RecordWrite::Put {
        kind: kind.to_owned(),
        id,
        expect,
        due_at_ms: None,
        time_to_live: None,
        body: serde_json::to_vec(value).expect("rows are JSON with text keys").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_forms_do_not_change() {
        let at: Timestamp = "2026-02-10T14:00:00Z".parse().unwrap();
        let row = RunbookRow {
            id: RunbookId(7),
            name: "Contoso-mailbox.migration".to_owned(),
            version: 3,
            yaml_content: "name: x\n".to_owned(),
            data_table_name: RunbookRow::table_name("Contoso-mailbox.migration", 3),
            is_active: true,
            overdue_behavior: OverdueBehavior::Rerun,
            ignore_overdue_applied: false,
            rerun_init: false,
            created_at: at,
            created_by: Some("ann".to_owned()),
        };
        let stored = r#"{"id":7,"name":"Contoso-mailbox.migration","version":3,"yaml_content":"name: x\n","data_table_name":"runbook_contoso_mailbox_migration_v3","is_active":true,"overdue_behavior":"rerun","ignore_overdue_applied":false,"rerun_init":false,"created_at":"2026-02-10T14:00:00Z","created_by":"ann"}"#;
        assert_eq!(serde_json::to_string(&row).unwrap(), stored);
        assert_eq!(serde_json::from_str::<RunbookRow>(stored).unwrap(), row);
        let head = RunbookHead {
            name: "x".to_owned(),
            description: None,
            active_version: 3,
            runbook_id: RunbookId(7),
            overdue_behavior: OverdueBehavior::Ignore,
            rerun_init: true,
            is_automation_enabled: false,
            created_at: at,
            updated_at: at,
        };
        let stored = r#"{"name":"x","active_version":3,"runbook_id":7,"overdue_behavior":"ignore","rerun_init":true,"is_automation_enabled":false,"created_at":"2026-02-10T14:00:00Z","updated_at":"2026-02-10T14:00:00Z"}"#;
        assert_eq!(serde_json::to_string(&head).unwrap(), stored);
        assert_eq!(serde_json::from_str::<RunbookHead>(stored).unwrap(), head);
        let (batch_id, status) = (BatchId(42), BatchStatus::InitDispatched);
        let summary = BatchSummary { batch_id, status, batch_start_time: Some(at) };
        let stored =
            r#"{"batch_id":42,"status":"init_dispatched","batch_start_time":"2026-02-10T14:00:00Z"}"#;
        assert_eq!(serde_json::to_string(&summary).unwrap(), stored);
    }
}
