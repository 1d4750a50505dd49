//! Order, locks and expiry of the orchestrator queue.

use super::*;
use crate::store::SemverRange;

struct Fixture {
    queue: OrchestratorQueue,
    tokens: Sequence,
    now_ms: u64,
}

const LOCK_MS: u64 = 10;

impl Fixture {
    fn new() -> Self {
        Fixture { queue: OrchestratorQueue::default(), tokens: Sequence::default(), now_ms: 0 }
    }

    fn send(&mut self, instance: &str, body: &'static str) -> &mut Self {
        self.send_at(instance, body, None)
    }

    fn send_at(&mut self, instance: &str, body: &'static str, visible_at_ms: Option<u64>) -> &mut Self {
        let message = OrchestratorMessage { visible_at_ms, ..OrchestratorMessage::new(instance, body) };
        self.queue.enqueue(message, self.now_ms, |_| None);
        self
    }

    fn at(&mut self, now_ms: u64) -> &mut Self {
        self.now_ms = now_ms;
        self.queue.advance(now_ms);
        self
    }

    fn take(&mut self) -> Option<FetchedBatch> {
        self.queue.take_next(None, self.now_ms + LOCK_MS, &mut self.tokens)
    }

    /// What the next fetch gives, as `instance:body,body*attempts`, or `-`.
    fn taken(&mut self) -> (String, LockToken) {
        let Some(batch) = self.take() else { return ("-".to_owned(), LockToken(0)) };
        let bodies: Vec<_> = batch
            .messages
            .iter()
            .map(|message| String::from_utf8_lossy(&message.body).into_owned())
            .collect();
        (format!("{}:{}*{}", batch.instance, bodies.join(","), batch.attempt_count), batch.lock_token)
    }

    fn depths(&self) -> (u64, u64, u64) {
        let Depths { visible, delayed, locked } = self.queue.depths();
        (visible, delayed, locked)
    }
}

#[test]
fn instances_come_in_the_order_of_their_oldest_visible_message() {
    let mut queue = Fixture::new();
    queue.send_at("late", "1", Some(5)).send("b", "2").send("a", "3").send("b", "4");
    queue.at(5).send("late", "5");
    for expected in ["late:1,5*1", "b:2,4*1", "a:3*1", "-"] {
        assert_eq!(queue.taken().0, expected);
    }
}

#[test]
fn messages_that_arrive_under_a_lock_wait_for_the_next_fetch() {
    let mut queue = Fixture::new();
    let (_, token) = queue.send("a", "1").taken();
    assert_eq!(queue.send("a", "2").taken().0, "-");
    assert_eq!(queue.depths(), (1, 0, 1));
    drop(queue.queue.consume(token, AfterAck::Release).unwrap());
    assert_eq!(queue.taken().0, "a:2*1");
}

#[test]
fn a_kept_lock_lets_the_holder_ack_again_and_nothing_new_is_lost() {
    let mut queue = Fixture::new();
    let (_, token) = queue.send("a", "1").taken();
    drop(queue.queue.consume(token, AfterAck::KeepLock).unwrap());
    queue.send("a", "2");
    assert_eq!(queue.taken().0, "-");
    drop(queue.queue.consume(token, AfterAck::Release).unwrap());
    assert!(queue.queue.consume(token, AfterAck::Release).is_none());
    assert_eq!(queue.taken().0, "a:2*1");
}

#[test]
fn a_lock_ends_at_its_millisecond_and_the_attempt_stays_counted() {
    let mut queue = Fixture::new();
    let (_, token) = queue.send("a", "1").taken();
    queue.send("a", "2").at(LOCK_MS - 1);
    assert!(queue.queue.locked_instance(token).is_some());
    queue.at(LOCK_MS);
    assert!(queue.queue.locked_instance(token).is_none());
    assert_eq!(queue.queue.renew(token, 99), None);
    assert_eq!(queue.queue.abandon(token, 0, Attempt::Counts, LOCK_MS), None);
    assert_eq!(queue.depths(), (2, 0, 0));
    assert_eq!(queue.taken().0, "a:1,2*2");
}

