//! Who may do what.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use segno_api::audit::ListAudit;
use segno_api::instance::ListInstances;
use segno_api::key::Role;
use serde_json::Value;

use crate::stand::{PATIENCE, Stand, greet};

/// Every operation of the document, with its method, path and whether it says that it needs a key.
async fn operations(stand: &Stand) -> Vec<(Method, String, bool)> {
    let document: Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let needs_key = operation["security"]
                .as_array()
                .is_some_and(|list| list.iter().any(|one| one.get("bearer").is_some()));
            let path = ["{id}", "{name}", "{namespace}", "{route}"]
                .iter()
                .fold(path.clone(), |path, parameter| path.replace(parameter, "x"));
            found.push((method, path, needs_key));
        }
    }
    found
}

#[tokio::test]
async fn every_route_but_health_refuses_who_has_no_key() {
    let stand = Stand::with_keys().await;
    let http = crate::stand::http();
    let operations = operations(&stand).await;
    assert!(operations.len() > 20, "{operations:?}");
    for (method, path, needs_key) in operations {
        // Senders of webhooks have no key; this one posts to a route that is not there.
        let is_ingress = method == Method::POST && path == "/v1/hooks/x/x";
        // Browsers sign in without one: by a key in the body, which is not there.
        let is_sign_in = method == Method::POST && path == "/v1/sessions";
        let is_public = is_ingress || is_sign_in || ["/healthz", "/readyz"].contains(&path.as_str());
        // Workers with a task token have no key, and a key is none.
        let is_callback = path.starts_with("/api/v1/tasks/");
        assert_eq!(needs_key, !is_public && !is_callback, "{method} {path}");
        for key in [None, Some("segno_0000000000000000_x"), Some("nonsense")] {
            let mut call = http.request(method.clone(), stand.url(&path));
            if let Some(key) = key {
                call = call.bearer_auth(key);
            }
            let status = call.send().await.unwrap().status();
            let expected = match (is_ingress, is_public) {
                (true, _) => StatusCode::NOT_FOUND,
                _ if is_sign_in => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                (_, true) => StatusCode::OK,
                _ => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(status, expected, "{method} {path} {key:?}");
        }
    }
}

#[tokio::test]
async fn tricks_with_paths_do_not_get_around_the_guard() {
    let stand = Stand::with_keys().await;
    let http = crate::stand::http();
    for path in [
        "//v1/instances",
        "/v1//instances",
        "/v1/instances/",
        "/V1/instances",
        "/v1/instances;x",
        "/v1/instances/x/healthz",
        "/v1/instances/%2e%2e/healthz",
        "/healthz/../v1/instances",
        "/v1/instances/healthz",
        "/v1/instances%2fx",
    ] {
        let status = http.get(stand.url(path)).send().await.unwrap().status();
        assert!(matches!(status.as_u16(), 401 | 404), "{path}: {status}");
    }
}

#[tokio::test]
async fn roles_may_do_what_they_are_for() {
    let stand = Stand::with_keys().await;
    let viewer = stand.client_with(Role::Viewer, "*", "*").await;
    let operator = stand.client_with(Role::Operator, "*", "*").await;
    let worker = stand.client_with(Role::Worker, "*", "*").await;
    let forbidden = Some(403);
    operator.start(&greet("mine", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    assert_eq!(viewer.start(&greet("x", "{}"), None, Duration::ZERO).await.unwrap_err().status(), forbidden);
    assert_eq!(viewer.cancel("mine", None).await.unwrap_err().status(), forbidden);
    assert_eq!(viewer.restart("mine", &Default::default()).await.unwrap_err().status(), forbidden);
    assert!(viewer.instance("mine", Duration::ZERO).await.is_ok());
    assert!(viewer.system().await.is_ok());
    assert_eq!(operator.keys(None).await.unwrap_err().status(), forbidden);
    assert_eq!(operator.audit(&Default::default()).await.unwrap_err().status(), forbidden);
    assert_eq!(worker.instance("mine", Duration::ZERO).await.unwrap_err().status(), forbidden);
    assert_eq!(worker.system().await.unwrap_err().status(), forbidden);
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let stand = Stand::with_keys().await;
    let shop = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let lab = stand.client_with(Role::Operator, "lab", "us").await.scope("lab", "us");
    shop.start(&greet("secret-plan", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    shop.custom_status("secret-plan", 0, PATIENCE).await.unwrap();
    let hidden = Some(404);
    for id in ["secret-plan", "../../shop/eu/secret-plan", "shop/eu/secret-plan"] {
        assert_eq!(lab.instance(id, Duration::ZERO).await.unwrap_err().status(), hidden, "{id}");
        assert_eq!(lab.history(id, Some(1), 0).await.unwrap_err().status(), hidden, "{id}");
        assert_eq!(lab.tree(id, None).await.unwrap_err().status(), hidden, "{id}");
        assert_eq!(lab.cancel(id, None).await.unwrap_err().status(), hidden, "{id}");
        assert_eq!(lab.pause(id, None).await.unwrap_err().status(), hidden, "{id}");
        assert_eq!(lab.delete(id, true).await.unwrap_err().status(), hidden, "{id}");
        assert!(lab.events(id, None).await.is_err_and(|error| error.status() == hidden), "{id}");
    }
    assert!(lab.instances(&ListInstances::default()).await.unwrap().instances.is_empty());
    // Whether a namespace that the key has no grant for exists cannot be found out.
    for (namespace, tenant) in [("shop", "eu"), ("nowhere", "nobody")] {
        let error =
            lab.clone().scope(namespace, tenant).instance("secret-plan", Duration::ZERO).await.unwrap_err();
        assert_eq!((error.status(), error.code()), (Some(403), Some("forbidden")));
    }
    // Counts over all tenants are for keys that are good everywhere.
    assert_eq!(lab.system().await.unwrap_err().status(), Some(403));
    assert!(shop.instance("secret-plan", Duration::ZERO).await.is_ok());
}

#[tokio::test]
async fn a_revoked_key_ceases_to_work() {
    let stand = Stand::with_keys().await;
    let admin = stand.client();
    let viewer = stand.client_with(Role::Viewer, "*", "*").await;
    assert!(viewer.system().await.is_ok());
    let keys = admin.keys(None).await.unwrap().keys;
    let key = keys.iter().find(|key| key.role == Role::Viewer).unwrap();
    admin.revoke_key(&key.id).await.unwrap();
    assert_eq!(viewer.system().await.unwrap_err().status(), Some(401));
    assert_eq!(admin.revoke_key(&key.id).await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn every_change_is_in_the_audit_log_with_its_key() {
    let stand = Stand::with_keys().await;
    let operator = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    operator.start(&greet("one", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    let _ = operator.cancel("nobody", None).await;
    operator.instance("one", Duration::ZERO).await.unwrap();
    let admin = stand.client();
    // The entry of a refusal is written without waiting for it.
    let entries = loop {
        let entries = admin.clone().scope("shop", "eu").audit(&Default::default()).await.unwrap().entries;
        if entries.len() > 1 {
            break entries;
        }
    };
    let told: Vec<_> = entries.iter().map(|entry| (entry.operation.as_str(), entry.status)).collect();
    assert_eq!(told, [("POST /v1/instances/{id}/cancel", 404), ("POST /v1/instances", 201)]);
    assert_eq!(entries[0].path, "/v1/instances/nobody/cancel");
    let keys = admin.keys(None).await.unwrap().keys;
    let key = keys.iter().find(|key| key.role == Role::Operator).unwrap();
    assert!(entries.iter().all(|entry| entry.key.as_deref() == Some(key.id.as_str())));
}

#[tokio::test]
async fn without_keys_foreign_pages_are_refused() {
    let stand = Stand::open().await;
    let http = crate::stand::http();
    for (name, value) in [("origin", "https://evil.example"), ("host", "evil.example")] {
        let status = http.get(stand.url("/v1/instances")).header(name, value).send().await.unwrap().status();
        assert_eq!(status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
}

#[tokio::test]
async fn the_audit_log_is_found_by_actor_action_resource_and_time() {
    let stand = Stand::with_keys().await;
    let admin = stand.client();
    let operator = stand.client_with(Role::Operator, "default", "default").await;
    let keys = admin.keys(None).await.unwrap().keys;
    let actor = keys.iter().find(|key| key.role == Role::Operator).unwrap().id.clone();
    operator.start(&greet("order/7", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    operator.start(&greet("order-8", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    admin.cancel("order/7", None).await.unwrap();
    operator.cancel("order-8", None).await.unwrap();
    let found = async |filter: ListAudit| -> Vec<String> {
        let page = admin.audit(&filter).await.unwrap();
        page.entries.into_iter().map(|entry| format!("{} {}", entry.operation, entry.path)).collect()
    };
    let none = ListAudit::default;
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(found(ListAudit { actor: some(&actor), ..none() }).await.len(), 3);
    assert_eq!(found(ListAudit { action: some("cancel"), ..none() }).await.len(), 2);
    let by_admin = found(ListAudit { resource: some("order/7"), action: some("POST"), ..none() }).await;
    assert_eq!(by_admin, ["POST /v1/instances/{id}/cancel /v1/instances/order%2F7/cancel"]);
    let both = ListAudit { actor: some(&actor), action: some("cancel"), ..none() };
    assert_eq!(found(both).await.len(), 1);
    let all = admin.audit(&none()).await.unwrap().entries;
    let newest = all[0].at;
    assert_eq!(
        found(ListAudit { since: Some(newest), ..none() }).await.len(),
        all.iter().filter(|entry| entry.at >= newest).count()
    );
    let before = all.iter().filter(|entry| entry.at < newest).count();
    assert_eq!(found(ListAudit { until: Some(newest), ..none() }).await.len(), before);
    let mut paged = ListAudit { limit: Some(1), action: some("cancel"), ..none() };
    let first = admin.audit(&paged).await.unwrap();
    paged.cursor = first.next_cursor.clone();
    let second = admin.audit(&paged).await.unwrap();
    assert!(first.entries[0].path.contains("order-8") && second.entries[0].path.contains("order%2F7"));
}
