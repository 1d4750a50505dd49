//! Records change under conditions, all or nothing, and a version never comes back (D2, D4).

use segno::store::{ErrorKind, Expect, Record, RecordBatch, RecordWrite};

use super::fixture::*;

pub(super) async fn a_record_comes_back_as_it_was_written(env: Env) {
    let versions = env.write([put("a").due(77).with_body("document")]).await;
    let expected = Record {
        kind: "k".to_owned(),
        id: "a".to_owned(),
        version: versions[0],
        due_at_ms: Some(77),
        expires_at_ms: None,
        body: "document".into(),
    };
    assert_eq!(env.record("a").await, Some(expected));
}

pub(super) async fn an_unknown_record_is_absent(env: Env) {
    env.write([put("a")]).await;
    assert_eq!(env.record("b").await, None);
    assert_eq!(env.get_record("other", "a").await.unwrap(), None);
}

pub(super) async fn a_write_replaces_the_whole_record(env: Env) {
    env.write([put("a").due(77).living(LOCK)]).await;
    env.write([put("a").with_body("new")]).await;
    let record = env.record("a").await.unwrap();
    assert_eq!((record.due_at_ms, record.expires_at_ms, record.body), (None, None, "new".into()));
}

pub(super) async fn versions_grow_over_all_records(env: Env) {
    let mut versions = env.write([put("a"), put("b"), put_of("other", "a")]).await;
    versions.extend(env.write([put("a")]).await);
    versions.extend(env.write([put("c")]).await);
    assert!(versions[0] > 0 && versions.is_sorted_by(|before, after| before < after), "{versions:?}");
}

pub(super) async fn a_version_never_comes_back_after_a_deletion(env: Env) {
    let old = env.write([put("a")]).await[0];
    assert_eq!(env.write([delete("a")]).await, [0]);
    let new = env.write([put("a")]).await[0];
    assert!(new > old);
    conflict(env.try_write([put("a").expecting(Expect::Version(old))]).await);
}

pub(super) async fn versions_are_returned_in_the_order_of_the_writes(env: Env) {
    env.write([put("b")]).await;
    let versions = env.write([put("c"), delete("b"), put("a")]).await;
    assert_eq!(versions, [env.record("c").await.unwrap().version, 0, env.record("a").await.unwrap().version]);
}

pub(super) async fn a_write_that_expects_absence_needs_absence(env: Env) {
    env.write([put("a").expecting(Expect::Absent)]).await;
    conflict(env.try_write([put("a").expecting(Expect::Absent).with_body("other")]).await);
    assert_eq!(env.record("a").await.unwrap().body, "a");
}

pub(super) async fn a_write_that_expects_a_version_needs_that_version(env: Env) {
    let version = env.write([put("a")]).await[0];
    let next = env.write([put("a").expecting(Expect::Version(version)).with_body("b")]).await[0];
    conflict(env.try_write([put("a").expecting(Expect::Version(version)).with_body("c")]).await);
    let record = env.record("a").await.unwrap();
    assert_eq!((record.version, record.body), (next, "b".into()));
}

pub(super) async fn a_write_that_expects_a_version_needs_a_record(env: Env) {
    conflict(env.try_write([put("a").expecting(Expect::Version(1))]).await);
    conflict(env.try_write([put("a").expecting(Expect::Version(0))]).await);
    assert_eq!(env.record("a").await, None);
}

pub(super) async fn a_write_that_expects_anything_always_works(env: Env) {
    env.write([put("a").with_body("1")]).await;
    env.write([put("a").with_body("2")]).await;
    assert_eq!(env.record("a").await.unwrap().body, "2");
}

pub(super) async fn a_deletion_removes_the_record(env: Env) {
    env.write([put("a"), put("b")]).await;
    env.write([delete("a")]).await;
    assert_eq!(env.record("a").await, None);
    assert!(env.record("b").await.is_some());
}

pub(super) async fn deleting_what_is_not_there_is_fine(env: Env) {
    assert_eq!(env.write([delete("a")]).await, [0]);
    assert_eq!(env.write([delete("a").expecting(Expect::Absent)]).await, [0]);
}

