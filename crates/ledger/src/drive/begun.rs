//! Which scopes have tables. A scope without a manifest is a new one, or one whose ledger was deleted, or is not mounted: a
//! record in the store, written before the first event is appended, tells these apart, so that runs are not silently forgotten.

use segno::store::{Expect, RecordWrite};
use segno_actions::functions::Scope;

use super::error::LedgerError;
use super::ledger::Ledger;
use super::place::{BEGUN, begun_id};

impl Ledger {
    /// Whether events of a scope were ever appended.
    pub(super) async fn has_begun(&self, scope: &Scope) -> Result<bool, LedgerError> {
        Ok(self.store().get_record(BEGUN, &begun_id(scope)).await?.is_some())
    }
}

/// Notes that a scope has tables.
pub(super) fn begun(scope: &Scope) -> RecordWrite {
    RecordWrite::Put {
        kind: BEGUN.to_owned(),
        id: begun_id(scope),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: "{}".into(),
    }
}
