//! Admission control for pushed calls: how many may be fetched, and which functions have enough
//! under way.
//!
//! A fetch that is admitted can be sent whole, whatever functions its calls are of: it asks for no
//! more than the fewest places that are left to any function that it does not leave out. So no call
//! is leased that has to wait, and calls are sent in the order in which they were made. When a
//! function that was left out has a place again, the next admission has the function again.
//!
//! How many places one function may take follows from how many are free (a dynamic threshold):
//! however many workers are slow, there is a place for a function that has none.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of one loop that sends calls.
#[derive(Clone)]
pub struct Places {
    most: usize,
    most_of_one: usize,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    taken: Mutex<Taken>,
    /// Keeps a signal that comes before anything waits for it.
    freed: Notify,
}

/// How many places are taken, by the routing tag of the function. No count is 0.
#[derive(Default)]
struct Taken {
    all: usize,
    by_tag: BTreeMap<String, usize>,
}

/// What may be fetched.
pub struct Admission<C> {
    /// At most so many calls.
    pub most: usize,
    /// Tags of functions that have enough under way.
    pub full: BTreeSet<String>,
    /// Done when one of them has a free place again.
    pub changed: C,
}

impl Places {
    /// So many places, and at most so many of them for one function.
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Places { most, most_of_one, shared: Arc::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something may be fetched.
    pub async fn admit(&self) -> Admission<impl Future<Output = ()>> {
        loop {
            if let Some((most, full)) = self.admissible() {
                let (places, left_out) = (self.clone(), full.clone());
                return Admission { most, full, changed: async move { places.one_of(&left_out).await } };
            }
            self.shared.freed.notified().await;
        }
    }

    /// How many places one function may have taken while so many are free.
    fn limit(&self, taken: &Taken) -> usize {
        self.most_of_one.min(self.most.saturating_sub(taken.all)).max(1)
    }

    /// How many calls may be fetched, and the functions that have enough; `None` when all places
    /// are taken.
    fn admissible(&self) -> Option<(usize, BTreeSet<String>)> {
        let taken = self.taken();
        let free = self.most.checked_sub(taken.all).filter(|free| *free > 0)?;
        let limit = self.limit(&taken);
        let is_full = |count: usize| count >= limit;
        let full = taken.by_tag.iter().filter(|(_, count)| is_full(**count)).map(|(tag, _)| tag.clone());
        let rooms = taken.by_tag.values().filter(|count| !is_full(**count)).map(|count| limit - count);
        Some((rooms.min().unwrap_or(limit).min(free), full.collect()))
    }

    /// Waits until one of these functions has a free place.
    async fn one_of(&self, full: &BTreeSet<String>) {
        if full.is_empty() {
            return std::future::pending().await;
        }
        loop {
            {
                let taken = self.taken();
                let limit = self.limit(&taken);
                let is_full = |tag: &String| taken.by_tag.get(tag).is_some_and(|count| *count >= limit);
                if !full.iter().all(is_full) {
                    return;
                }
            }
            self.shared.freed.notified().await;
        }
    }

    /// Takes a place for a call with this routing tag.
    pub fn take(&self, tag: &str) -> Place {
        let mut taken = self.taken();
        taken.all += 1;
        *taken.by_tag.entry(tag.to_owned()).or_default() += 1;
        Place { places: self.clone(), tag: tag.to_owned() }
    }
}

/// A call under way. Its place is free when this is dropped.
pub struct Place {
    places: Places,
    tag: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut taken = self.places.taken();
            taken.all -= 1;
            if let Some(count) = taken.by_tag.get_mut(&self.tag) {
                *count -= 1;
                if *count == 0 {
                    taken.by_tag.remove(&self.tag);
                }
            }
        }
        self.places.shared.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
    }

    fn tags(tags: &[&str]) -> BTreeSet<String> {
        tags.iter().map(|tag| (*tag).to_owned()).collect()
    }

    #[test]
    fn a_fetch_is_never_larger_than_what_one_function_has_left() {
        // Calls under way by tag; how many may be fetched, and which functions are left out.
        for (under_way, most, full) in [
            ("", 3, &[][..]),
            ("a", 2, &[]),
            ("aab", 1, &[]),
            ("aaa", 3, &["a"]),
            ("aaab", 2, &["a"]),
            ("aaabbb", 1, &["a", "b"]),
            ("abcd", 2, &[]),
            ("aabbb", 2, &["a", "b"]),
            ("abcdef", 1, &["a", "b", "c", "d", "e", "f"]),
        ] {
            let places = Places::new(7, 3);
            let _taken: Vec<Place> =
                under_way.chars().map(|tag| places.take(tag.encode_utf8(&mut [0; 4]))).collect();
            assert_eq!(places.admissible(), Some((most, tags(full))), "{under_way}");
        }
        let places = Places::new(7, 3);
        let taken: Vec<Place> = (0..7).map(|n| places.take(if n < 3 { "a" } else { "b" })).collect();
        assert_eq!(places.admissible(), None);
        drop(taken);
        assert_eq!(places.admissible(), Some((3, BTreeSet::new())));
        assert!(places.taken().by_tag.is_empty());
    }

    #[test]
    fn a_function_that_was_left_out_is_reported_when_it_has_a_place() {
        let places = Places::new(9, 1);
        let (a, b) = (places.take("a"), places.take("b"));
        assert!(!is_ready(places.one_of(&tags(&["a"]))));
        drop(b);
        assert!(!is_ready(places.one_of(&tags(&["a"]))), "that was another one");
        drop(a);
        assert!(is_ready(places.one_of(&tags(&["a"]))));
        assert!(!is_ready(places.one_of(&tags(&[]))), "nothing was left out");
    }

    #[tokio::test]
    async fn a_waiting_admission_goes_on_when_a_place_is_free() {
        let places = Places::new(1, 1);
        let place = places.take("a");
        let mut waits = Box::pin(places.admit());
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(place);
        assert_eq!(waits.await.most, 1);
    }
}
