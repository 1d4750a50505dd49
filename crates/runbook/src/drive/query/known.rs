//! Members that queries have brought, and the batches that queries have created.

use jiff::Timestamp;
use segno::store::{Expect, Record, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use crate::drive::error::DriveError;
use crate::drive::place::{SOURCE_BATCHES, SOURCE_MEMBERS, index_folder};
use crate::rows::BatchId;
use crate::source::KnownMember;

/// A member that a query has brought: the record of its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceMember {
    pub(super) batch_id: BatchId,
    /// Start of the batch, as the source had it.
    pub(super) start: Timestamp,
    /// Digest of its data.
    pub(super) digest: String,
    /// Whether it was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_gone: bool,
    /// The run since which its removal waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) held: Option<u64>,
    /// It was sent to a batch that had begun, and may have ended before the member arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_late: bool,
}

impl SourceMember {
    /// Key and member of a record.
    pub(super) fn read(scope: &Scope, runbook: &str, record: &Record) -> Result<(String, Self), DriveError> {
        let unreadable =
            |problem: String| DriveError::Unreadable { kind: SOURCE_MEMBERS, id: record.id.clone(), problem };
        let key = record.id.strip_prefix(&index_folder(scope, runbook));
        let key = key.ok_or_else(|| unreadable("its id has no key".to_owned()))?;
        let member = serde_json::from_slice(&record.body).map_err(|error| unreadable(error.to_string()))?;
        Ok((key.to_owned(), member))
    }

    pub(super) fn write(&self, scope: &Scope, runbook: &str, key: &str) -> RecordWrite {
        put(SOURCE_MEMBERS, format!("{}{key}", index_folder(scope, runbook)), self)
    }

    pub(super) fn into_known(self, key: String) -> KnownMember {
        let SourceMember { batch_id, start, digest, is_gone, held, .. } = self;
        KnownMember { key, batch_id, start, digest, is_current: !is_gone, held }
    }
}

/// Removes what is known of a member.
pub(super) fn forget(scope: &Scope, runbook: &str, key: &str) -> RecordWrite {
    let id = format!("{}{key}", index_folder(scope, runbook));
    RecordWrite::Delete { kind: SOURCE_MEMBERS.to_owned(), id, expect: Expect::Anything }
}

/// The batch that a query has created for a start. There is one, also if it was rescheduled or has
/// ended since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceBatch {
    pub(super) batch_id: BatchId,
}

impl SourceBatch {
    pub(super) fn id(scope: &Scope, runbook: &str, start: Timestamp) -> String {
        format!("{}{start}", index_folder(scope, runbook))
    }

    pub(super) fn read(record: &Record) -> Result<Self, DriveError> {
        serde_json::from_slice(&record.body).map_err(|error| DriveError::Unreadable {
            kind: SOURCE_BATCHES,
            id: record.id.clone(),
            problem: error.to_string(),
        })
    }

    pub(super) fn write(self, scope: &Scope, runbook: &str, start: Timestamp) -> RecordWrite {
        put(SOURCE_BATCHES, SourceBatch::id(scope, runbook, start), &self)
    }
}

/// The lease in the same commit is what protects it.
fn put(kind: &str, id: String, value: &impl Serialize) -> RecordWrite {
    RecordWrite::Put {
        kind: kind.to_owned(),
        id,
        expect: Expect::Anything,
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
        let start: Timestamp = "2026-02-10T14:00:00Z".parse().unwrap();
        let (batch_id, digest) = (BatchId(42), "d1".to_owned());
        let mut member = SourceMember { batch_id, start, digest, is_gone: false, held: None, is_late: false };
        let stored = r#"{"batch_id":42,"start":"2026-02-10T14:00:00Z","digest":"d1"}"#;
        assert_eq!(serde_json::to_string(&member).unwrap(), stored);
        (member.is_gone, member.held, member.is_late) = (true, Some(7), true);
        let stored = r#"{"batch_id":42,"start":"2026-02-10T14:00:00Z","digest":"d1","is_gone":true,"held":7,"is_late":true}"#;
        assert_eq!(serde_json::to_string(&member).unwrap(), stored);
        assert_eq!(serde_json::from_str::<SourceMember>(stored).unwrap(), member);
        assert_eq!(serde_json::to_string(&SourceBatch { batch_id }).unwrap(), r#"{"batch_id":42}"#);
        let scope = Scope::new("eu", "acme").unwrap();
        assert_eq!(SourceBatch::id(&scope, "wave", start), "eu/acme/wave/2026-02-10T14:00:00Z");
    }
}
