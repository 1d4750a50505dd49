//! Records come due by time, then id, and whoever waits for them is woken (T1).

use segno::store::{AckWorkItem, DueRecords};

use super::fixture::*;

async fn after_span(env: &Env) -> u64 {
    env.now().await + u64::try_from(env.span().as_millis()).unwrap()
}

/// Ids of what is due at a time that the case names.
async fn due_at(env: &Env, now_ms: u64) -> Vec<String> {
    let request =
        DueRecords { kind: "k", id_prefix: "", now_ms: Some(now_ms), limit: 100, poll_timeout: NO_WAIT };
    record_ids(&env.due_records(request).await.unwrap())
}

pub(super) async fn due_records_come_in_the_order_of_their_times(env: Env) {
    env.write([put("a").due(30), put("b").due(10), put("c").due(20)]).await;
    assert_eq!(due_at(&env, 100).await, ["b", "c", "a"]);
}

pub(super) async fn records_due_at_the_same_time_come_in_id_order(env: Env) {
    env.write([put("c").due(10), put("B").due(10), put("a").due(10), put("é").due(10)]).await;
    assert_eq!(due_at(&env, 10).await, ["B", "a", "c", "é"]);
}

pub(super) async fn a_record_is_due_at_its_time_and_not_before(env: Env) {
    env.write([put("a").due(10)]).await;
    assert!(due_at(&env, 9).await.is_empty());
    assert_eq!(due_at(&env, 10).await, ["a"]);
    assert_eq!(due_at(&env, u64::MAX >> 2).await, ["a"]);
}

pub(super) async fn times_are_compared_as_numbers(env: Env) {
    env.write([put("a").due(9), put("b").due(10), put("c").due(256), put("d").due(1 << 40)]).await;
    assert_eq!(due_at(&env, u64::MAX >> 2).await, ["a", "b", "c", "d"]);
}

pub(super) async fn the_store_decides_what_is_due_now(env: Env) {
    env.write([put("past").due(1), put("soon").due(after_span(&env).await)]).await;
    assert_eq!(env.due_ids().await, ["past"]);
    env.advance_span().await;
    assert_eq!(env.due_ids().await, ["past", "soon"]);
}

pub(super) async fn a_record_without_a_time_is_never_due(env: Env) {
    env.write([put("a")]).await;
    assert!(due_at(&env, u64::MAX >> 2).await.is_empty());
    assert_eq!(env.next_due_ms("k").await.unwrap(), None);
}

pub(super) async fn a_due_record_stays_due_until_it_is_written(env: Env) {
    env.write([put("a").due(10)]).await;
    assert_eq!(due_at(&env, 10).await, due_at(&env, 10).await);
    env.write([put("a").due(20)]).await;
    assert!(due_at(&env, 10).await.is_empty());
    assert_eq!(due_at(&env, 20).await, ["a"]);
    env.write([put("a")]).await;
    assert!(due_at(&env, 20).await.is_empty());
}

pub(super) async fn a_deleted_record_is_not_due(env: Env) {
    env.write([put("a").due(10)]).await;
    env.write([delete("a")]).await;
    assert!(due_at(&env, 10).await.is_empty());
    assert_eq!(env.next_due_ms("k").await.unwrap(), None);
}

pub(super) async fn an_expired_record_is_not_due(env: Env) {
    env.write([put("a").due(10).living(env.span()), put("b").due(20)]).await;
    assert_eq!(env.next_due_ms("k").await.unwrap(), Some(10));
    env.advance_span().await;
    assert_eq!(due_at(&env, 100).await, ["b"]);
    assert_eq!(env.next_due_ms("k").await.unwrap(), Some(20));
}

pub(super) async fn a_limit_takes_the_earliest(env: Env) {
    env.write([put("a").due(30), put("b").due(10), put("c").due(20)]).await;
    let request = DueRecords { kind: "k", id_prefix: "", now_ms: Some(100), limit: 2, poll_timeout: NO_WAIT };
    assert_eq!(record_ids(&env.due_records(request).await.unwrap()), ["b", "c"]);
}

pub(super) async fn a_kind_is_due_by_itself(env: Env) {
    env.write([put_of("k", "a").due(20), put_of("other", "b").due(10), put_of("kk", "c").due(5)]).await;
    assert_eq!(due_at(&env, 100).await, ["a"]);
    assert_eq!(env.next_due_ms("k").await.unwrap(), Some(20));
    assert_eq!(env.next_due_ms("none").await.unwrap(), None);
}

pub(super) async fn the_next_time_is_the_earliest_also_when_it_has_passed(env: Env) {
    env.write([put("a").due(u64::MAX >> 2), put("b").due(10)]).await;
    assert_eq!(env.next_due_ms("k").await.unwrap(), Some(10));
    env.write([delete("b")]).await;
    assert_eq!(env.next_due_ms("k").await.unwrap(), Some(u64::MAX >> 2));
}

