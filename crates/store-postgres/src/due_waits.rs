//! Calls that wait for due records, by kind and id prefix: a commit wakes those that it concerns and no other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Everything that waits for due records.
#[derive(Default)]
pub(crate) struct DueWaits {
    waits: Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    next: u64,
    by_number: BTreeMap<u64, Wait>,
}

struct Wait {
    kind: String,
    id_prefix: String,
    signal: Arc<Notify>,
}

/// A place among the waits, given up when it is dropped. A signal that comes while the call looks is kept.
pub(crate) struct DueWait<'a> {
    waits: &'a DueWaits,
    number: u64,
    signal: Arc<Notify>,
}

impl DueWaits {
    /// Waits for records of a kind whose ids begin with a prefix.
    pub(crate) fn enter(&self, kind: &str, id_prefix: &str) -> DueWait<'_> {
        let signal = Arc::new(Notify::new());
        let wait =
            Wait { kind: kind.to_owned(), id_prefix: id_prefix.to_owned(), signal: Arc::clone(&signal) };
        let mut waits = self.waits();
        let number = waits.next;
        waits.next += 1;
        waits.by_number.insert(number, wait);
        drop(waits);
        DueWait { waits: self, number, signal }
    }

    /// Records may be due earlier, each given by kind and id.
    pub(crate) fn records<'a>(&self, changed: impl Iterator<Item = (&'a str, &'a str)>) {
        let waits = self.waits();
        if waits.by_number.is_empty() {
            return;
        }
        for (kind, id) in changed {
            waits.wake(|wait| wait.kind == kind && id.starts_with(&wait.id_prefix));
        }
    }

    /// A record of a kind in a folder may be due earlier.
    pub(crate) fn folder(&self, kind: &str, folder: &str) {
        let may_have = |prefix: &str| prefix.starts_with(folder) || folder.starts_with(prefix);
        self.waits().wake(|wait| wait.kind == kind && may_have(&wait.id_prefix));
    }

    /// Any record may be due earlier.
    pub(crate) fn all(&self) {
        self.waits().wake(|_| true);
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waits {
    fn wake(&self, concerns: impl Fn(&Wait) -> bool) {
        self.by_number.values().filter(|wait| concerns(wait)).for_each(|wait| wait.signal.notify_one());
    }
}

impl DueWait<'_> {
    /// Done when a record that the call waits for may be due earlier than it was when the call last looked.
    pub(crate) async fn changed(&self) {
        self.signal.notified().await;
    }
}

impl Drop for DueWait<'_> {
    fn drop(&mut self) {
        self.waits.waits().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_woken(wait: &DueWait<'_>) -> bool {
        matches!(pin!(wait.changed()).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
    }

    #[test]
    fn a_change_wakes_the_calls_that_it_concerns() {
        let waits = DueWaits::default();
        let places = [("k", ""), ("k", "a/"), ("k", "a/b"), ("k", "a/b/"), ("other", "a/")];
        let entered = places.map(|(kind, prefix)| waits.enter(kind, prefix));
        let woken = || entered.iter().map(is_woken).collect::<Vec<_>>();
        for (id, expected) in [
            ("a/b", [true, true, true, false, false]),
            ("a/b/c", [true, true, true, true, false]),
            ("a/c", [true, true, false, false, false]),
            ("b", [true, false, false, false, false]),
        ] {
            waits.records([("k", id)].into_iter());
            assert_eq!(woken(), expected, "{id}");
        }
        for (folder, expected) in [
            ("a/", [true, true, true, true, false]),
            ("a/b/", [true, true, true, true, false]),
            ("a/c/", [true, true, false, false, false]),
            ("", [true, true, true, true, false]),
        ] {
            waits.folder("k", folder);
            assert_eq!(woken(), expected, "{folder:?}");
        }
        waits.all();
        assert_eq!(woken(), [true; 5]);
        assert_eq!(woken(), [false; 5], "a signal counts once");
        drop(entered);
        assert!(waits.waits().by_number.is_empty());
    }
}
