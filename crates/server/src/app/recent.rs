//! Answers that are good for a moment: a page that many people have open is computed once.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use segno::clock::Clock;
use tokio::sync::Mutex as AsyncMutex;

/// An answer, and when it was made.
type Slot<V> = Arc<AsyncMutex<Option<(u64, Arc<V>)>>>;

/// Answers by what they are for; the least recently used ones are forgotten.
pub struct Recent<K, V> {
    good_for_ms: u64,
    slots: Mutex<LruCache<K, Slot<V>>>,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    /// So many answers, each good for so long.
    pub fn new(good_for_ms: u64, most: NonZeroUsize) -> Self {
        Recent { good_for_ms, slots: Mutex::new(LruCache::new(most)) }
    }

    /// The answer for a key. Callers of one key at a time wait for one computation.
    ///
    /// # Errors
    /// Those of the computation, which are not kept.
    pub async fn get<E>(
        &self,
        key: &K,
        clock: &dyn Clock,
        compute: impl Future<Output = Result<V, E>>,
    ) -> Result<Arc<V>, E> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.get_or_insert(key.clone(), Slot::default).clone()
        };
        let mut slot = slot.lock().await;
        let now_ms = clock.now_ms();
        if let Some((at_ms, answer)) = &*slot
            && now_ms.saturating_sub(*at_ms) < self.good_for_ms
        {
            return Ok(Arc::clone(answer));
        }
        let answer = Arc::new(compute.await?);
        *slot = Some((now_ms, Arc::clone(&answer)));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use segno_testkit::clock::VirtualClock;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_computed_again_once_it_is_old_and_an_error_is_not_kept() {
        let clock = VirtualClock::new();
        let recent = Recent::new(1_000, NonZeroUsize::MIN);
        let get = async |answer: Result<u32, &'static str>| {
            recent.get(&"a", &*clock, async { answer }).await.map(|answer| *answer)
        };
        assert_eq!(get(Err("away")).await, Err("away"));
        assert_eq!((get(Ok(1)).await, get(Ok(2)).await), (Ok(1), Ok(1)));
        clock.advance(Duration::from_secs(1));
        assert_eq!(get(Ok(3)).await, Ok(3));
    }
}
