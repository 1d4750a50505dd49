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
        status: vec![Status::Completed, Status::Failed],
        orchestration: Some("greet".to_owned()),
        function: None,
        label: vec!["team=eu".to_owned()],
        batch: None,
        run: None,
    };
    let mut stream = listen(&client, &ended("b")).await;
    let mut of_nobody = listen(&client, &FollowChanges { label: vec!["team=us".to_owned()], ..all() }).await;
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
    let wrong = FollowChanges { label: vec!["team".to_owned()], ..all() };
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
    // Its end is told after the caller has heard the result.
    while next_change(&mut stream).await.change != ChangeKind::Completed {}

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

/// Two nodes, of which the first one only listens, so that all that happens is done by the second.
async fn front_and_back() -> (Stand, Stand) {
    let ground = Ground::new().await;
    let mut only_api = settings(Authentication::None);
    only_api.server.roles = [NodeRole::Api].into();
    let front = Stand::on(only_api, &ground).await;
    let back = Stand::on(settings(Authentication::None), &ground.of_another_node().await).await;
    (front, back)
}

/// Lets the other node do things until the first of them is heard: it needs a moment to notice that somebody listens.
async fn first_heard(stream: &mut EventStream, back: &segno_api::Client) -> StreamEvent {
    let work = async {
        for number in 0.. {
            back.start(&greet(&format!("early-{number}"), ADA), None, PATIENCE).await.unwrap();
        }
    };
    tokio::select! {
        event = next(stream) => event,
        () = work => unreachable!("it has no end"),
    }
}

/// Changes of one instance until its end, with the place of the last one.
async fn until_completed(stream: &mut EventStream, id: &str) -> (Vec<ChangeKind>, String) {
    let mut heard = Vec::new();
    loop {
        let event = next(stream).await;
        assert_eq!(event.name, "change", "{event:?}");
        let change: Change = serde_json::from_str(&event.data).unwrap();
        if change.id == id {
            heard.push(change.change);
            if change.change == ChangeKind::Completed {
                return (heard, event.id);
            }
        }
    }
}

#[tokio::test]
async fn what_another_node_does_is_heard_too() {
    let (front, back) = front_and_back().await;
    let (front_client, back_client) = (front.client(), back.client());
    let mut stream = listen(&front_client, &all()).await;
    let first = first_heard(&mut stream, &back_client).await;
    assert!(first.name == "change" && first.data.contains("early-"), "{first:?}");
    back_client.start(&greet("there", ADA), None, PATIENCE).await.unwrap();
    let (heard, _) = until_completed(&mut stream, "there").await;
    assert_eq!((heard.first(), heard.last()), (Some(&ChangeKind::Started), Some(&ChangeKind::Completed)));
}

#[tokio::test]
async fn who_comes_back_has_missed_nothing_of_what_another_node_did() {
    let (front, back) = front_and_back().await;
    let (front_client, back_client) = (front.client(), back.client());
    let mut stream = listen(&front_client, &all()).await;
    first_heard(&mut stream, &back_client).await;
    back_client.start(&greet("before", ADA), None, PATIENCE).await.unwrap();
    let (_, last) = until_completed(&mut stream, "before").await;
    drop(stream);
    back_client.start(&greet("meanwhile", ADA), None, PATIENCE).await.unwrap();
    let mut stream = front_client.changes(&all(), Some(&last)).await.unwrap();
    assert_eq!(next(&mut stream).await.name, "listening");
    back_client.start(&greet("after", ADA), None, PATIENCE).await.unwrap();
    for id in ["meanwhile", "after"] {
        let (heard, _) = until_completed(&mut stream, id).await;
        let started = heard.iter().filter(|kind| **kind == ChangeKind::Started).count();
        assert_eq!((started, heard.first()), (1, Some(&ChangeKind::Started)), "{id}: {heard:?}");
    }
}
