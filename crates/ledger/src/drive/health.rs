//! Health of the ledger: whether its object stores are read and written, whether events wait for too long to be folded, and
//! whether scopes cannot be driven.

use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use segno::clock;
use segno::store::DueRecords;

use super::error::LedgerError;
use super::ledger::Ledger;
use super::limits::FOLD_LAG_LIMIT;
use super::outbox;
use super::place::OUTBOX;
use crate::objects::Objects;

/// An object store that takes longer than this does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The object that is written to find out whether writes are taken. No scope can have its folder, and credentials that are for
/// the folder `ledger` of every scope include it.
const PROBE: &str = "_probe/_probe/ledger/probe.json";

/// The same in the store of the tables, which is only read.
const READ_PROBE: &str = "_probe/_probe/state/probe.json";

/// What is wrong with the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerTrouble {
    /// The object store of the log takes no writes.
    NotWritten(String),
    /// The object store of the tables cannot be read.
    NotRead(String),
    /// The object stores have not passed their probe since this process started, so it drives nothing.
    NotProven(String),
    /// Events have waited for so long to be folded.
    NotFolded(Duration),
    /// This process could not drive so many scopes at its last try, and why one of them.
    NotDriven(usize, String),
}

impl LedgerTrouble {
    /// What is wrong without the reason, which names places: for callers without a key.
    pub fn summary(&self) -> String {
        match self {
            LedgerTrouble::NotWritten(_) => "the ledger cannot be written".to_owned(),
            LedgerTrouble::NotRead(_) => "the ledger cannot be read".to_owned(),
            LedgerTrouble::NotProven(_) => {
                "the ledger has not passed its probe, so this node drives no DAG runs".to_owned()
            }
            LedgerTrouble::NotFolded(lag) => format!(
                "events of DAG runs have waited for {} s to be folded; a node with the role orchestrator folds them",
                lag.as_secs()
            ),
            LedgerTrouble::NotDriven(scopes, _) => {
                format!("this node could not drive the ledgers of {scopes} tenants")
            }
        }
    }
}

impl std::fmt::Display for LedgerTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.summary())?;
        match self {
            LedgerTrouble::NotWritten(reason)
            | LedgerTrouble::NotRead(reason)
            | LedgerTrouble::NotProven(reason)
            | LedgerTrouble::NotDriven(_, reason) => write!(f, ": {reason}"),
            LedgerTrouble::NotFolded(_) => Ok(()),
        }
    }
}

impl Ledger {
    /// What is wrong now. Each look writes one small object and reads one.
    pub async fn troubles(&self) -> Vec<LedgerTrouble> {
        let mut troubles = Vec::new();
        let stores = self.objects();
        let time = || std::sync::Arc::clone(&self.options().clock);
        let (log, tables) =
            (Objects::new(stores.ledger.clone(), time()), Objects::new(stores.state.clone(), time()));
        let (write, read) = (Path::from(PROBE), Path::from(READ_PROBE));
        let write = clock::timeout(self.clock(), PATIENCE, log.put_over(&write, Bytes::from_static(b"{}")));
        let read = clock::timeout(self.clock(), PATIENCE, tables.exists(&read));
        let (written, read) = futures_util::future::join(write, read).await;
        let late = || format!("its object store has not answered within {PATIENCE:?}");
        match written {
            Some(Ok(())) => {}
            Some(Err(error)) => troubles.push(LedgerTrouble::NotWritten(error.to_string())),
            None => troubles.push(LedgerTrouble::NotWritten(late())),
        }
        match read {
            Some(Ok(_)) => {}
            Some(Err(error)) => troubles.push(LedgerTrouble::NotRead(error.to_string())),
            None => troubles.push(LedgerTrouble::NotRead(late())),
        }
        troubles.extend(self.why_unproven().map(LedgerTrouble::NotProven));
        // A store that does not answer is a trouble of its own, which others report.
        match self.fold_lag().await {
            Ok(lag) if lag >= FOLD_LAG_LIMIT => troubles.push(LedgerTrouble::NotFolded(lag)),
            _ => {}
        }
        troubles.extend(self.stuck().map(|(scopes, reason)| LedgerTrouble::NotDriven(scopes, reason)));
        troubles
    }

    /// For how long the oldest event of all scopes has waited to be folded.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn fold_lag(&self) -> Result<Duration, LedgerError> {
        let now_ms = self.store().now_ms().await?;
        let request =
            DueRecords { kind: OUTBOX, id_prefix: "", now_ms: None, limit: 1, poll_timeout: Duration::ZERO };
        let oldest = self.store().due_records(request).await?.into_iter().next();
        let written_ms = oldest.and_then(|record| outbox::written_at_ms(&record));
        Ok(Duration::from_millis(written_ms.map_or(0, |at_ms| now_ms.saturating_sub(at_ms))))
    }
}

#[cfg(test)]
mod tests {
    use segno::clock::duration_ms;

    use super::*;

    #[test]
    fn the_probe_is_in_the_folder_of_no_scope() {
        for probe in [PROBE, READ_PROBE] {
            let mut parts = probe.split('/');
            let (tenant, workspace) = (parts.next().unwrap(), parts.next().unwrap());
            assert!(segno_actions::functions::Scope::new(workspace, tenant).is_err());
        }
        assert!(duration_ms(PATIENCE) < duration_ms(FOLD_LAG_LIMIT));
    }
}
