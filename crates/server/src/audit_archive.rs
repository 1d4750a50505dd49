//! The audit log in the archive: how entries get there, and back.

use std::sync::Arc;

use async_trait::async_trait;
use segno::store::{Expect, ProviderError, Record, RecordWrite, Store};
use segno_actions::functions::Scope as Owner;
use segno_api::audit::AuditEntry;
use segno_ledger::archive::{AUDIT, ArchivedRow as _, AuditRow, Moving, Retired, Retiring};

use crate::audit::{KIND, StoredEntry, shown};
use crate::scope::Scope;

/// Entries whose time is over.
pub struct RetiredEntries;

#[async_trait]
impl Retiring for RetiredEntries {
    fn due_kind(&self) -> &'static str {
        KIND
    }

    async fn retire(&self, _: &dyn Store, due: &Record) -> Result<Retired, ProviderError> {
        let Some((owner, id)) = owner_of(&due.id) else {
            return Ok(Retired::Stays("its id has no namespace and tenant".to_owned()));
        };
        let entry: StoredEntry = match serde_json::from_slice(&due.body) {
            Ok(entry) => entry,
            Err(error) => return Ok(Retired::Stays(error.to_string())),
        };
        let row = row(&owner, id, entry, due.version);
        let removal = vec![RecordWrite::Delete {
            kind: due.kind.clone(),
            id: due.id.clone(),
            expect: Expect::Version(due.version),
        }];
        Ok(Retired::Moves(Moving { scope: owner, rows: vec![(&AUDIT, row.to_cells())], removal }))
    }
}

fn owner_of(stored: &str) -> Option<(Owner, &str)> {
    let (namespace, rest) = stored.split_once('/')?;
    let (tenant, id) = rest.split_once('/')?;
    Some((Owner::new(namespace, tenant).ok()?, id))
}

fn row(owner: &Owner, id: &str, entry: StoredEntry, version: u64) -> AuditRow {
    let at = number(entry.at_ms);
    AuditRow {
        tenant_id: owner.tenant.as_str().into(),
        workspace_id: owner.namespace.as_str().into(),
        id: id.into(),
        incarnation: at,
        revision: number(version),
        ended_at: at,
        at,
        key: entry.key.map(Arc::from),
        operation: entry.operation.into(),
        path: entry.path.into(),
        status: i64::from(entry.status),
        request_id: entry.request_id.into(),
        reason: entry.reason.map(Arc::from),
    }
}

/// An archived entry as callers see it.
pub fn entry(scope: &Scope, row: &AuditRow) -> AuditEntry {
    let stored = StoredEntry {
        at_ms: u64::try_from(row.at).unwrap_or(0),
        key: row.key.as_deref().map(str::to_owned),
        operation: row.operation.as_ref().to_owned(),
        path: row.path.as_ref().to_owned(),
        status: u16::try_from(row.status).unwrap_or(0),
        request_id: row.request_id.as_ref().to_owned(),
        reason: row.reason.as_deref().map(str::to_owned),
    };
    shown(scope, row.id.as_ref().to_owned(), stored)
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
