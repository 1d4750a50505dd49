//! Where the records of a batch are: kinds, ids and prefixes.

use segno_actions::functions::Scope;

use crate::rows::{BatchId, RowKey, Table};

/// Kind of the messages that wait for a batch.
pub const INBOX: &str = "runbook_inbox";

/// Kind of the lease records: who holds a batch, and when it is looked at next.
pub const LEASES: &str = "runbook_leases";

/// Kind of the receipts of requests: whether each waits, was applied or was refused.
pub const RECEIPTS: &str = "runbook_requests";

/// Kind of the counters that ids are drawn from.
pub const COUNTERS: &str = "runbook_counters";

/// Kind of the versions of runbooks, the seed's table.
pub const RUNBOOKS: &str = "runbooks";

/// Kind of the runbooks by name: which version is active, and whether automation is enabled.
pub const HEADS: &str = "runbook_heads";

/// Kind of the index of batches by runbook, newest first.
pub const BATCH_INDEX: &str = "runbook_batches";

/// Kind of the keys under which batches were created.
pub const CREATION_KEYS: &str = "runbook_creations";

/// Kind of the records of queries: when a runbook's data source is queried, by which node, and what
/// came of it.
pub const QUERIES: &str = "runbook_queries";

/// Kind of the members that queries have brought, by runbook and key.
pub const SOURCE_MEMBERS: &str = "runbook_source_members";

/// Kind of the batches that queries have created, by runbook and start.
pub const SOURCE_BATCHES: &str = "runbook_source_batches";

/// A batch of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchPlace {
    /// Whose batch it is.
    pub scope: Scope,
    /// The batch.
    pub batch: BatchId,
}

impl BatchPlace {
    /// A batch of a scope.
    pub fn new(scope: Scope, batch: BatchId) -> Self {
        BatchPlace { scope, batch }
    }

    /// Id of the batch's own records: its row and its lease.
    pub fn id(&self) -> String {
        format!("{}{:020}", self.scope.id_prefix(), self.batch.0)
    }

    /// What the ids of all other records of the batch begin with.
    pub fn folder(&self) -> String {
        format!("{}/", self.id())
    }

    /// Id of the record of a row.
    pub fn row_id(&self, key: &RowKey) -> String {
        match key {
            RowKey::Batch => self.id(),
            other => format!("{}{}", self.folder(), other.record_id()),
        }
    }

    /// The row whose record has this id; `None` if the id is none of this batch.
    pub fn row_key(&self, table: Table, record_id: &str) -> Option<RowKey> {
        let rest = record_id.strip_prefix(&self.id())?;
        match table {
            Table::Batches => RowKey::parse(table, rest),
            _ => RowKey::parse(table, rest.strip_prefix('/')?),
        }
    }

    /// The batch of a record below its folder, such as a message or a receipt.
    pub fn of_record(record_id: &str) -> Option<Self> {
        let mut parts = record_id.splitn(4, '/');
        let (namespace, tenant, batch) = (parts.next()?, parts.next()?, parts.next()?);
        parts.next()?;
        let batch = BatchId(batch.parse().ok()?);
        Some(BatchPlace { scope: Scope::new(namespace, tenant).ok()?, batch })
    }

    /// Id of the record by which the batches of a runbook are listed, newest first.
    pub fn index_id(&self, runbook: &str) -> String {
        format!("{}{:020}", index_folder(&self.scope, runbook), u64::MAX - self.batch.0)
    }

    /// Reads the id of a lease record.
    pub fn of_lease(record_id: &str) -> Option<Self> {
        let (scope, batch) = record_id.rsplit_once('/')?;
        let (namespace, tenant) = scope.split_once('/')?;
        let batch = BatchId(batch.parse().ok()?);
        Some(BatchPlace { scope: Scope::new(namespace, tenant).ok()?, batch })
    }
}

/// What the ids in the index of a runbook's batches begin with.
pub fn index_folder(scope: &Scope, runbook: &str) -> String {
    format!("{}{runbook}/", scope.id_prefix())
}

/// Id of the record of a runbook by name.
pub fn head_id(scope: &Scope, runbook: &str) -> String {
    format!("{}{runbook}", scope.id_prefix())
}

/// Id of the record of a version of a runbook.
pub fn version_id(scope: &Scope, runbook: &str, version: u32) -> String {
    format!("{}{version:010}", index_folder(scope, runbook))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{PhaseId, StepId, WorkKey};

    fn place() -> BatchPlace {
        BatchPlace::new(Scope::new("eu", "acme").unwrap(), BatchId(42))
    }

    #[test]
    fn ids_of_records_name_scope_batch_and_row() {
        let place = place();
        for (key, id) in [
            (RowKey::Batch, "eu/acme/00000000000000000042"),
            (RowKey::Phase(PhaseId(7)), "eu/acme/00000000000000000042/00000000000000000007"),
            (RowKey::MemberKey("a/b".to_owned()), "eu/acme/00000000000000000042/a/b"),
            (WorkKey::Step(StepId(1_042)).into(), "eu/acme/00000000000000000042/00000000000000001042"),
        ] {
            assert_eq!(place.row_id(&key), id);
            assert_eq!(place.row_key(key.table(), id), Some(key));
        }
    }

    #[test]
    fn rows_of_other_batches_are_none_of_this_one() {
        for id in ["eu/acme/00000000000000000043/00000000000000000007", "eu/acme", "us/acme/x", ""] {
            assert_eq!(place().row_key(Table::PhaseExecutions, id), None, "{id}");
        }
    }

    #[test]
    fn the_id_of_a_lease_gives_the_batch() {
        assert_eq!(BatchPlace::of_lease(&place().id()), Some(place()));
        for id in ["eu/acme/x", "acme/42", "42", ""] {
            assert_eq!(BatchPlace::of_lease(id), None, "{id}");
        }
        let message = format!("{}request-a", place().folder());
        assert_eq!(BatchPlace::of_record(&message), Some(place()));
        assert_eq!(BatchPlace::of_record(&place().id()), None);
    }
}
