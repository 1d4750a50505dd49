//! Manifests that were damaged or made to do harm, and the search for the newest one.

use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use segno::store::ErrorKind;
use segno_actions::functions::Scope;
use segno_testkit::clock::VirtualClock;
use serde_json::{Value, json};

use super::Manifests;
use crate::objects::testing::place;
use crate::objects::{Objects, Paths};

fn paths() -> Paths {
    Paths::new(Scope::new("prod", "acme").unwrap())
}

fn manifests(store: &Arc<dyn ObjectStore>) -> Manifests {
    let objects = Objects::new(Arc::clone(store), VirtualClock::new());
    Manifests::new(objects, paths())
}

fn manifest(number: u64) -> Value {
    json!({
        "manifest_id": number, "epoch": 1, "previous_manifest_path": null, "schema_version": 1,
        "revision_ulid": "01HF7YAT0000000000000000AB", "published_at": 1,
        "watermarks": {"last_committed_event_id": null, "last_visible_event_id": null, "events_processed_through": null,
            "last_processed_file": null, "last_processed_at": null},
        "base_snapshot": null, "l0_deltas": [], "l0_count": 0,
        "l0_limits": {"max_count": 10, "max_rows": 100_000, "max_age_ms": 300_000},
        "history": null, "log": {"folded": []}
    })
}

/// Lists in lists.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

fn delta(number: u64, path: &str) -> Value {
    let file = json!({"path": path, "sha256": "", "bytes": 1, "rows": 1});
    json!({"delta_id": format!("{number:020}"), "created_at": 1, "event_range": {"from": null, "to": null, "count": 0},
        "tables": {"runs": file}, "row_counts": {"runs": 1}})
}

async fn put(store: &Arc<dyn ObjectStore>, path: &object_store::path::Path, value: &Value) {
    store.put(path, PutPayload::from(value.to_string())).await.unwrap();
}

#[tokio::test]
async fn manifests_that_are_hostile_or_newer_are_refused() {
    let far = "../../evil/prod/state/orchestration/runs/x.parquet";
    let with = |change: fn(&mut Value)| {
        let mut manifest = manifest(1);
        change(&mut manifest);
        manifest
    };
    let mut leaving = manifest(1);
    leaving["l0_deltas"] = json!([delta(1, far)]);
    let mut unordered = manifest(1);
    unordered["l0_deltas"] = json!([delta(2, "runs/a.parquet"), delta(1, "runs/b.parquet")]);
    for (value, kind, says) in [
        (json!("not a manifest"), ErrorKind::Corrupt, "not a manifest"),
        (with(|manifest| manifest["manifest_id"] = json!(7)), ErrorKind::Corrupt, "it says that it is 7"),
        (with(|manifest| manifest["schema_version"] = json!(2)), ErrorKind::Invalid, "reads up to 1"),
        (leaving, ErrorKind::Corrupt, "not a path below its folder"),
        (unordered, ErrorKind::Corrupt, "not in order"),
        (
            with(|manifest| {
                manifest["history"] = json!({"path": "x/../../../y", "sha256": "", "bytes": 1});
            }),
            ErrorKind::Corrupt,
            "not a path below its folder",
        ),
        (
            with(|manifest| manifest["history"] = json!({"path": "gone.json", "sha256": "", "bytes": 1})),
            ErrorKind::NotFound,
            "it was deleted",
        ),
        (
            with(|manifest| manifest["history"] = json!({"path": "/etc/passwd", "sha256": "", "bytes": 1})),
            ErrorKind::Corrupt,
            "not a path below its folder",
        ),
        (with(|manifest| manifest["l0_count"] = json!(1e300)), ErrorKind::Corrupt, "not a manifest"),
        (
            with(|manifest| manifest["watermarks"]["last_processed_file"] = deep(200)),
            ErrorKind::Corrupt,
            "not a manifest",
        ),
        (
            with(|manifest| manifest["base_snapshot"] = json!({"path": "x", "unknown": deep(200)})),
            ErrorKind::Corrupt,
            "recursion limit",
        ),
        (
            with(|manifest| manifest["log"]["folded"] = json!(["01HF7YAT0000000000000000AB/../x"])),
            ErrorKind::Corrupt,
            "not a manifest",
        ),
    ] {
        let store = place();
        put(&store, &paths().manifest(1), &value).await;
        let manifests = manifests(&store);
        let outcome = match manifests.newest(0).await {
            Ok(newest) => manifests.catalog(&newest.unwrap()).await.map(|_| ()),
            Err(error) => Err(error),
        };
        let error = outcome.unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(says), "{value}: {error}");
    }
}

