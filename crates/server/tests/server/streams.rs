//! Live events of one instance.

use std::time::Duration;

use segno_api::Json;
use segno_api::instance::{Instance, Send, Status};

use crate::stand::{PATIENCE, Stand, greet, settings};

#[tokio::test]
async fn events_come_as_they_happen_and_go_on_after_the_last_one_seen() {
    let stand = Stand::open().await;
    let client = stand.client();
    client.start(&greet("live", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    client.custom_status("live", 0, PATIENCE).await.unwrap();
    let mut stream = client.events("live", None).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!((first.id.as_str(), first.name.as_str()), ("1-1", "OrchestrationStarted"));
    drop(stream);

    let mut stream = client.events("live", Some("1-2")).await.unwrap();
    let next = stream.next().await.unwrap().unwrap();
    assert_eq!(next.id, "1-3");
    client.raise("live", &Send { name: "wave".to_owned(), data: Json::null(), id: None }).await.unwrap();
    let mut names = Vec::new();
    let mut last = next;
    while let Some(event) = stream.next().await.unwrap() {
        names.push(event.name.clone());
        last = event;
    }
    assert!(names.contains(&"OrchestrationCompleted".to_owned()), "{names:?}");
    assert_eq!(last.name, "end");
    let ended: Instance = serde_json::from_str(&last.data).unwrap();
    assert_eq!(ended.status, Status::Completed);
    assert_eq!(client.events("live", Some("x")).await.err().and_then(|error| error.status()), Some(400));
}

#[tokio::test]
async fn a_long_history_comes_page_by_page_without_gaps() {
    /// More than the server reads at once.
    const MESSAGES: usize = 250;
    let stand = Stand::open().await;
    let client = stand.client();
    client.start(&greet("long", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    let message = Send { name: "unread".to_owned(), data: Json::null(), id: None };
    for _ in 0..MESSAGES {
        client.enqueue("long", &message).await.unwrap();
    }
    client.raise("long", &Send { name: "wave".to_owned(), ..message }).await.unwrap();
    client.instance("long", PATIENCE).await.unwrap();
    let mut stream = client.events("long", None).await.unwrap();
    let mut ids = Vec::new();
    while let Some(event) = stream.next().await.unwrap() {
        ids.push(event.id.clone());
    }
    assert_eq!(ids.pop().as_deref(), Some(""), "the end has no id");
    assert!(ids.len() > MESSAGES, "{}", ids.len());
    let expected: Vec<String> = (1..=ids.len()).map(|id| format!("1-{id}")).collect();
    assert_eq!(ids, expected);
    let page = client.history("long", None, 2).await.unwrap();
    assert_eq!((page.events[0].id, page.events.len(), page.next_after), (3, ids.len() - 2, None));
}

#[tokio::test]
async fn there_is_a_limit_of_streams_and_stopping_ends_them() {
    let mut settings = settings(segno_server::settings::Authentication::None);
    settings.server.max_streams = 1;
    let stand = Stand::with(settings).await;
    let client = stand.client();
    client.start(&greet("live", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    client.custom_status("live", 0, PATIENCE).await.unwrap();
    let mut stream = client.events("live", Some("1-99")).await.unwrap();
    let refused = client.events("live", None).await.err().unwrap();
    assert_eq!((refused.status(), refused.code()), (Some(429), Some("too-many-streams")));
    let stopped = tokio::spawn(stand.server.shutdown());
    assert_eq!(stream.next().await.unwrap(), None);
    stopped.await.unwrap();
}
