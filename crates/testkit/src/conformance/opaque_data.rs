//! A store keeps bytes as they are, never opens them, and takes any text as an id.

use bytes::Bytes;
use segno::limits::MAX_INSTANCE_ID_BYTES;
use segno::store::{FetchedHistory, InstanceQuery, OrchestratorMessage, StoredEvent, WorkerMessage};

use super::fixture::*;

const MIB: usize = 1024 * 1024;

/// Every byte value, which is neither text nor any format.
fn garbage() -> Bytes {
    (0..=u8::MAX).rev().chain([0, 0, 0xff, 0xfe]).collect::<Vec<u8>>().into()
}

fn large() -> Bytes {
    (0..MIB).map(|index| u8::try_from(index % 251).unwrap()).collect::<Vec<u8>>().into()
}

/// Ids that trip over separators, escapes, collations, case and widths.
fn odd_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "a/b",
        "a//b",
        "/a",
        "a/",
        "a:b|c;d,e",
        "a b",
        " a",
        "A",
        "a",
        "%",
        "_",
        "a\\b",
        "'; drop table instances; --",
        "\"quoted\"",
        "line\nbreak\ttab",
        "\u{1}\u{7f}",
        "\\0",
        "%00",
        "\u{fffd}",
        "\u{10FFFF}",
        "日本語",
        "é",
        "e\u{301}",
        "🦀",
        "ß",
        "SS",
    ]
    .map(str::to_owned)
    .to_vec();
    ids.push("x".repeat(MAX_INSTANCE_ID_BYTES));
    ids.push("é".repeat(MAX_INSTANCE_ID_BYTES / 2));
    ids
}

async fn body_survives(env: &Env, body: Bytes) {
    env.post(OrchestratorMessage { body: body.clone(), ..message("i1", "") }).await;
    env.queue(WorkerMessage { body: body.clone(), ..job(1) }).await;
    let item = env.fetch().await;
    assert_eq!(item.messages[0].body, body);
    assert_eq!(env.work().await.message.body, body);
    env.turn(&item)
        .event_data(1, body.clone())
        .output(body.clone())
        .record(put("r").with_body(body.clone()))
        .ack()
        .await;
    assert_eq!(env.read("i1").await.unwrap(), [StoredEvent { event_id: 1, data: body.clone() }]);
    assert_eq!(env.info("i1").await.output.as_ref(), Some(&body));
    assert_eq!(env.record("r").await.unwrap().body, body);
}

pub(super) async fn garbage_comes_back_as_it_was(env: Env) {
    body_survives(&env, garbage()).await;
}

pub(super) async fn an_empty_body_comes_back_empty(env: Env) {
    body_survives(&env, Bytes::new()).await;
}

pub(super) async fn a_large_body_comes_back_whole(env: Env) {
    body_survives(&env, large()).await;
}

pub(super) async fn json_comes_back_byte_by_byte(env: Env) {
    body_survives(&env, Bytes::from_static(b"{ \"b\" : 1.0,\"a\":1e400, \"a\":2 }\n")).await;
}

pub(super) async fn an_empty_output_is_not_an_absent_one(env: Env) {
    env.start("i1").await;
    assert_eq!(env.info("i1").await.output, None);
    env.turn_of("i1").await.output("").ack().await;
    assert_eq!(env.info("i1").await.output, Some(Bytes::new()));
}

pub(super) async fn a_history_of_garbage_is_fetched_like_any_other(env: Env) {
    env.turn_of("i1").await.event_data(1, garbage()).event_data(2, "").ack().await;
    env.send("i1", "go").await;
    let events =
        vec![StoredEvent { event_id: 1, data: garbage() }, StoredEvent { event_id: 2, data: Bytes::new() }];
    assert_eq!(env.fetch().await.history, FetchedHistory::Events(events));
}