#[tokio::test]
async fn a_part_with_other_bytes_is_refused() {
    let store = place();
    put(&store, &paths().part("history.json"), &json!({"months": []})).await;
    let mut value = manifest(1);
    value["history"] = json!({"path": "history.json", "sha256": "00", "bytes": 13});
    put(&store, &paths().manifest(1), &value).await;
    let newest = manifests(&store).newest(0).await.unwrap().unwrap();
    let error = manifests(&store).catalog(&newest).await.unwrap_err();
    assert!(error.to_string().contains("its SHA-256"), "{error}");
}

#[tokio::test]
async fn a_history_that_would_fill_the_memory_is_refused_before_it_is_read() {
    let month = |number: usize, bytes: u64| {
        json!({"month": format!("{:04}-{:02}", number / 12, number % 12 + 1), "path": "month.json", "sha256": "",
            "bytes": bytes})
    };
    let many: Vec<Value> = (0..3_000).map(|number| month(number, 1)).collect();
    let large: Vec<Value> = (0..40).map(|number| month(number, 60 << 20)).collect();
    let endless = vec![month(1, u64::MAX), month(2, u64::MAX)];
    for months in [many, large, endless] {
        let store = place();
        let part = json!({ "months": months }).to_string();
        let digest = super::sha256(part.as_bytes());
        store.put(&paths().part("history.json"), PutPayload::from(part.clone())).await.unwrap();
        let mut value = manifest(1);
        value["history"] = json!({"path": "history.json", "sha256": digest, "bytes": part.len()});
        put(&store, &paths().manifest(1), &value).await;
        let newest = manifests(&store).newest(0).await.unwrap().unwrap();
        let error = manifests(&store).catalog(&newest).await.unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
        // A part that is larger than the manifest has it is not read to its end.
        value["history"]["bytes"] = json!(5);
        put(&store, &paths().manifest(1), &value).await;
        let newest = manifests(&store).newest(0).await.unwrap().unwrap();
        let error = manifests(&store).catalog(&newest).await.unwrap_err();
        assert!(error.to_string().contains("at most 5 are read"), "{error}");
    }
}

#[tokio::test]
async fn objects_beside_the_manifests_do_not_lead_readers_astray() {
    let store = place();
    for number in 1..4 {
        put(&store, &paths().manifest(number), &manifest(number)).await;
    }
    let folder = paths().manifests();
    for name in
        ["99.json", "00000000000000000099.txt", "18446744073709551615.json", "x/00000000000000000099.json"]
    {
        put(&store, &object_store::path::Path::from(format!("{folder}/{name}")), &manifest(99)).await;
    }
    for pointer in [None, Some(manifest(u64::MAX)), Some(manifest(77))] {
        if let Some(pointer) = pointer {
            put(&store, &paths().pointer(), &pointer).await;
        }
        let newest = manifests(&store).newest(0).await.unwrap();
        assert_eq!(newest.map(|newest| newest.manifest_id), Some(3));
        assert_eq!(manifests(&store).listed().await.unwrap(), [1, 2, 3]);
    }
}

#[tokio::test]
async fn the_newest_manifest_is_found_from_any_hint() {
    let store = place();
    assert_eq!(manifests(&store).newest(0).await.unwrap(), None);
    for number in 40..90 {
        put(&store, &paths().manifest(number), &manifest(number)).await;
    }
    // Without the copy, with one that is behind, with one that names what is deleted, with one that
    // is damaged.
    for pointer in [None, Some(manifest(41)), Some(manifest(3)), Some(json!("damaged")), Some(manifest(89))] {
        if let Some(pointer) = pointer {
            put(&store, &paths().pointer(), &pointer).await;
        }
        for known in [0, 5, 40, 80, 89] {
            let newest = manifests(&store).newest(known).await.unwrap();
            assert_eq!(newest.map(|newest| newest.manifest_id), Some(89), "from {known}");
        }
    }
}
