//! Long polls: how many requests may wait at a time.

use std::time::Duration;

use segno_api::Json;
use segno_api::instance::Send;
use segno_api::key::Role;
use segno_server::settings::Authentication;
use tokio::task::JoinSet;

use crate::stand::{PATIENCE, Stand, greet, settings};

#[tokio::test]
async fn requests_that_wait_leave_connections_for_others() {
    let mut settings = settings(Authentication::None);
    settings.server.max_connections = 16;
    let stand = Stand::with(settings).await;
    let client = stand.client();
    client.start(&greet("slow", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    client.custom_status("slow", 0, PATIENCE).await.unwrap();
    // Half of the connections of a tenant may wait.
    let url = stand.url("/v1/instances/slow?wait_ms=60000");
    let waiting: Vec<_> = (0..8).map(|_| tokio::spawn(crate::stand::http().get(&url).send())).collect();
    let refused = loop {
        let answer = crate::stand::http().get(format!("{url}0")).send().await.unwrap();
        assert_eq!(answer.status(), 400, "600000 ms are too many");
        let answer = crate::stand::http().get(url.replace("60000", "1")).send().await.unwrap();
        if answer.status() == 429 {
            break answer;
        }
        crate::stand::look_again().await;
    };
    assert_eq!(refused.headers()["retry-after"], "1");
    let problem: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "too-many-waits");
    // Workers get no place either, starts are answered without waiting, and everything else goes on.
    let work = r#"{"worker":"w","functions":["none"],"wait_ms":60000}"#;
    let fetch = |body: &'static str| {
        let request = crate::stand::http().post(stand.url("/v1/work/fetch"));
        request.header("content-type", "application/json").body(body).send()
    };
    assert_eq!(fetch(work).await.unwrap().status(), 429);
    assert_eq!(fetch(r#"{"worker":"w","functions":["none"]}"#).await.unwrap().status(), 200);
    let started = greet("next", r#"{"name":"Ada","wait":true}"#);
    let started = client.start(&started, None, Duration::from_secs(60)).await.unwrap();
    assert!(started.created && started.instance.is_none());
    client.instance("next", Duration::ZERO).await.unwrap();
    client.raise("slow", &Send { name: "wave".to_owned(), data: Json::null(), id: None }).await.unwrap();
    for answer in waiting {
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(
        crate::stand::http().get(url).send().await.unwrap().status(),
        200,
        "their places are free again"
    );
}

#[tokio::test]
async fn a_key_for_every_tenant_leaves_places_for_the_requests_of_others() {
    let mut settings = settings(Authentication::Keys);
    settings.server.max_connections = 16;
    let stand = Stand::with(settings).await;
    let (wide, narrow) =
        (stand.key(Role::Worker, "*", "*").await, stand.key(Role::Worker, "shop", "eu").await);
    let fetch = |key: &str, scope: String, wait_ms: u32| {
        let request = crate::stand::http().post(stand.url(&format!("/v1/work/fetch?{scope}")));
        let body = format!(r#"{{"worker":"w","functions":["none"],"wait_ms":{wait_ms}}}"#);
        request.bearer_auth(key).header("content-type", "application/json").body(body).send()
    };
    // Half of the connections of a key may wait, in however many tenants.
    let mut waiting = JoinSet::new();
    for number in 0..8 {
        waiting.spawn(fetch(&wide, format!("tenant=t{number}"), 60_000));
    }
    let refused = loop {
        let answer = fetch(&wide, "tenant=another".to_owned(), 1).await.unwrap();
        if answer.status() == 429 {
            break answer;
        }
    };
    let problem: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "too-many-waits");
    assert!(problem["detail"].as_str().unwrap().contains("8 requests of this key"), "{problem}");
    let answer = fetch(&narrow, "namespace=shop&tenant=eu".to_owned(), 1).await.unwrap();
    assert_eq!(answer.status(), 200, "another key waits as before");
}
