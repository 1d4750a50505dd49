//! Admission control for previews of a node: a few at once, one of each tenant, in the order in which
//! tenants came. A tenant whose preview has ended is behind all that wait.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock::{self, Clock};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::problem::{Code, Refusal};

/// Most previews that a node makes at once: each may read 256 MiB.
const MAX_PREVIEWS: usize = 4;

/// Most tenants whose previews wait or are made.
const MAX_TENANTS: usize = 100;

/// Longest wait for a place: twice the time of a preview.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

/// The places of this node.
pub(super) static PREVIEW_PLACES: PreviewPlaces = PreviewPlaces::new();

/// Places for previews.
pub(super) struct PreviewPlaces {
    /// Its waiters are served first in, first out.
    free: Semaphore,
    /// Tenants with a preview that waits or is made.
    tenants: Mutex<BTreeSet<String>>,
}

/// A preview that waits for a place, or has one.
pub(super) struct PreviewPlace<'p> {
    places: &'p PreviewPlaces,
    tenant: String,
    permit: Option<SemaphorePermit<'p>>,
}

impl PreviewPlaces {
    const fn new() -> Self {
        PreviewPlaces { free: Semaphore::const_new(MAX_PREVIEWS), tenants: Mutex::new(BTreeSet::new()) }
    }

    fn tenants(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// `unavailable` when the tenant has a preview already, or no place is free for a long time.
    pub(super) async fn take(&self, tenant: String, clock: &dyn Clock) -> Result<PreviewPlace<'_>, Refusal> {
        let mut place = self.queue(tenant)?;
        let permit = clock::timeout(clock, LONGEST_WAIT, self.free.acquire()).await;
        let Some(Ok(permit)) = permit else {
            let wait_s = LONGEST_WAIT.as_secs();
            let detail = format!(
                "{MAX_PREVIEWS} previews of other tenants are being made, and none of the places was free within \
                 {wait_s} s; try again in a minute"
            );
            return Err(Refusal::new(Code::Unavailable, detail));
        };
        place.permit = Some(permit);
        Ok(place)
    }

    fn queue(&self, tenant: String) -> Result<PreviewPlace<'_>, Refusal> {
        let mut tenants = self.tenants();
        let refused = |detail: String| Err(Refusal::new(Code::Unavailable, detail));
        if tenants.contains(&tenant) {
            return refused("a preview of this tenant is being made; try again when it ends".to_owned());
        }
        if tenants.len() >= MAX_TENANTS {
            return refused(format!("previews of {MAX_TENANTS} tenants wait already; try again in a minute"));
        }
        tenants.insert(tenant.clone());
        Ok(PreviewPlace { places: self, tenant, permit: None })
    }
}

impl Drop for PreviewPlace<'_> {
    fn drop(&mut self) {
        // The tenant first, so that no free place is refused to it.
        self.places.tenants().remove(&self.tenant);
        drop(self.permit.take());
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use segno::clock::SystemClock;

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn a_free_place_goes_to_the_tenant_that_waits_longest() {
        let places = PreviewPlaces::new();
        let take = |tenant: &str| places.take(tenant.to_owned(), &SystemClock);
        let mut made = Vec::new();
        for tenant in ["a", "b", "c", "d"] {
            made.push(take(tenant).await.map_err(|refusal| refusal.to_string()).unwrap());
        }
        let again = take("a").await.err().unwrap().to_string();
        assert!(again.contains("of this tenant"), "{again}");
        let mut new = pin!(take("new"));
        assert!(poll(new.as_mut()).is_none(), "all places are taken");
        // One that ends and is wanted again at once is behind the one that waits.
        drop(made.remove(0));
        let mut greedy = pin!(take("a"));
        assert!(poll(greedy.as_mut()).is_none());
        let new = poll(new.as_mut()).unwrap().map_err(|refusal| refusal.to_string()).unwrap();
        drop(new);
        assert!(poll(greedy.as_mut()).is_some());
    }
}