pub(super) async fn a_deletion_that_expects_a_version_needs_that_version(env: Env) {
    conflict(env.try_write([delete("a").expecting(Expect::Version(1))]).await);
    let old = env.write([put("a")]).await[0];
    let new = env.write([put("a")]).await[0];
    conflict(env.try_write([delete("a").expecting(Expect::Version(old))]).await);
    env.write([delete("a").expecting(Expect::Version(new))]).await;
    assert_eq!(env.record("a").await, None);
}

pub(super) async fn a_deletion_that_expects_absence_needs_absence(env: Env) {
    env.write([put("a")]).await;
    conflict(env.try_write([delete("a").expecting(Expect::Absent)]).await);
    assert!(env.record("a").await.is_some());
}

pub(super) async fn a_deletion_that_expects_absence_deletes_nothing(env: Env) {
    let version = env.write([put("a").due(77).with_body("1")]).await[0];
    let batch = [put("b").expecting(Expect::Absent), delete("a").expecting(Expect::Absent), put("c")];
    conflict(env.try_write(batch).await);
    let kept = env.record("a").await.unwrap();
    assert_eq!((kept.version, kept.due_at_ms, kept.body), (version, Some(77), "1".into()));
    assert_eq!((env.record("b").await, env.record("c").await), (None, None));
    // Of another kind there is none.
    let other = RecordWrite::Delete { kind: "l".to_owned(), id: "a".to_owned(), expect: Expect::Absent };
    assert_eq!(env.try_write([other, put("b").expecting(Expect::Absent)]).await.unwrap()[0], 0);
    assert_eq!(env.record("a").await.unwrap().version, version);
    assert!(env.record("b").await.is_some());
}

pub(super) async fn a_turn_that_expects_absence_needs_absence(env: Env) {
    env.write([put("a")]).await;
    for expected in [put("a").expecting(Expect::Absent), delete("a").expecting(Expect::Absent)] {
        let instance = format!("i-{}", env.record("a").await.unwrap().version);
        let turn = env.turn_of(&instance).await.record(put("b")).record(expected);
        conflict(turn.try_ack().await);
        assert_eq!((env.record("a").await.unwrap().body, env.record("b").await), ("a".into(), None));
        env.write([put("a")]).await;
    }
}

pub(super) async fn an_expired_record_that_must_be_absent_makes_room(env: Env) {
    env.write([put("a").living(env.span()), put("b").living(env.span()), put("c").living(LOCK)]).await;
    env.advance_span().await;
    let claims =
        || [put("a").with_body("new").expecting(Expect::Absent), delete("b").expecting(Expect::Absent)];
    let [claim, deletion] = claims();
    conflict(env.try_write([claim, deletion, delete("c").expecting(Expect::Absent)]).await);
    assert_eq!((env.record("a").await, env.record("b").await), (None, None));
    let versions = env.write(claims()).await;
    assert_eq!(env.record("a").await.unwrap().version, versions[0]);
    assert_eq!((versions[1], env.record("b").await), (0, None));
    assert!(env.record("c").await.is_some());
}

pub(super) async fn a_batch_with_one_failed_expectation_changes_nothing(env: Env) {
    env.write([put("a").with_body("1"), put("c")]).await;
    let failing = put("b").expecting(Expect::Version(9));
    conflict(env.try_write([put("a").with_body("2"), delete("c"), failing, put("d")]).await);
    assert_eq!(env.record("a").await.unwrap().body, "1");
    assert!(env.record("c").await.is_some());
    assert_eq!((env.record("b").await, env.record("d").await), (None, None));
}

pub(super) async fn a_key_that_occurs_twice_is_invalid(env: Env) {
    refused(env.try_write([put("a"), put("b"), put("a")]).await, ErrorKind::Invalid);
    refused(env.try_write([put("a"), delete("a")]).await, ErrorKind::Invalid);
    assert_eq!((env.record("a").await, env.record("b").await), (None, None));
    env.write([put_of("k", "a"), put_of("l", "a")]).await;
}

pub(super) async fn an_empty_batch_does_nothing(env: Env) {
    assert_eq!(env.write([]).await, [] as [u64; 0]);
}

