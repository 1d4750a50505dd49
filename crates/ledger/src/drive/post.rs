//! Posting events: they are committed to the outbox with all that belongs to them, and the scope's holder sees them or a
//! node takes the scope.
//!
//! A free scope is made due in the commit of the events. If it is held, its holder waits for records of the outbox; the
//! writer looks at the lease again after its commit and wakes the scope if it was released meanwhile, and the holder looks
//! at its outbox again after the release.

use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;

use super::lease::{self, Look};
use super::outbox::{self, WaitingEvent};

/// Attempts to post beside a lease record that others change.
const ATTEMPTS: usize = 32;

/// Events, and what is committed with them.
#[derive(Debug, Clone, Default)]
pub struct Posting {
    /// What makes the record of the events unique within the scope: an id of the request.
    pub key: String,
    /// The events, which are appended together.
    pub events: Vec<WaitingEvent>,
    /// Writes of the same commit: reservations, audit entries.
    pub writes: Vec<RecordWrite>,
}

/// Commits events with what belongs to them, and has the scope looked after.
///
/// # Errors
/// `Conflict` when an expectation of the writes does not hold, and those of the store.
pub async fn post(store: &dyn Store, scope: &Scope, posting: Posting) -> Result<(), ProviderError> {
    let mut refused: Option<(Expect, ProviderError)> = None;
    for _ in 0..ATTEMPTS {
        let now_ms = store.now_ms().await?;
        let mut writes = posting.writes.clone();
        if !posting.events.is_empty() {
            writes.push(outbox::put(scope, &posting.key, posting.events.clone(), now_ms));
        }
        let woken = match lease::look(store, scope, now_ms).await? {
            Look::Attended => None,
            Look::Wake(write, expect) => {
                writes.push(write);
                Some(expect)
            }
        };
        // The lease is as it was before the last conflict, so that was about the writes of the caller.
        if let (Some(expect), Some((before, _))) = (woken, &refused)
            && expect == *before
            && let Some((_, error)) = refused
        {
            return Err(error);
        }
        match (store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await, woken) {
            (Ok(_), None) => return lease::wake(store, scope, now_ms).await,
            (Ok(_), Some(_)) => return Ok(()),
            (Err(error), Some(expect)) if error.kind() == ErrorKind::Conflict => {
                refused = Some((expect, error));
            }
            (Err(error), _) => return Err(error),
        }
    }
    let message = format!("the lease of {} is changed by many writers; try again", scope.id_prefix());
    Err(ProviderError::unavailable("post", message).nothing_changed())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use segno::store::memory::MemoryStore;
    use segno::store::{DueRecords, Records as _};

    use super::super::place::{LEASES, OUTBOX};
    use super::*;
    use crate::event::RunCancelRequested;

    fn posting(key: &str) -> Posting {
        let event = RunCancelRequested {
            run_id: "run1".into(),
            reason: None,
            requested_by: "ada".into(),
            generation: 0,
        };
        Posting { key: key.to_owned(), events: vec![event.into()], writes: Vec::new() }
    }

    async fn due(store: &dyn Store, kind: &str) -> Vec<String> {
        let request =
            DueRecords { kind, id_prefix: "", now_ms: None, limit: 10, poll_timeout: Duration::ZERO };
        store.due_records(request).await.unwrap().into_iter().map(|record| record.id).collect()
    }

    #[tokio::test]
    async fn the_first_event_of_a_scope_makes_it_due_and_events_wait_in_order() {
        let (store, scope) = (MemoryStore::new(), Scope::new("eu", "acme").unwrap());
        for key in ["b", "a", "c"] {
            post(&*store, &scope, posting(key)).await.unwrap();
        }
        assert_eq!(due(&*store, LEASES).await, ["eu/acme/lease"]);
        assert_eq!(due(&*store, OUTBOX).await, ["eu/acme/b", "eu/acme/a", "eu/acme/c"]);
        let waiting = outbox::read(&*store, &scope, Duration::ZERO).await.unwrap();
        assert!(waiting.iter().all(|waiting| waiting.events.is_ok()));
        assert!(outbox::has_waiting(&*store, &scope).await.unwrap());
        assert!(!outbox::has_waiting(&*store, &Scope::default()).await.unwrap());
    }

    #[tokio::test]
    async fn events_whose_writes_cannot_be_made_do_not_wait() {
        let (store, scope) = (MemoryStore::new(), Scope::default());
        let reservation = RecordWrite::Put {
            kind: "x".to_owned(),
            id: "1".to_owned(),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: None,
            body: bytes::Bytes::from_static(b"1"),
        };
        let with = |key: &str| Posting { writes: vec![reservation.clone()], ..posting(key) };
        post(&*store, &scope, with("a")).await.unwrap();
        let refused = post(&*store, &scope, with("b")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        let free = RecordWrite::Delete {
            kind: LEASES.to_owned(),
            id: "default/default/lease".to_owned(),
            expect: Expect::Anything,
        };
        store.commit_records(RecordBatch { writes: vec![free], ..RecordBatch::default() }).await.unwrap();
        let refused = post(&*store, &scope, with("b")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "also while the scope has to be woken");
        assert_eq!(due(&*store, OUTBOX).await, ["default/default/a"]);
    }
}