pub(super) async fn a_due_record_is_the_whole_record(env: Env) {
    env.write([put("a").due(10).living(LOCK)]).await;
    let request = DueRecords { kind: "k", id_prefix: "", now_ms: Some(10), limit: 9, poll_timeout: NO_WAIT };
    assert_eq!(env.due_records(request).await.unwrap(), [env.record("a").await.unwrap()]);
}

pub(super) async fn what_is_due_is_answered_at_once(env: Env) {
    env.write([put("a").due(1)]).await;
    let request = DueRecords { kind: "k", id_prefix: "", now_ms: None, limit: 9, poll_timeout: LOCK };
    assert_eq!(record_ids(&env.due_records(request).await.unwrap()), ["a"]);
}

pub(super) async fn a_question_about_a_named_time_does_not_wait(env: Env) {
    let request = DueRecords { kind: "k", id_prefix: "", now_ms: Some(10), limit: 9, poll_timeout: LOCK };
    assert!(env.due_records(request).await.unwrap().is_empty());
}

pub(super) async fn a_wait_ends_with_nothing_after_its_time(env: Env) {
    let deadline = after_span(&env).await;
    let wait = env.waiting_due(env.span()).await;
    assert!(wait.answer_within(&env, env.span() * 2).await.is_empty());
    assert!(env.now().await >= deadline);
}

pub(super) async fn a_wait_is_woken_by_a_record_that_is_due(env: Env) {
    let wait = env.waiting_due(LOCK).await;
    env.write([put("a")]).await;
    env.settle().await;
    wait.still_waits();
    env.write([put("b").due(1)]).await;
    assert_eq!(record_ids(&wait.answer().await), ["b"]);
}

pub(super) async fn a_wait_is_woken_by_the_time_of_a_record(env: Env) {
    env.write([put("a").due(after_span(&env).await)]).await;
    let wait = env.waiting_due(LOCK).await;
    env.advance_short_of_span().await;
    wait.still_waits();
    env.advance_span().await;
    assert_eq!(record_ids(&wait.answer().await), ["a"]);
}

pub(super) async fn a_wait_is_woken_for_an_earlier_record_that_came_later(env: Env) {
    env.write([put("far").due(u64::MAX >> 2)]).await;
    let wait = env.waiting_due(LOCK).await;
    env.write([put("near").due(after_span(&env).await)]).await;
    env.advance_span().await;
    assert_eq!(record_ids(&wait.answer().await), ["near"]);
}

pub(super) async fn a_wait_is_woken_by_a_record_of_a_turn(env: Env) {
    let turn = env.turn_of("i1").await;
    let wait = env.waiting_due(LOCK).await;
    turn.record(put("a").due(1)).ack().await;
    assert_eq!(record_ids(&wait.answer().await), ["a"]);
}

pub(super) async fn a_wait_is_woken_by_a_record_of_a_finished_activity(env: Env) {
    env.queue(job(1)).await;
    let lock_token = env.work().await.lock_token;
    let wait = env.waiting_due(LOCK).await;
    let records = vec![put("a").due(1)];
    env.ack_work_item(AckWorkItem { lock_token, completion: None, records }).await.unwrap();
    assert_eq!(record_ids(&wait.answer().await), ["a"]);
}

pub(super) async fn every_wait_of_a_kind_is_woken(env: Env) {
    let mut waits = Vec::new();
    for _ in 0..4 {
        waits.push(env.waiting_due(LOCK).await);
    }
    env.write([put_of("other", "x").due(1)]).await;
    env.settle().await;
    waits[0].still_waits();
    env.write([put("a").due(1)]).await;
    for wait in waits {
        assert_eq!(record_ids(&wait.answer().await), ["a"]);
    }
}

pub(super) async fn a_wait_goes_on_when_its_record_is_moved_away(env: Env) {
    env.write([put("a").due(after_span(&env).await)]).await;
    let wait = env.waiting_due(LOCK).await;
    env.write([put("a").due(u64::MAX >> 2)]).await;
    env.advance_span().await;
    wait.still_waits();
    env.write([put("a").due(1)]).await;
    assert_eq!(record_ids(&wait.answer().await), ["a"]);
}

/// Ids of what is due under a prefix, whatever their time.
async fn due_under(env: &Env, id_prefix: &str) -> Vec<String> {
    let request = DueRecords { kind: "k", id_prefix, now_ms: Some(1_000), limit: 100, poll_timeout: NO_WAIT };
    record_ids(&env.due_records(request).await.unwrap())
}

