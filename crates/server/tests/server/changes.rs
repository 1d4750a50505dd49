//! What happens to instances, for callers who listen.

use std::time::Duration;

use segno_api::Json;
use segno_api::change::{Change, ChangeKind, FollowChanges};
use segno_api::client::{EventStream, StreamEvent};
use segno_api::instance::{Send, Status};
use segno_api::key::Role;
use segno_server::settings::{Authentication, Role as NodeRole};

use crate::stand::{Ground, PATIENCE, Stand, greet, settings};

const ADA: &str = r#"{"name":"Ada"}"#;

async fn next(stream: &mut EventStream) -> StreamEvent {
    let event = segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, stream.next()).await;
    event.unwrap().unwrap().unwrap()
}

/// A stream that listens.
async fn listen(client: &segno_api::Client, filter: &FollowChanges) -> EventStream {
    let mut stream = client.changes(filter, None).await.unwrap();
    assert_eq!(next(&mut stream).await.name, "listening");
    stream
}

async fn next_change(stream: &mut EventStream) -> Change {
    let event = next(stream).await;
    assert_eq!(event.name, "change", "{event:?}");
    serde_json::from_str(&event.data).unwrap()
}

fn all() -> FollowChanges {
    FollowChanges::default()
}

#[tokio::test]
async fn the_life_of_an_instance_is_heard_in_order() {
    let stand = Stand::open().await;
    let client = stand.client();
    let mut stream = listen(&client, &all()).await;
    client.start(&greet("a", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    client.custom_status("a", 0, PATIENCE).await.unwrap();
    client.pause("a", None).await.unwrap();
    let mut heard = Vec::new();
    while heard.last() != Some(&ChangeKind::Paused) {
        let change = next_change(&mut stream).await;
        assert_eq!((change.id.as_str(), change.orchestration.as_deref()), ("a", Some("greet")));
        assert_eq!(change.labels["team"], "eu");
        heard.push(change.change);
    }
    assert_eq!(heard, [ChangeKind::Started, ChangeKind::StatusChanged, ChangeKind::Paused]);
    client.resume("a").await.unwrap();
    assert_eq!(next_change(&mut stream).await.change, ChangeKind::Resumed);
    client.raise("a", &Send { name: "wave".to_owned(), data: Json::null(), id: None }).await.unwrap();
    let mut last = next_change(&mut stream).await;
    while last.change == ChangeKind::StatusChanged {
        last = next_change(&mut stream).await;
    }
    assert_eq!((last.change, last.status, last.execution), (ChangeKind::Completed, Status::Completed, 1));
}

#[tokio::test]
async fn a_filter_lets_through_what_matches_all_of_it() {
    let stand = Stand::open().await;
    let client = stand.client();
    let ended = |prefix: &str| FollowChanges {
        prefix: Some(prefix.to_owned()),
        status: Some(Status::Completed),
        orchestration: Some("greet".to_owned()),
        label: Some("team=eu".to_owned()),
    };
    let mut stream = listen(&client, &ended("b")).await;
    let mut of_nobody = listen(&client, &FollowChanges { label: Some("team=us".to_owned()), ..all() }).await;
    for id in ["a", "b1", "c", "b2"] {
        client.start(&greet(id, ADA), None, PATIENCE).await.unwrap();
    }
    for id in ["b1", "b2"] {
        let change = next_change(&mut stream).await;
        assert_eq!((change.id.as_str(), change.change), (id, ChangeKind::Completed));
    }
    let mut us = greet("us", ADA);
    us.labels.insert("team".to_owned(), "us".to_owned());
    client.start(&us, None, PATIENCE).await.unwrap();
    assert_eq!(next_change(&mut of_nobody).await.id, "us");
    let wrong = FollowChanges { label: Some("team".to_owned()), ..all() };
    assert_eq!(client.changes(&wrong, None).await.err().and_then(|error| error.status()), Some(400));
}

#[tokio::test]
async fn who_comes_back_misses_nothing_or_is_told() {
    let stand = Stand::open().await;
    let client = stand.client();
    let mut stream = client.changes(&all(), None).await.unwrap();
    let listening = next(&mut stream).await;
    drop(stream);
    client.start(&greet("away", ADA), None, PATIENCE).await.unwrap();
    let mut stream = client.changes(&all(), Some(&listening.id)).await.unwrap();
    assert_eq!(next(&mut stream).await.id, listening.id);
    assert_eq!(next_change(&mut stream).await.change, ChangeKind::Started);

    let mut stream = client.changes(&all(), Some("anothernode-17")).await.unwrap();
    assert_eq!(next(&mut stream).await.name, "listening");
    let lagged = next(&mut stream).await;
    assert_eq!(lagged.name, "lagged");
    client.start(&greet("after", ADA), None, PATIENCE).await.unwrap();
    assert_eq!(next_change(&mut stream).await.id, "after");
    assert_eq!(client.changes(&all(), Some("x")).await.err().and_then(|error| error.status()), Some(400));
}

#[tokio::test]
async fn a_tenant_hears_nothing_of_another() {
    let stand = Stand::with_keys().await;
    let eu = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let lab = stand.client_with(Role::Operator, "lab", "x").await.scope("lab", "x");
    let mut stream = listen(&eu, &all()).await;
    lab.start(&greet("theirs", ADA), None, PATIENCE).await.unwrap();
    eu.start(&greet("ours", ADA), None, PATIENCE).await.unwrap();
    assert_eq!(next_change(&mut stream).await.id, "ours");
    let intruder = lab.scope("shop", "eu");
    assert_eq!(intruder.changes(&all(), None).await.err().and_then(|error| error.status()), Some(403));
}

#[tokio::test]
async fn what_another_node_does_is_heard_too() {
    let ground = Ground::new().await;
    let mut only_api = settings(Authentication::None);
    only_api.server.roles = [NodeRole::Api].into();
    let front = Stand::on(only_api, &ground).await;
    let back = Stand::on(settings(Authentication::None), &ground).await;
    let (front_client, back_client) = (front.client(), back.client());
    let mut stream = listen(&front_client, &all()).await;
    // The other node needs a moment to notice that somebody listens.
    let work = async {
        for number in 0.. {
            back_client.start(&greet(&format!("n-{number}"), ADA), None, PATIENCE).await.unwrap();
        }
    };
    let change = tokio::select! {
        change = next_change(&mut stream) => change,
        () = work => unreachable!("it has no end"),
    };
    assert!(change.id.starts_with("n-"), "{change:?}");
}
