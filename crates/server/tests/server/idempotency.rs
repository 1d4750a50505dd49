//! Requests that are sent again.

use reqwest::StatusCode;
use segno_api::instance::Started;
use segno_api::key::Role;
use serde_json::json;

use crate::stand::Stand;

async fn post(stand: &Stand, key: &str, path: &str, body: &serde_json::Value) -> reqwest::Response {
    let call = crate::stand::http().post(stand.url(path)).header("idempotency-key", key).json(body);
    call.send().await.unwrap()
}

#[tokio::test]
async fn the_same_request_twice_has_one_effect_and_one_answer() {
    let stand = Stand::open().await;
    let body = json!({ "orchestration": "greet", "input": { "name": "Ada" } });
    let first = post(&stand, "k-1", "/v1/instances", &body).await;
    assert_eq!(first.status(), StatusCode::CREATED);
    assert!(first.headers().get("idempotency-replayed").is_none());
    let first: Started = first.json().await.unwrap();
    let second = post(&stand, "k-1", "/v1/instances", &body).await;
    assert_eq!(second.status(), StatusCode::CREATED);
    assert_eq!(second.headers()["idempotency-replayed"], "true");
    assert_eq!(second.json::<Started>().await.unwrap(), first);
    let other = post(&stand, "k-2", "/v1/instances", &body).await;
    assert_ne!(other.json::<Started>().await.unwrap().id, first.id);
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let stand = Stand::open().await;
    let body = json!({ "orchestration": "greet", "input": { "name": "Ada" } });
    post(&stand, "k", "/v1/instances", &body).await;
    let other = json!({ "orchestration": "greet", "input": { "name": "Bob" } });
    let refused = post(&stand, "k", "/v1/instances", &other).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let refused = post(&stand, "k", "/v1/instances?tenant=default", &body).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "the query is another one");
    let elsewhere = post(&stand, "k", "/v1/instances?tenant=other", &body).await;
    assert_eq!(elsewhere.status(), StatusCode::CREATED, "each tenant has its own keys");
    for bad in ["", &"x".repeat(256)] {
        assert_eq!(
            post(&stand, bad, "/v1/instances", &body).await.status(),
            StatusCode::BAD_REQUEST,
            "{bad:?}"
        );
    }
}

#[tokio::test]
async fn refusals_are_repeated_too() {
    let stand = Stand::open().await;
    let wrong = json!({ "orchestration": "greet", "id": " " });
    for replayed in [false, true] {
        let answer = post(&stand, "k", "/v1/instances", &wrong).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        assert_eq!(answer.headers().contains_key("idempotency-replayed"), replayed);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
}

#[tokio::test]
async fn the_secret_of_a_key_is_not_kept_for_repeats() {
    let stand = Stand::with_keys().await;
    let body = json!({ "name": "ci", "role": Role::Viewer, "grants": [{ "namespace": "*", "tenant": "*" }] });
    let send = async || {
        let call = crate::stand::http().post(stand.url("/v1/keys")).bearer_auth(&stand.admin_key);
        let answer = call.header("idempotency-key", "k").json(&body).send().await.unwrap();
        answer.json::<segno_api::key::CreatedKey>().await.unwrap()
    };
    let (first, second) = (send().await, send().await);
    assert!(first.secret.starts_with("segno_"));
    assert!(!second.secret.starts_with("segno_"));
    assert_eq!(first.key.id, second.key.id);
    assert_eq!(stand.client().keys(None).await.unwrap().keys.len(), 2);
}