pub(super) async fn a_batch_enqueues_its_work(env: Env) {
    let batch = RecordBatch {
        writes: vec![put("a")],
        orchestrator_items: vec![message("i1", "go"), message("i2", "go")],
        worker_items: vec![job(1), job(2)],
        ..RecordBatch::default()
    };
    assert_eq!(env.commit_records(batch).await.unwrap().len(), 1);
    assert_eq!(instances(&env.fetch_many(9).await), ["i1", "i2"]);
    assert_eq!(env.take_ids(ask().max(9)).await, [1, 2]);
}

pub(super) async fn a_refused_batch_enqueues_nothing(env: Env) {
    let batch = RecordBatch {
        writes: vec![put("a").expecting(Expect::Version(5))],
        orchestrator_items: vec![message("i1", "go")],
        worker_items: vec![job(1)],
        ..RecordBatch::default()
    };
    conflict(env.commit_records(batch).await);
    env.nothing_to_fetch().await;
    env.no_work().await;
}

pub(super) async fn a_batch_can_enqueue_for_later(env: Env) {
    let at_ms = env.now().await + u64::try_from(env.span().as_millis()).unwrap();
    let batch = RecordBatch { orchestrator_items: vec![timer("i1", 1, at_ms)], ..RecordBatch::default() };
    env.commit_records(batch).await.unwrap();
    env.nothing_to_fetch().await;
    env.advance_span().await;
    env.fetch().await;
}

pub(super) async fn a_large_batch_is_one_commit(env: Env) {
    let ids: Vec<String> = (0..500).map(|id| format!("{id:03}")).collect();
    let versions = env.write(ids.iter().map(|id| put(id))).await;
    assert_eq!(versions.len(), 500);
    assert_eq!(env.record("499").await.unwrap().version, versions[499]);
}

pub(super) async fn a_record_lives_until_its_time(env: Env) {
    let before = env.now().await;
    env.write([put("a").living(env.span())]).await;
    env.advance_short_of_span().await;
    let expires = env.record("a").await.unwrap().expires_at_ms.unwrap();
    assert!(expires >= before + u64::try_from(env.span().as_millis()).unwrap());
}

pub(super) async fn an_expired_record_is_absent(env: Env) {
    env.write([put("a").living(env.span()), put("b")]).await;
    env.advance_span().await;
    assert_eq!(env.record("a").await, None);
    assert!(env.record("b").await.is_some());
}

pub(super) async fn an_expired_record_can_be_claimed_again(env: Env) {
    let claim =
        |owner: &'static str| put("claim").expecting(Expect::Absent).living(env.span()).with_body(owner);
    env.write([claim("one")]).await;
    conflict(env.try_write([claim("two")]).await);
    env.advance_span().await;
    env.write([claim("two")]).await;
    assert_eq!(env.record("claim").await.unwrap().body, "two");
}

pub(super) async fn an_expired_record_has_no_version(env: Env) {
    let version = env.write([put("a").living(env.span())]).await[0];
    env.advance_span().await;
    conflict(env.try_write([put("a").expecting(Expect::Version(version))]).await);
    conflict(env.try_write([delete("a").expecting(Expect::Version(version))]).await);
    assert!(env.write([put("a")]).await[0] > version);
}

pub(super) async fn deleting_an_expired_record_is_fine(env: Env) {
    env.write([put("a").living(env.span())]).await;
    env.advance_span().await;
    assert_eq!(env.write([delete("a").expecting(Expect::Absent)]).await, [0]);
}

pub(super) async fn a_write_gives_a_record_a_new_life(env: Env) {
    env.write([put("a").living(env.span())]).await;
    env.write([put("a").living(LOCK), put("b")]).await;
    env.advance_span().await;
    assert!(env.record("a").await.is_some());
    env.write([put("a")]).await;
    assert_eq!(env.record("a").await.unwrap().expires_at_ms, None);
}

pub(super) async fn a_turn_writes_records_with_a_life(env: Env) {
    env.turn_of("i1").await.record(put("a").living(env.span())).ack().await;
    assert!(env.record("a").await.is_some());
    env.advance_span().await;
    assert_eq!(env.record("a").await, None);
}
