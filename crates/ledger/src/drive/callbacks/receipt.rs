//! Receipts: a record for each report that was accepted, written in the commit of its event and only if there is none. The same
//! report again is found to be a repeat; another one about the same fact is refused.

use segno::store::{Expect, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use crate::drive::error::LedgerError;
use crate::drive::ledger::Ledger;
use crate::drive::limits::RECEIPT_LIFE;
use crate::drive::place::{RECEIPTS, outbox_id};

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    /// The worker that reported it.
    pub(super) worker: String,
    /// The fingerprint of the report.
    pub(super) fingerprint: String,
}

impl Receipt {
    /// The write, which conflicts with an earlier one.
    pub(super) fn write(&self, scope: &Scope, key: &str) -> RecordWrite {
        RecordWrite::Put {
            kind: RECEIPTS.to_owned(),
            id: outbox_id(scope, key),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: Some(RECEIPT_LIFE),
            body: serde_json::to_vec(self).expect("it has texts only").into(),
        }
    }

    /// The receipt of an earlier report.
    pub(super) async fn read(ledger: &Ledger, scope: &Scope, key: &str) -> Result<Option<Self>, LedgerError> {
        let id = outbox_id(scope, key);
        let Some(record) = ledger.store().get_record(RECEIPTS, &id).await? else { return Ok(None) };
        let read = serde_json::from_slice(&record.body);
        read.map(Some).map_err(|error| LedgerError::unreadable(RECEIPTS, &id, &error))
    }
}
