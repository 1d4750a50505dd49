//! Attempts that are begun once: a record says that one was begun, and is durable before the function is called. How often
//! a store has delivered the work would not tell: a store may forget a delivery in a crash, and a node that shuts down in
//! order gives work back as if it had never had it.

use std::time::Duration;

use bytes::Bytes;
use segno::ids::{IdSource, SystemIds};
use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite};
use segno::{ActivityContext, clock};

use super::catalogue::Inner;
use super::invoke::STORE_PAUSE;

/// What a call fails with that was begun, lost with its node, and is not to be begun again.
pub const RECOVERED: &str = "recovered from restart";

/// Kind of the records that say that an attempt was begun. Their ids are the idempotency key of the call and the number of the
/// attempt; their bodies tell one beginning from another.
pub const BEGUN_KIND: &str = "segno.call-begun";

/// How long that is known: longer than an attempt may take.
const KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Inner {
    /// Notes that an attempt is begun. False if it was begun before, by somebody who has died or was cut off with the work
    /// half done, or done. A store that is away is waited for.
    pub(super) async fn begin_once(&self, ctx: &ActivityContext) -> Result<bool, ProviderError> {
        let id = format!("{}/{}", ctx.idempotency_key(), ctx.attempt());
        let own = Bytes::copy_from_slice(SystemIds.new_uuid().as_bytes());
        loop {
            match self.note_beginning(&id, &own).await {
                Err(error) if error.is_retryable() => {
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
