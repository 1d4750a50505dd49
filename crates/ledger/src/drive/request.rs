//! What requests about runs and backfills have in common: who, why, and waiting until they are visible.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use segno::clock;
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::error::LedgerError;
use super::ledger::Ledger;
use super::limits::READ_AFTER_WRITE;
use super::outbox::WaitingEvent;
use super::place::outbox_id;
use super::post::{Posting, post};
use super::reading::days_of;
use crate::snapshot::{Days, Snapshot};
use crate::tables::{BackfillRow, IdempotencyKeyRow, RunRow};

/// The first pause between two looks for an event; each further one is twice as long.
const FIRST_LOOK: Duration = Duration::from_millis(40);

/// The longest pause.
const LAST_LOOK: Duration = Duration::from_millis(160);

/// Who requests something, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Who.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What makes the request itself again when it is repeated; a fresh one without it.
    pub request_id: Option<String>,
}

/// A request that was accepted: it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Whether the tables show it. They do so a moment later otherwise.
    pub visible: bool,
}

impl Request {
    /// Who, as events name them.
    pub(super) fn requester(&self) -> &str {
        self.by.as_deref().unwrap_or("unknown")
    }
}

impl Ledger {
    /// Posts one event and waits until it is visible.
    pub(super) async fn request(
        &self,
        scope: &Scope,
        event: impl Into<WaitingEvent>,
    ) -> Result<Accepted, LedgerError> {
        let mut event = event.into();
        let key = event.key.get_or_insert_with(|| event.data.idempotency_key().into()).to_string();
        let record = format!("request:{}", self.fresh());
        let published = self.wait_published(outbox_id(scope, &record));
        post(self.store(), scope, Posting { key: record, events: vec![event], writes: Vec::new() }).await?;
        let visible = self.until_visible(scope, published, Shown::Event(&key)).await?;
        Ok(Accepted { visible })
    }

    /// Waits until a snapshot shows something, at most for [`READ_AFTER_WRITE`]. A holder in this process reports it at once.
    pub(super) async fn until_visible(
        &self,
        scope: &Scope,
        published: oneshot::Receiver<()>,
        shown: Shown<'_>,
    ) -> Result<bool, LedgerError> {
        // A holder that goes away reports nothing, and a receiver must not be polled after that.
        let mut published = pin!(async {
            if published.await.is_err() {
                pending::<()>().await;
            }
        });
        let deadline_ms = clock::deadline_ms(self.clock(), READ_AFTER_WRITE);
        let mut pause = FIRST_LOOK;
        tokio::select! {
            biased;
            () = &mut published => return Ok(true),
            () = clock::sleep(self.clock(), pause) => {}
        }
        loop {
            // The request is durable, so a table that cannot be read now is no failure of it.
            if let Ok(Some(snapshot)) = self.snapshot(scope).await
                && snapshot.shows(shown).await.unwrap_or(false)
            {
                return Ok(true);
            }
            if self.clock().now_ms() >= deadline_ms {
                return Ok(false);
            }
            tokio::select! {
                biased;
                () = &mut published => return Ok(true),
                () = clock::sleep(self.clock(), pause) => {}
            }
            pause = (pause * 2).min(LAST_LOOK);
        }
    }
}

/// What a request waits for in a snapshot. Not a closure: the future of one could not be sent between threads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown<'a> {
    /// The event with this idempotency key was applied.
    Event(&'a str),
    /// The run exists.
    Run(&'a str),
    /// The backfill exists.
    Backfill(&'a str),
}

impl Snapshot {
    async fn shows(&self, shown: Shown<'_>) -> Result<bool, LedgerError> {
        Ok(match shown {
            Shown::Event(key) => self.row::<IdempotencyKeyRow>(&[key.into()], Days::None).await?.is_some(),
            // One that has ended, which a repeated request or a slow reader looks for, has left the active rows.
            Shown::Run(id) => {
                let key = [id.into()];
                self.row::<RunRow>(&key, Days::None).await?.is_some()
                    || self.row::<RunRow>(&key, days_of(self, id)).await?.is_some()
            }
            Shown::Backfill(id) => self.row::<BackfillRow>(&[id.into()], Days::None).await?.is_some(),
        })
    }
}