pub(super) async fn a_prefix_selects_due_records_by_their_ids(env: Env) {
    let ids = ["a", "a/", "a/1", "a/10", "a/2/x", "a/2/y/z", "a0/1", "b/a/1"];
    env.write(ids.into_iter().zip(10..).map(|(id, at_ms)| put(id).due(at_ms))).await;
    env.write([put("a/untimed"), put_of("other", "a/1").due(1), put("a/later").due(9_999)]).await;
    for (prefix, expected) in [
        ("", &ids[..]),
        ("a/", &["a/", "a/1", "a/10", "a/2/x", "a/2/y/z"]),
        ("a", &["a", "a/", "a/1", "a/10", "a/2/x", "a/2/y/z", "a0/1"]),
        ("a/1", &["a/1", "a/10"]),
        ("a/2/", &["a/2/x", "a/2/y/z"]),
        ("a/2", &["a/2/x", "a/2/y/z"]),
        ("a/2/y/z", &["a/2/y/z"]),
        ("a/3/", &[]),
        ("c", &[]),
    ] {
        assert_eq!(due_under(&env, prefix).await, expected, "{prefix:?}");
    }
}

pub(super) async fn a_prefix_of_due_records_is_text(env: Env) {
    let ids = ["a%/x", "a_/x", "ab/x", "é/x", "e\u{301}/x", "É/x", "\u{10FFFF}", "\u{10FFFF}/x", "\u{7f}/x"];
    env.write(ids.map(|id| put(id).due(1))).await;
    for (prefix, expected) in [
        ("a%/", &["a%/x"][..]),
        ("a_/", &["a_/x"]),
        ("é/", &["é/x"]),
        ("\u{10FFFF}", &["\u{10FFFF}", "\u{10FFFF}/x"]),
        ("\u{10FFFF}/", &["\u{10FFFF}/x"]),
        ("\u{7f}/", &["\u{7f}/x"]),
    ] {
        assert_eq!(due_under(&env, prefix).await, expected, "{prefix:?}");
    }
}

pub(super) async fn due_records_under_a_prefix_come_in_the_order_of_their_times(env: Env) {
    let of = |id: &str, at_ms| put(id).due(at_ms);
    env.write([of("b/1", 1), of("a/2/x", 30), of("a/1/x", 20), of("a/2/y", 10), of("a/1/y", 30)]).await;
    assert_eq!(due_under(&env, "a/").await, ["a/2/y", "a/1/x", "a/1/y", "a/2/x"]);
    let request =
        DueRecords { kind: "k", id_prefix: "a/", now_ms: Some(30), limit: 2, poll_timeout: NO_WAIT };
    assert_eq!(record_ids(&env.due_records(request).await.unwrap()), ["a/2/y", "a/1/x"]);
}

pub(super) async fn records_under_a_prefix_are_due_as_long_as_they_are(env: Env) {
    env.write([
        put("a/1").due(1),
        put("a/2").due(1).living(env.span()),
        put("a/3").due(1),
        put("b/1").due(1),
    ])
    .await;
    assert_eq!(due_under(&env, "a/").await, ["a/1", "a/2", "a/3"]);
    env.write([put("a/1").due(9_999), delete("a/3"), delete("b/1")]).await;
    assert_eq!(due_under(&env, "a/").await, ["a/2"]);
    env.advance_span().await;
    assert!(due_under(&env, "a/").await.is_empty());
    env.write([put("a/3").due(1)]).await;
    assert_eq!(due_under(&env, "a/").await, ["a/3"]);
}

pub(super) async fn a_wait_under_a_prefix_is_woken_by_a_record_there(env: Env) {
    let wait = env.waiting_due_under("a/", LOCK).await;
    env.write([put("b/1").due(1), put("a").due(1), put_of("other", "a/1").due(1)]).await;
    env.settle().await;
    wait.still_waits();
    env.write([put("a/1").due(1)]).await;
    assert_eq!(record_ids(&wait.answer().await), ["a/1"]);
}

pub(super) async fn a_wait_under_a_prefix_is_woken_by_the_time_of_a_record_there(env: Env) {
    env.write([put("b/1").due(1), put("a/1").due(after_span(&env).await)]).await;
    let wait = env.waiting_due_under("a/", LOCK).await;
    env.advance_short_of_span().await;
    wait.still_waits();
    env.advance_span().await;
    assert_eq!(record_ids(&wait.answer().await), ["a/1"]);
}

pub(super) async fn waits_under_different_prefixes_are_woken_each_for_its_own(env: Env) {
    let one = env.waiting_due_under("a/1/", LOCK).await;
    let both = env.waiting_due_under("a/", LOCK).await;
    let other = env.waiting_due_under("a/2/", LOCK).await;
    env.turn_of("i1").await.record(put("a/2/x").due(1)).ack().await;
    assert_eq!(record_ids(&other.answer().await), ["a/2/x"]);
    assert_eq!(record_ids(&both.answer().await), ["a/2/x"]);
    one.still_waits();
    env.write([put("a/1/x").due(1)]).await;
    assert_eq!(record_ids(&one.answer().await), ["a/1/x"]);
}
