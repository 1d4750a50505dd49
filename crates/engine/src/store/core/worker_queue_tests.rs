//! Order, routing and locks of the worker queue.

use std::time::Duration;

use super::*;
use crate::store::{SessionClaims, TagPrefixes};

fn message(activity_id: u64, tag: Option<&str>, session: Option<&str>) -> WorkerMessage {
    let instance = "a".to_owned();
    WorkerMessage {
        activity: ScheduledActivityIdentifier { instance, execution_id: 1, activity_id },
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
        visible_at_ms: None,
        body: bytes::Bytes::new(),
    }
}

fn owner(name: &str) -> SessionFetchConfig {
    let (lock_timeout, claims) = (Duration::from_millis(20), SessionClaims::Allowed);
    SessionFetchConfig { owner_id: name.to_owned(), lock_timeout, claims }
}

struct Fixture {
    queue: WorkerQueue,
    tokens: Sequence,
    now_ms: u64,
}

impl Fixture {
    fn with(messages: impl IntoIterator<Item = WorkerMessage>) -> Self {
        let mut queue = WorkerQueue::default();
        for message in messages {
            queue.enqueue(message, 0);
        }
        Fixture { queue, tokens: Sequence::default(), now_ms: 0 }
    }

    fn at(&mut self, now_ms: u64) -> &mut Self {
        self.now_ms = now_ms;
        self.queue.advance(now_ms);
        self
    }

    /// Activity id, attempt count and token of the next fetch, with a lock of 10 ms; also checks that the count of
    /// ready work shows whether there is any.
    fn take(
        &mut self,
        tags: &TagFilter,
        session: Option<&SessionFetchConfig>,
    ) -> Option<(u64, u32, LockToken)> {
        let wanted = WorkFilter { tags, session };
        let ready = self.queue.ready_count(&wanted);
        let item = self.queue.take_next(&wanted, self.now_ms + 10, self.now_ms, &mut self.tokens);
        assert_eq!(ready > 0, item.is_some(), "ready count agrees with the fetch");
        item.map(|item| (item.message.activity.activity_id, item.attempt_count, item.lock_token))
    }

    fn take_id(&mut self, tags: &TagFilter, session: Option<&SessionFetchConfig>) -> Option<u64> {
        self.take(tags, session).map(|(activity_id, ..)| activity_id)
    }
}

fn prefixes<const P: usize, const E: usize>(prefixes: [&str; P], except: [&str; E]) -> TagFilter {
    TagFilter::Prefixes(TagPrefixes {
        prefixes: prefixes.map(str::to_owned).into(),
        except: except.map(str::to_owned).into(),
        ..TagPrefixes::default()
    })
}

#[test]
fn each_filter_takes_the_oldest_of_its_tags() {
    let all = || [message(1, Some("gpu"), None), message(2, None, None), message(3, Some("cpu"), None)];
    for (filter, expected) in [
        (TagFilter::DefaultOnly, vec![2]),
        (TagFilter::tags(["cpu", "gpu"]), vec![1, 3]),
        (TagFilter::default_and(["cpu"]), vec![2, 3]),
        (prefixes(["c", "g", "gp"], []), vec![1, 3]),
        (prefixes(["c", "g"], ["gpu", "c"]), vec![3]),
        (prefixes([""], ["cpu"]), vec![1]),
        (TagFilter::Any, vec![1, 2, 3]),
        (TagFilter::None, vec![]),
    ] {
        let mut queue = Fixture::with(all());
        let taken: Vec<u64> = std::iter::from_fn(|| queue.take_id(&filter, None)).collect();
        assert_eq!(taken, expected, "{filter:?}");
    }
}

#[test]
fn session_work_goes_to_the_owner_only_and_to_others_after_the_lock() {
    let mut queue =
        Fixture::with([message(1, None, Some("s")), message(2, None, None), message(3, None, Some("s"))]);
    let (ours, theirs) = (owner("ours"), owner("theirs"));
    assert_eq!(queue.take_id(&TagFilter::Any, Some(&ours)), Some(1));
    assert_eq!(queue.take_id(&TagFilter::Any, Some(&theirs)), Some(2));
    assert_eq!(queue.take_id(&TagFilter::Any, Some(&theirs)), None);
    assert_eq!(queue.take_id(&TagFilter::Any, None), None);
    queue.at(20);
    assert_eq!(queue.take(&TagFilter::Any, Some(&theirs)).map(|(id, n, _)| (id, n)), Some((1, 2)));
    assert_eq!(queue.take(&TagFilter::Any, Some(&ours)).map(|(id, n, _)| (id, n)), Some((2, 2)));
    assert_eq!(queue.take_id(&TagFilter::Any, Some(&ours)), None, "the session has a new owner");
    assert_eq!(queue.take_id(&TagFilter::Any, Some(&theirs)), Some(3));
}

#[test]
fn an_expired_token_is_lost_even_without_another_fetch() {
    let mut queue = Fixture::with([message(1, None, None)]);
    let (.., token) = queue.take(&TagFilter::Any, None).unwrap();
    assert_eq!(queue.queue.renew(token, 15, 0), Some(()));
    assert!(queue.at(14).queue.holds(token));
    queue.at(15);
    assert_eq!(queue.queue.finish(token, 15), None);
    assert_eq!(queue.queue.renew(token, 99, 15), None);
    assert_eq!(queue.queue.abandon(token, 15, Attempt::Counts, 15), None);
    assert_eq!(queue.take(&TagFilter::Any, None).map(|(id, n, _)| (id, n)), Some((1, 2)));
}

#[test]
fn abandoned_work_comes_back_in_its_old_place() {
    let mut queue = Fixture::with([message(1, None, None), message(2, None, None)]);
    let (.., token) = queue.take(&TagFilter::Any, None).unwrap();
    queue.queue.abandon(token, 5, Attempt::Ignored, 0);
    assert_eq!(queue.queue.next_change_ms(), Some(5));
    assert_eq!(queue.at(5).take(&TagFilter::Any, None).map(|(id, n, _)| (id, n)), Some((1, 1)));
    assert_eq!(queue.take_id(&TagFilter::Any, None), Some(2));
}

#[test]
fn cancelled_and_removed_work_leaves_nothing_behind() {
    let delayed = WorkerMessage { visible_at_ms: Some(50), ..message(4, None, Some("s")) };
    let mut queue = Fixture::with([
        message(1, None, None),
        message(2, Some("t"), None),
        message(3, None, Some("s")),
        delayed,
    ]);
    let (.., token) = queue.take(&TagFilter::Any, None).unwrap();
    queue.queue.cancel(&message(1, None, None).activity);
    queue.queue.cancel(&message(9, None, None).activity);
    assert!(!queue.queue.holds(token));
    assert_eq!(queue.queue.remove_instance("a").len(), 3);
    assert_eq!(queue.queue.depths(), Depths::default());
    assert!(queue.queue.items.is_empty() && queue.queue.by_instance.is_empty());
    assert_eq!(queue.queue.next_change_ms(), None);
    assert_eq!(queue.at(99).take_id(&TagFilter::Any, Some(&owner("x"))), None);
}
