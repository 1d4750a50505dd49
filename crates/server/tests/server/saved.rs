//! Views and queries that a tenant keeps under a name.

use segno_api::ClientError;
use segno_api::client::Expected;
use segno_api::key::Role;
use segno_api::saved::{Save, SavedKind};
use serde_json::json;

use crate::stand::Stand;

fn view(text: &str) -> Save {
    Save { kind: SavedKind::View, page: Some("instances".to_owned()), text: text.to_owned() }
}

fn code(error: &ClientError) -> &str {
    error.code().unwrap_or_default()
}

#[tokio::test]
async fn what_is_saved_is_shared_replaced_and_deleted_by_name() {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    let name = "failed / today ✓";
    let first = client.save(name, &view("status:failed"), None).await.unwrap();
    assert!(first.saved_by.is_some());
    assert_eq!(client.saved_one(name).await.unwrap(), first);
    let changed = client.save(name, &view("status:failed started:<1d"), None).await.unwrap();
    assert!(changed.version > first.version, "{changed:?}");
    let query = Save { kind: SavedKind::Query, page: None, text: "SELECT 1".to_owned() };
    client.save("a query", &query, Some(Expected::Absent)).await.unwrap();
    let viewer = stand.client_with(Role::Viewer, "default", "default").await;
    let listed = viewer.saved(None).await.unwrap().saved;
    let named: Vec<_> = listed.iter().map(|saved| (saved.name.as_str(), saved.text.as_str())).collect();
    assert_eq!(named, [("a query", "SELECT 1"), (name, "status:failed started:<1d")]);
    for (number, (result, expected)) in [
        (client.save(name, &view("x"), Some(Expected::Absent)).await.map(drop), "precondition-failed"),
        (
            client.save(name, &view("x"), Some(Expected::Version(first.version))).await.map(drop),
            "precondition-failed",
        ),
        (viewer.save("mine", &view("x"), None).await.map(drop), "forbidden"),
        (viewer.delete_saved(name, None).await, "forbidden"),
        (client.delete_saved("nothing", None).await, "not-found"),
        (client.delete_saved("nothing", Some(first.version)).await, "not-found"),
        (client.delete_saved(name, Some(first.version)).await, "precondition-failed"),
        (client.saved_one("nothing").await.map(drop), "not-found"),
        (client.save("a\u{7}b", &view("x"), None).await.map(drop), "invalid-request"),
        (client.save(" a", &view("x"), None).await.map(drop), "invalid-request"),
        (client.save(&"a".repeat(129), &view("x"), None).await.map(drop), "invalid-request"),
        (client.save("a", &view("\u{1b}[31m"), None).await.map(drop), "invalid-request"),
        (client.save("a", &view(&"x".repeat(8_193)), None).await.map(drop), "invalid-request"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(result.as_ref().err().map(code), Some(expected), "{number}");
    }
    let last = client.save(name, &view("x"), Some(Expected::Version(changed.version))).await.unwrap();
    assert_eq!(
        code(&client.delete_saved(name, Some(changed.version)).await.unwrap_err()),
        "precondition-failed"
    );
    client.delete_saved(name, Some(last.version)).await.unwrap();
    client.save(name, &view("x"), Some(Expected::Absent)).await.unwrap();
    client.delete_saved(name, None).await.unwrap();
    assert_eq!(client.saved(None).await.unwrap().saved.len(), 1);
}

#[tokio::test]
async fn a_tenant_saves_200_whatever_is_sent_at_once() {
    let stand = Stand::open().await;
    let client = &stand.client();
    for number in 0..198 {
        client.save(&format!("n{number}"), &view("x"), None).await.unwrap();
    }
    let sent = (198..206).map(|number| async move {
        client.save(&format!("n{number}"), &view("x"), None).await.map_err(|error| code(&error).to_owned())
    });
    let results = futures_util::future::join_all(sent).await;
    let refused: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(refused.len(), 6, "{refused:?}");
    assert!(refused.iter().all(|code| *code == "too-many-saved"), "{refused:?}");
    let all = client.saved(segno_api::client::PageRequest { limit: Some(1000), cursor: None }).await.unwrap();
    assert_eq!(all.saved.len(), 200);
    assert_eq!(code(&client.save("one more", &view("x"), None).await.unwrap_err()), "too-many-saved");
    client.save("n7", &view("replaced"), None).await.unwrap();
    let other = client.clone().scope("default", "other");
    other.save("own", &view("x"), None).await.unwrap();
    let unknown = json!({ "kind": "view", "text": "x", "extra": 1 });
    let put = crate::stand::http().put(stand.url("/v1/saved/x")).json(&unknown).send().await.unwrap();
    assert_eq!(put.status(), 400);
}
