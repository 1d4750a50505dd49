//! Which refused requests are in the audit log, and where.

use segno::clock::SystemClock;
use segno_api::audit::{AuditEntry, ListAudit};
use segno_api::key::Role;
use segno_server::settings::Authentication;
use serde_json::json;

use crate::stand::{PATIENCE, Stand, settings};

/// The entries of a tenant about refused requests, newest first, once there are so many.
async fn refused(stand: &Stand, scope: (&str, &str), count: usize) -> Vec<AuditEntry> {
    let client = stand.client().scope(scope.0, scope.1);
    let listed = async {
        loop {
            let request = ListAudit { limit: Some(1_000), ..ListAudit::default() };
            let mut entries = client.audit(&request).await.unwrap().entries;
            entries.retain(|entry| entry.status >= 400);
            if entries.len() >= count {
                return entries;
            }
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, listed).await.expect("there are too few entries")
}

async fn post(stand: &Stand, key: &str, path: &str, body: String) -> u16 {
    let call = crate::stand::http().post(stand.url(path)).header("content-type", "application/json");
    call.bearer_auth(key).body(body).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn what_a_known_key_was_refused_is_in_the_log() {
    let mut settings = settings(Authentication::Keys);
    settings.server.max_body_bytes = 1_000;
    let stand = Stand::with(settings).await;
    let operator = stand.key(Role::Operator, "a", "t1").await;
    let viewer = stand.key(Role::Viewer, "a", "*").await;
    let worker = stand.key(Role::Worker, "a", "*").await;
    let start = || json!({ "orchestration": "greet" }).to_string();
    let large = || json!({ "tool_name": "echo", "label": "x".repeat(2_000) }).to_string();
    let elsewhere = || json!({ "tool_name": "echo", "namespace": "a", "tenant": "t3" }).to_string();
    for (key, path, body, status, scope) in [
        (&viewer, "/v1/instances?namespace=a&tenant=t4", start(), 403, ("a", "t4")),
        (&worker, "/v1/instances?namespace=a&tenant=t5", start(), 403, ("a", "t5")),
        (&stand.admin_key, "/v1/instances?namespace=b&tenant=t7", large(), 413, ("b", "t7")),
        (&stand.admin_key, "/v1/actions?namespace=b&tenant=t8", large(), 413, ("b", "t8")),
        (&stand.admin_key, "/v1/actions?namespace=b&tenant=t9&tennant=x", start(), 400, ("b", "t9")),
        (&stand.admin_key, "/v1/instances/a/cancel?namespace=b&tenant=t0", String::new(), 404, ("b", "t0")),
    ] {
        assert_eq!(post(&stand, key, path, body).await, status, "{path}");
        let entries = refused(&stand, scope, 1).await;
        assert_eq!(entries.len(), 1, "{path}: {entries:?}");
        assert_eq!(entries[0].status, status, "{path}");
        assert_eq!(entries[0].key.as_deref(), key.split('_').nth(1), "{path}");
        assert!(!entries[0].operation.ends_with(' '), "{path}: {entries:?}");
    }
    // A tenant that the key is not for, or that cannot be one: the log of the key's own has it, and no other.
    let of_keys = || "{}".to_owned();
    for (number, path, body, status, entered) in [
        (1, "/v1/instances?namespace=a&tenant=t2", start(), 403, "/v1/instances?namespace=a&tenant=t2"),
        (2, "/v1/actions", elsewhere(), 403, "/v1/actions?namespace=a&tenant=t3"),
        (3, "/v1/keys", of_keys(), 403, "/v1/keys?namespace=default&tenant=default"),
        (4, "/v1/instances?namespace=a&tenant=T!", start(), 400, "/v1/instances"),
        (5, "/v1/instances?namespace=a&tenant=t1&tenant=t2", start(), 400, "/v1/instances"),
    ] {
        assert_eq!(post(&stand, &operator, path, body).await, status, "{path}");
        let newest = refused(&stand, ("a", "t1"), number).await.remove(0);
        assert_eq!((newest.status, newest.path.as_str()), (status, entered));
        assert_eq!(newest.key.as_deref(), operator.split('_').nth(1), "{path}");
    }
    for scope in [("a", "t2"), ("a", "t3"), ("default", "default")] {
        assert!(refused(&stand, scope, 0).await.is_empty(), "{scope:?}");
    }
    let request = ListAudit { resource: Some("/v1/instances".to_owned()), ..ListAudit::default() };
    let found = stand.client().scope("a", "t1").audit(&request).await.unwrap().entries;
    assert_eq!(found.len(), 3, "{found:?}");
}

#[tokio::test]
async fn requests_without_a_valid_key_have_no_entry_and_reads_neither() {
    let stand = Stand::with_keys().await;
    let revoked = stand.key(Role::Operator, "*", "*").await;
    stand.client().revoke_key(revoked.split('_').nth(1).unwrap()).await.unwrap();
    for key in ["", "segno_nothing_nothing", &revoked] {
        assert_eq!(post(&stand, key, "/v1/instances", "{}".to_owned()).await, 401, "{key}");
    }
    let viewer = stand.key(Role::Viewer, "a", "t1").await;
    let read = crate::stand::http().get(stand.url("/v1/instances")).bearer_auth(&viewer);
    assert_eq!(read.send().await.unwrap().status(), 403);
    // Entries are written in order: this one is behind those that there must not be.
    assert_eq!(post(&stand, &viewer, "/v1/instances", "{}".to_owned()).await, 403);
    let entries = refused(&stand, ("a", "t1"), 1).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert!(refused(&stand, ("default", "default"), 0).await.is_empty());
}

#[tokio::test]
async fn a_flood_of_refusals_does_not_fill_the_log() {
    /// Of two keys: each has 60 entries a minute, and the flood may be in two of them.
    const FLOOD: usize = 300;
    let stand = Stand::with_keys().await;
    let viewer = stand.key(Role::Viewer, "a", "t1").await;
    let operator = stand.key(Role::Operator, "a", "t1").await;
    for number in 0..FLOOD {
        // One half is refused before the audit log knows the tenant, the other behind it.
        let (key, body) = if number % 2 == 0 { (&viewer, "{}") } else { (&operator, "[]") };
        let status = post(&stand, key, "/v1/instances?namespace=a&tenant=t1", body.to_owned()).await;
        assert_eq!(status, if number % 2 == 0 { 403 } else { 400 });
    }
    // Behind the flood, by a key of its own.
    let admin = stand.admin_key.clone();
    assert_eq!(post(&stand, &admin, "/v1/instances?namespace=a&tenant=t1", "[]".to_owned()).await, 400);
    let own = admin.split('_').nth(1);
    let listed = async {
        loop {
            let entries = refused(&stand, ("a", "t1"), 1).await;
            if entries.iter().any(|entry| entry.key.as_deref() == own) {
                return entries;
            }
            crate::stand::look_again().await;
        }
    };
    let entries = segno::clock::timeout(&SystemClock, PATIENCE, listed).await.expect("it is not entered");
    for key in [&viewer, &operator] {
        let id = key.split('_').nth(1);
        let found = entries.iter().filter(|entry| entry.key.as_deref() == id).count();
        assert!((60..FLOOD / 2).contains(&found), "{found} entries");
    }
}
