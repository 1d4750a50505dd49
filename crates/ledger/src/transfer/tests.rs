use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use segno::clock::{Clock, SystemClock};
use segno::store::ErrorKind;

use super::*;
use crate::objects::testing::place;
use crate::objects::{Objects, Stores};

/// Keeps what it gets.
#[derive(Default)]
struct Kept(Vec<Part>);

#[async_trait]
impl Sink for Kept {
    async fn put(&mut self, part: Part) -> Result<(), StorageError> {
        self.0.push(part);
        Ok(())
    }
}

fn clock() -> Arc<dyn Clock> {
    SystemClock::shared()
}

async fn content(store: &Arc<dyn ObjectStore>) -> BTreeMap<String, Bytes> {
    let objects = Objects::new(Arc::clone(store), clock());
    let mut content = BTreeMap::new();
    for listed in objects.list(&Path::default()).await.unwrap() {
        let bytes = objects.get(&listed.path, u64::MAX).await.unwrap().unwrap();
        content.insert(listed.path.to_string(), bytes);
    }
    content
}

#[tokio::test]
async fn a_log_without_a_manifest_the_archive_and_large_objects_are_copied() {
    let store: Arc<dyn ObjectStore> = place();
    let large = usize::try_from(PART_BYTES).unwrap() * 2 + 5;
    for (path, bytes) in [
        ("acme/prod/ledger/orchestration/01ARZ3NDEKTSV4RRFFQ69G5FAV.json", 10),
        ("acme/prod/archive/instances/day=2026-11-18/a.parquet", large),
        ("acme/prod/ledger/orchestration_quarantine/x", 0),
        ("other/prod/archive/instances/day=2026-11-18/b.parquet", usize::try_from(PART_BYTES).unwrap()),
    ] {
        let bytes: Vec<u8> = (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect();
        store.put(&Path::from(path), bytes.into()).await.unwrap();
    }
    let target: Arc<dyn ObjectStore> = place();
    let mut receiver = Receiver::new(Arc::clone(&target), clock());
    receiver.check_is_empty().await.unwrap();
    send(&Stores::shared(Arc::clone(&store)), clock(), &mut receiver).await.unwrap();
    let received = receiver.finish().unwrap();
    assert_eq!(content(&target).await, content(&store).await);
    assert_eq!(received.objects, 4);
    let error = Receiver::new(target, clock()).check_is_empty().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn parts_of_a_damaged_or_hostile_backup_are_refused() {
    let part = |path: &str, offset, is_last| Part::Bytes {
        path: path.to_owned(),
        offset,
        is_last,
        bytes: Bytes::from_static(b"12345"),
    };
    for parts in [
        vec![part("../../etc/passwd", 0, true)],
        vec![part("/a/b/c", 0, true)],
        vec![part("a/../b/c", 0, true)],
        vec![part("a", 0, true)],
        vec![part("a/b/c", 5, true)],
        vec![part("a/b/c", 0, false), part("a/b/d", 5, true)],
        vec![part("a/b/c", 0, false), part("a/b/c", 4, true)],
        vec![Part::Dropped { path: "../x/y".to_owned() }],
    ] {
        let mut receiver = Receiver::new(place(), clock());
        let mut outcome = Ok(());
        for part in parts.clone() {
            outcome = receiver.put(part).await;
        }
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corrupt, "{parts:?}");
    }
    let mut receiver = Receiver::new(place(), clock());
    receiver.put(part("a/b/c", 0, false)).await.unwrap();
    assert_eq!(receiver.finish().unwrap_err().kind(), ErrorKind::Corrupt, "it has no end");
}

#[tokio::test]
async fn nothing_is_sent_of_an_empty_store() {
    let mut kept = Kept::default();
    send(&Stores::in_memory(), clock(), &mut kept).await.unwrap();
    assert_eq!(kept.0, []);
}