pub(super) async fn an_odd_message_blocks_no_other(env: Env) {
    // L5
    env.post(OrchestratorMessage { body: garbage(), ..message("odd", "") }).await;
    env.send("i1", "go").await;
    assert_eq!(instances(&env.fetch_many(9).await), ["i1", "odd"]);
}

pub(super) async fn an_odd_activity_blocks_no_other(env: Env) {
    env.queue(WorkerMessage { body: garbage(), ..job(1) }).await;
    env.queue(job(2)).await;
    let odd = env.work().await;
    assert_eq!(env.work().await.message, job(2));
    env.finish(odd.lock_token).await.unwrap();
}

pub(super) async fn an_odd_custom_status_comes_back_as_it_was(env: Env) {
    let status = segno::store::CustomStatusChange::Set(garbage());
    env.turn_of("i1").await.metadata(|metadata| metadata.custom_status = Some(status)).ack().await;
    assert_eq!(env.get_custom_status("i1", 0).await.unwrap(), Some((Some(garbage()), 1)));
}

pub(super) async fn odd_instance_ids_are_kept_apart(env: Env) {
    let ids = odd_ids();
    for id in &ids {
        env.turn_of(id).await.named("Flow").event_data(1, id.clone()).ack().await;
    }
    for id in &ids {
        assert_eq!(
            env.read(id).await.unwrap(),
            [StoredEvent { event_id: 1, data: id.clone().into() }],
            "{id:?}"
        );
        assert_eq!(env.info(id).await.instance_id, *id);
    }
    assert_eq!(env.list_instances().await.unwrap().len(), ids.len());
}

pub(super) async fn odd_instance_ids_are_listed_and_deleted(env: Env) {
    for id in odd_ids() {
        env.start(&id).await;
        let query = InstanceQuery { id_prefix: Some(id.clone()), limit: 9, ..InstanceQuery::default() };
        let page = env.query_instances(query).await.unwrap();
        assert_eq!(page.instances.len(), 1, "{id:?}");
        assert_eq!(env.delete_instance(&id, true).await.unwrap().instances_deleted, 1, "{id:?}");
    }
}

pub(super) async fn odd_record_ids_are_kept_apart(env: Env) {
    let ids = odd_ids();
    env.write(ids.iter().map(|id| put(id))).await;
    for id in &ids {
        let record = env.record(id).await.unwrap();
        assert_eq!((&record.id, &record.body), (id, &Bytes::from(id.clone())));
    }
}

pub(super) async fn odd_names_tags_sessions_and_labels_are_kept(env: Env) {
    for (id, text) in (1..).zip(odd_ids().into_iter().filter(|text| text.len() <= 64)) {
        let message = WorkerMessage { tag: Some(text.clone()), ..session_job(&text, id) };
        env.turn_of("i1").await.named(&text).label(&text, &text).work(message.clone()).ack().await;
        assert_eq!(env.take(ask().owner(&text)).await[0].message, message);
        let info = env.info("i1").await;
        assert_eq!(info.orchestration_name.as_deref(), Some(text.as_str()));
        assert_eq!(info.labels.get(&text), Some(&text));
    }
}

pub(super) async fn a_separator_in_an_id_does_not_confuse_kinds_and_ids(env: Env) {
    env.write([put_of("a", "b/c"), put_of("a/b", "c"), put_of("", "a/b/c")]).await;
    for (kind, id) in [("a", "b/c"), ("a/b", "c"), ("", "a/b/c")] {
        let record = env.get_record(kind, id).await.unwrap().unwrap();
        assert_eq!((record.kind.as_str(), record.id.as_str()), (kind, id));
    }
    assert_eq!(env.get_record("a/b/c", "").await.unwrap(), None);
}

pub(super) async fn an_event_id_may_be_any_number(env: Env) {
    env.turn_of("i1").await.event(1).event(1_000_000_007).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(1_000_000_007)]);
    env.send("i1", "go").await;
    assert_eq!(env.fetch().await.last_event_id, 1_000_000_007);
}
