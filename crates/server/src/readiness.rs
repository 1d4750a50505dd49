//! Whether the store takes writes and has met no damage: tried by writing, at most once a second, because anybody may ask.

use std::time::Duration;

use segno::clock::{Clock, timeout};
use segno::store::{Expect, RecordBatch, RecordWrite, Store};
use segno_ledger::drive::{Ledger, LedgerTrouble};
use tokio::sync::Mutex;

use crate::problem::{Code, Refusal};

/// Kind of the record that is written.
const KIND: &str = "segno.readiness";

/// An answer is good for so long, in milliseconds.
const GOOD_FOR_MS: u64 = 1_000;

/// The same for the ledger, whose object store may be far away and paid by the call.
const LEDGER_GOOD_FOR_MS: u64 = 5_000;

/// A store that takes longer than this is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the last write was taken.
#[derive(Default)]
pub struct Readiness {
    last: Mutex<Option<(u64, Result<(), Refusal>)>>,
}

impl Readiness {
    /// Whether the store takes writes and has met no damage.
    ///
    /// # Errors
    /// `unavailable` when it takes none, `store-damaged` when it has met damage; both with the reason.
    pub async fn check(&self, store: &dyn Store, clock: &dyn Clock, node: &str) -> Result<(), Refusal> {
        self.takes_writes(store, clock, node).await?;
        // Known without a write, so no earlier answer stands for it.
        undamaged(store).await
    }

    async fn takes_writes(&self, store: &dyn Store, clock: &dyn Clock, node: &str) -> Result<(), Refusal> {
        let mut last = self.last.lock().await;
        let now_ms = clock.now_ms();
        if let Some((at_ms, outcome)) = &*last
            && now_ms.saturating_sub(*at_ms) < GOOD_FOR_MS
        {
            return outcome.clone();
        }
        let write = RecordWrite::Put {
            kind: KIND.to_owned(),
            id: node.to_owned(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(Duration::from_secs(60)),
            body: now_ms.to_string().into(),
        };
        let commit = store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() });
        let outcome = match timeout(clock, PATIENCE, commit).await {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
            None => Err(Refusal::new(
                Code::Unavailable,
                format!("the store did not take a write within {PATIENCE:?}"),
            )),
        };
        *last = Some((now_ms, outcome.clone()));
        outcome
    }
}

/// What is wrong with the ledger: found by a write and a read, at most once in a few seconds, because anybody may ask.
#[derive(Default)]
pub struct LedgerHealth {
    last: Mutex<Option<(u64, Vec<LedgerTrouble>)>>,
}

impl LedgerHealth {
    /// What is wrong, as of at most [`LEDGER_GOOD_FOR_MS`] ago.
    pub async fn check(&self, ledger: &Ledger, clock: &dyn Clock) -> Vec<LedgerTrouble> {
        let mut last = self.last.lock().await;
        let now_ms = clock.now_ms();
        if let Some((at_ms, troubles)) = &*last
            && now_ms.saturating_sub(*at_ms) < LEDGER_GOOD_FOR_MS
        {
            return troubles.clone();
        }
        let troubles = ledger.troubles().await;
        *last = Some((now_ms, troubles.clone()));
        troubles
    }
}

/// What is damaged may be all that a caller needs, so a store that is known to have damage is not ready, although it serves
/// the rest.
async fn undamaged(store: &dyn Store) -> Result<(), Refusal> {
    match store.known_damage().await? {
        None => Ok(()),
        Some(what) => Err(Refusal::new(
            Code::StoreDamaged,
            format!(
                "the store is damaged ({what}); what is not damaged is still served. Stop the server and run `segno store \
                 check`, then restore a backup or run `segno store salvage`"
            ),
        )),
    }
}
