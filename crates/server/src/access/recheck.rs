//! Keys are verified again while a request lasts: streams, long polls and queries end when their key does.

use std::sync::PoisonError;
use std::time::Duration;

use segno::clock;

use super::keys::{KeyStore, REVOKED_WITHIN};
use super::{Caller, Need};
use crate::problem::{Code, Refusal};
use crate::scope::Scope;

/// A key that could not be verified for so long, because the store is away, is not taken for
/// granted any more.
const MAX_UNVERIFIED: Duration = Duration::from_secs(60);

impl KeyStore {
    /// Resolves when a caller may not go on: its key was revoked or has expired, or its role or
    /// grants do not cover it any more.
    pub async fn until_lost(&self, caller: &Caller, need: Need, scope: Option<&Scope>) -> Refusal {
        let Some(id) = caller.key_id() else { return std::future::pending().await };
        let mut verified_ms = self.clock.now_ms();
        loop {
            let mut revoked = std::pin::pin!(self.revoked.notified());
            revoked.as_mut().enable();
            match self.current(id).await {
                Ok(Some(current))
                    if current.may(need) && scope.is_none_or(|scope| current.may_enter(scope)) =>
                {
                    verified_ms = self.clock.now_ms();
                }
                Ok(Some(_)) => {
                    return Refusal::new(Code::Forbidden, "the key does not allow this any more");
                }
                Ok(None) => {
                    return Refusal::new(Code::Unauthorized, "the key was revoked or has expired");
                }
                Err(refusal) => {
                    let unverified_ms = self.clock.now_ms().saturating_sub(verified_ms);
                    if Duration::from_millis(unverified_ms) >= MAX_UNVERIFIED {
                        return refusal;
                    }
                }
            }
            tokio::select! {
                biased;
                () = revoked => {}
                () = clock::sleep(&*self.clock, REVOKED_WITHIN) => {}
            }
        }
    }

    /// A key as it is stored now, or was a moment ago; `None` when it does not work any more.
    pub(super) async fn current(&self, id: &str) -> Result<Option<Caller>, Refusal> {
        let now_ms = self.clock.now_ms();
        let known = {
            let mut rechecked = self.rechecked.lock().unwrap_or_else(PoisonError::into_inner);
            rechecked.get(id).filter(|known| known.is_fresh(now_ms)).cloned()
        };
        let known = match known {
            Some(known) => known,
            None => {
                let read = self.read(id).await?;
                let mut rechecked = self.rechecked.lock().unwrap_or_else(PoisonError::into_inner);
                rechecked.put(id.to_owned(), read.clone());
                read
            }
        };
        Ok(known.caller_at(now_ms))
    }
}
