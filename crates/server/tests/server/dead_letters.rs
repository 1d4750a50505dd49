//! What was given up: listed, shown, put back once, discarded.

use std::time::Duration;

use segno_api::client::Expected;
use segno_api::dead_letter::{GivenUp, ListDeadLetters};
use segno_api::instance::Status;
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_api::work::{CompleteWork, FetchWork};
use segno_server::settings::Authentication;
use serde_json::json;

use crate::stand::{PATIENCE, Stand, greet, json_of, settings};

#[tokio::test]
async fn a_message_that_cannot_be_read_is_shown_and_can_be_discarded() {
    let stand = Stand::open().await;
    let client = stand.client();
    client.start(&greet("one", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    stand.send_junk("default/default/one", "junk").await;
    let letter = stand.until_dead_letters(&client, 1).await.remove(0);
    assert_eq!((letter.what, letter.instance.as_str(), letter.deliveries), (GivenUp::Message, "one", 1));
    assert!(letter.reason.contains("unknown format"), "{}", letter.reason);
    assert_eq!((&letter.payload, &letter.raw), (&None, &None), "a list has no bodies");
    let shown = client.dead_letter(&letter.id).await.unwrap();
    assert!(shown.raw.is_some() && shown.payload.is_none());
    assert!(shown.expires_at.unwrap() > shown.given_up_at);
    client.discard_dead_letter(&letter.id).await.unwrap();
    let again = client.discard_dead_letter(&letter.id).await.unwrap_err();
    assert_eq!((again.status(), again.code()), (Some(404), Some("not-found")));
    assert!(client.dead_letters(&Default::default()).await.unwrap().dead_letters.is_empty());
    let audit = client.audit(&Default::default()).await.unwrap().entries;
    assert!(
        audit.iter().any(|entry| entry.operation == "DELETE /v1/dead-letters/{id}" && entry.status == 204)
    );
}

#[tokio::test]
async fn a_call_whose_workers_die_is_given_up_and_can_be_made_again_once() {
    let mut settings = settings(Authentication::None);
    settings.runtime.max_deliveries = 2;
    let stand = Stand::with(settings).await;
    let client = stand.client();
    client
        .put_function("render", &json_of(&json!({ "executor": "remote" })), Expected::Absent)
        .await
        .unwrap();
    let request = Invoke { key: Some("k".to_owned()), ..Invoke::new("render", json_of(&json!({ "n": 1 }))) };
    let id = client.invoke(&request, Duration::ZERO).await.unwrap().id;
    let dying = FetchWork { lease_ms: 10, wait_ms: 60_000, ..FetchWork::new("w", ["render"]) };
    for _ in 0..2 {
        assert_eq!(client.fetch_work(&dying).await.unwrap().items.len(), 1);
    }
    // The third fetch finds that it was handed out too often. Its own lease lasts until it has given the call up.
    let third = FetchWork { wait_ms: 100, lease_ms: 60_000, ..dying };
    let ended = async {
        loop {
            let fetched = client.fetch_work(&third).await.unwrap();
            assert!(fetched.items.is_empty());
            let found = client.instance(&id, Duration::ZERO).await.unwrap();
            if found.status == Status::Failed {
                return found;
            }
        }
    };
    let ended = segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, ended).await.unwrap();
    assert_eq!(ended.failure.unwrap().category, "poison");
    let letter = stand.until_dead_letters(&client, 1).await.remove(0);
    assert_eq!((letter.what, letter.instance.as_str()), (GivenUp::Activity, id.as_str()));
    assert_eq!((letter.deliveries, letter.execution), (2, Some(1)));
    assert_eq!(letter.name.as_deref(), Some("render"), "a list has the name that is shown");
    let shown = client.dead_letter(&letter.id).await.unwrap();
    assert_eq!((shown.name.as_deref(), shown.payload.unwrap().text()), (Some("render"), r#"{"n":1}"#));

    let done = client.resubmit_dead_letter(&letter.id).await.unwrap();
    assert_eq!((done.instance.as_str(), done.execution), (id.as_str(), Some(2)));
    assert_eq!(client.resubmit_dead_letter(&letter.id).await.unwrap_err().status(), Some(404));
    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["render"]) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    client.complete_work(&CompleteWork { lease: item.lease, result: json_of("done") }).await.unwrap();
    let again = client.instance(&id, PATIENCE).await.unwrap();
    assert_eq!((again.execution, again.result.unwrap().text()), (2, r#""done""#));
}

#[tokio::test]
async fn letters_are_filtered_paged_and_kept_apart_by_tenant_and_role() {
    let stand = Stand::with_keys().await;
    let shop = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let viewer = stand.client_with(Role::Viewer, "shop", "eu").await.scope("shop", "eu");
    let lab = stand.client_with(Role::Operator, "lab", "us").await.scope("lab", "us");
    for id in ["one", "two"] {
        shop.start(&greet(id, r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
        stand.send_junk(&format!("shop/eu/{id}"), "junk").await;
        stand.until_dead_letters(&shop, if id == "one" { 1 } else { 2 }).await;
    }
    let of_one = ListDeadLetters { instance: Some("one".to_owned()), ..ListDeadLetters::default() };
    let found = viewer.dead_letters(&of_one).await.unwrap().dead_letters;
    assert_eq!((found.len(), found[0].instance.as_str()), (1, "one"));
    let turns = ListDeadLetters { what: Some(GivenUp::Turn), ..ListDeadLetters::default() };
    assert!(viewer.dead_letters(&turns).await.unwrap().dead_letters.is_empty());
    let mut page = ListDeadLetters { limit: Some(1), ..ListDeadLetters::default() };
    let first = viewer.dead_letters(&page).await.unwrap();
    assert_eq!(first.dead_letters[0].instance, "two", "newest first");
    page.cursor = first.next_cursor;
    let second = viewer.dead_letters(&page).await.unwrap();
    assert_eq!(second.dead_letters[0].instance, "one");
    page.cursor = second.next_cursor;
    assert!(page.cursor.is_none() || viewer.dead_letters(&page).await.unwrap().dead_letters.is_empty());
    assert!(lab.dead_letters(&Default::default()).await.unwrap().dead_letters.is_empty());
    let id = &second.dead_letters[0].id;
    assert_eq!(lab.discard_dead_letter(id).await.unwrap_err().status(), Some(404));
    assert_eq!(viewer.discard_dead_letter(id).await.unwrap_err().status(), Some(403));
    assert_eq!(viewer.resubmit_dead_letter(id).await.unwrap_err().status(), Some(403));
    let sent = shop.resubmit_dead_letter(id).await.unwrap();
    assert_eq!((sent.instance.as_str(), sent.execution), ("one", None));
    // It still cannot be read, and is parked anew.
    let parked = stand.until_dead_letters(&shop, 2).await;
    assert!(parked.iter().all(|letter| letter.id != *id));
}
