//! Attempts that are begun once: a record says that one was begun, and is durable before the function is called, or before
//! a worker elsewhere gets the call. How often a store has delivered the work would not tell: a store may forget a delivery
//! in a crash, and a node that shuts down in order gives work back as if it had never had it.

use std::time::Duration;

use bytes::Bytes;
use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite};
use segno::work::Lease;
use segno::{ActivityContext, Failure, clock};

use super::catalogue::{Functions, Inner};
use super::error::FunctionError;
use super::invocation::Call;
use super::invoke::{STORE_PAUSE, failure};

/// What a call fails with that was begun, lost with its node or worker, and is not to be begun again.
pub const RECOVERED: &str = "recovered from restart";

/// Kind of the records that say that an attempt was begun. Their ids are the idempotency key of the call and the number of the
/// attempt; their bodies tell one beginning from another.
pub const BEGUN_KIND: &str = "segno.call-begun";

/// How long that is known: longer than an attempt may take.
const KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// One beginning of an attempt.
struct Beginning {
    /// Id of the record.
    id: String,
    /// What no other beginning has.
    own: Bytes,
    /// Until then a store that is away is waited for, in Unix milliseconds; for ever without it.
    until_ms: Option<u64>,
}

impl Beginning {
    /// The one of a lease. No two leases of a store have the same lock.
    fn of_lease(lease: &Lease) -> Self {
        Beginning {
            id: record_id(&lease.idempotency_key, lease.attempt),
            own: Bytes::copy_from_slice(&lease.lock_token.to_be_bytes()),
            until_ms: Some(lease.expires_at_ms),
        }
    }
}

fn record_id(idempotency_key: &str, attempt: u32) -> String {
    format!("{idempotency_key}/{attempt}")
}

impl Functions {
    /// Notes that an attempt is begun by a worker elsewhere, if its call is to be begun once: before the worker gets the
    /// call. A store that is away is waited for while the lease lasts.
    ///
    /// # Errors
    /// What the call fails with: [`RECOVERED`] when a worker had the attempt before and lost its lease.
    pub async fn begin_leased(&self, call: &Call, lease: &Lease) -> Result<(), Failure> {
        if !call.gives_up_when_lost {
            return Ok(());
        }
        let begun = self.inner.begin_once(Beginning::of_lease(lease)).await;
        is_first(begun)
    }

    /// Notes that a worker elsewhere gives an attempt back without having begun it, so that another one may.
    ///
    /// # Errors
    /// `store` when the store cannot do it.
    pub async fn forget_beginning(&self, lease: &Lease) -> Result<(), FunctionError> {
        let (store, Beginning { id, own, .. }) = (&self.inner.store, Beginning::of_lease(lease));
        let Some(known) = store.get_record(BEGUN_KIND, &id).await?.filter(|known| known.body == own) else {
            return Ok(());
        };
        let expect = Expect::Version(known.version);
        let writes = vec![RecordWrite::Delete { kind: BEGUN_KIND.to_owned(), id, expect }];
        match store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            // It has been forgotten in the meantime.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            forgotten => Ok(forgotten.map(drop)?),
        }
    }
}

impl Inner {
    /// Notes that an attempt is begun by this node.
    ///
    /// # Errors
    /// What the call fails with: [`RECOVERED`] when it was begun before, by a node that has died or was cut off with the work
    /// half done, or done.
    pub(super) async fn begin_here(&self, ctx: &ActivityContext) -> Result<(), Failure> {
        let begun = self.begin_once(Beginning {
            id: record_id(ctx.idempotency_key(), ctx.attempt()),
            own: Bytes::copy_from_slice(self.ids.new_uuid().as_bytes()),
            until_ms: None,
        });
        is_first(begun.await)
    }

    /// False if the attempt was begun before. A store that is away is waited for.
    async fn begin_once(&self, beginning: Beginning) -> Result<bool, ProviderError> {
        let Beginning { id, own, until_ms } = beginning;
        let may_wait = || until_ms.is_none_or(|until_ms| self.clock.now_ms() < until_ms);
        loop {
            match self.note_beginning(&id, &own).await {
                Err(error) if error.is_retryable() && may_wait() => {
                    tracing::warn!(id, %error, "a call could not be begun; trying again");
                    clock::sleep(&*self.clock, STORE_PAUSE).await;
                }
                noted => return noted,
            }
        }
    }

    async fn note_beginning(&self, id: &str, own: &Bytes) -> Result<bool, ProviderError> {
        let write = RecordWrite::Put {
            kind: BEGUN_KIND.to_owned(),
            id: id.to_owned(),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: Some(KEEP),
            body: own.clone(),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        match self.store.commit_records(batch).await {
            // It may be the one of a try before, whose answer was lost.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let known = self.store.get_record(BEGUN_KIND, id).await?;
                Ok(known.is_some_and(|known| known.body == *own))
            }
            noted => noted.map(|_| true),
        }
    }
}

fn is_first(begun: Result<bool, ProviderError>) -> Result<(), Failure> {
    match begun {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::application(RECOVERED).non_retryable()),
        Err(error) => Err(failure(&error.into())),
    }
}