#[test]
fn an_expired_kept_lock_leaves_no_trace() {
    let mut queue = Fixture::new();
    let (_, token) = queue.send("a", "1").taken();
    drop(queue.queue.consume(token, AfterAck::KeepLock).unwrap());
    queue.at(LOCK_MS);
    assert!(queue.queue.instances.is_empty() && queue.queue.locks.is_empty());
    assert_eq!(queue.queue.next_change_ms(), None);
}

#[test]
fn abandoned_messages_come_back_after_the_delay_with_the_right_count() {
    for (attempt, expected) in [(Attempt::Counts, "a:1*2"), (Attempt::Ignored, "a:1*1")] {
        let mut queue = Fixture::new();
        let (_, token) = queue.send("a", "1").taken();
        queue.queue.abandon(token, 5, attempt, 0).unwrap();
        assert_eq!(queue.at(4).taken().0, "-");
        assert_eq!(queue.queue.next_change_ms(), Some(5));
        assert_eq!(queue.at(5).taken().0, expected, "{attempt:?}");
    }
}

#[test]
fn a_cancelled_timer_is_gone_whether_visible_or_delayed() {
    let timer = TimerIdentifier { execution_id: 1, timer_id: 7 };
    for visible_at_ms in [None, Some(50)] {
        let mut queue = Fixture::new();
        let message =
            OrchestratorMessage { timer: Some(timer), visible_at_ms, ..OrchestratorMessage::new("a", "t") };
        queue.queue.enqueue(message, 0, |_| None);
        queue.queue.cancel_timer("a", TimerIdentifier { timer_id: 8, ..timer });
        assert_eq!(queue.queue.instances.len(), 1, "another timer");
        queue.queue.cancel_timer("a", timer);
        assert_eq!(queue.at(50).taken().0, "-", "{visible_at_ms:?}");
        assert!(queue.queue.instances.is_empty() && queue.queue.delayed.is_empty());
        assert_eq!(queue.depths(), (0, 0, 0));
    }
}

#[test]
fn an_unsupported_pin_is_passed_over_and_found_after_a_repin() {
    let old = SemverRange { min: Version::new(0, 0, 0), max: Version::new(1, 0, 0) };
    let filter = DispatcherCapabilityFilter { supported_versions: vec![old] };
    let mut queue = Fixture::new();
    let new = Version::new(2, 0, 0);
    queue.queue.enqueue(OrchestratorMessage::new("new", "1"), 0, |_| Some(new.clone()));
    queue.send("unpinned", "2");
    let next = |fixture: &mut Fixture| {
        let ready = fixture.queue.ready_count(Some(&filter));
        let batch = fixture.queue.take_next(Some(&filter), LOCK_MS, &mut fixture.tokens);
        (ready, batch.map(|batch| batch.instance.to_string()))
    };
    assert_eq!(next(&mut queue), (1, Some("unpinned".to_owned())));
    assert_eq!(next(&mut queue), (0, None));
    queue.queue.set_pin(&Arc::from("new"), Some(&Version::new(1, 0, 0)));
    assert_eq!(next(&mut queue), (1, Some("new".to_owned())));
}

#[test]
fn a_removed_instance_loses_its_messages_lock_and_pending_start() {
    let mut queue = Fixture::new();
    let start = OrchestratorMessage { guard: StartGuard::IfAbsent, ..OrchestratorMessage::new("a", "start") };
    queue.queue.enqueue(start, 0, |_| None);
    assert!(queue.queue.has_guarded_start("a"));
    let (_, token) = queue.taken();
    assert!(queue.queue.has_guarded_start("a"), "fetched is still queued");
    queue.send("a", "2").send_at("a", "3", Some(50));
    assert_eq!(queue.queue.remove_instance("a").len(), 3);
    assert!(queue.queue.consume(token, AfterAck::Release).is_none());
    assert!(!queue.queue.has_guarded_start("a"));
    assert_eq!(queue.depths(), (0, 0, 0));
    assert_eq!(queue.at(100).taken().0, "-");
}
