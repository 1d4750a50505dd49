//! What the ledger needs of an object store. The tests run on memory, or on the bucket whose URL is in
//! `SEGNO_TEST_BUCKET`, in a build with its feature: `scripts/clouds.sh`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::{GetRange, ObjectStore};
use segno::clock::SystemClock;

use super::testing::place;
use super::{Objects, Probe, Put, Usage};

fn objects(store: &Arc<dyn ObjectStore>) -> Objects {
    Objects::new(Arc::clone(store), SystemClock::shared())
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[tokio::test]
async fn the_probe_of_every_usage_passes_and_leaves_nothing() {
    for usage in [Usage::Log, Usage::State, Usage::LogAndState, Usage::ReadState, Usage::Archive] {
        let store = place();
        Probe { store: Arc::clone(&store), usage }.run(&SystemClock, "one").await.unwrap();
        assert_eq!(objects(&store).first().await.unwrap(), None, "{usage}");
    }
}

#[tokio::test]
async fn an_object_is_put_once_and_read_as_it_was_put() {
    let objects = objects(&place());
    let path = Path::from("acme/prod/state/orchestration/runs/day=active/00000000000000000001-a.parquet");
    assert_eq!(objects.get(&path, 100).await.unwrap(), None);
    assert_eq!((objects.exists(&path).await.unwrap(), objects.size(&path).await.unwrap()), (false, None));
    assert_eq!(objects.put_new(&path, text("0123456789")).await.unwrap(), Put::Done);
    assert_eq!(objects.put_new(&path, text("0123456789")).await.unwrap(), Put::Done, "the same bytes");
    assert_eq!(objects.put_new(&path, text("other")).await.unwrap(), Put::Taken);
    assert_eq!(objects.get(&path, 100).await.unwrap(), Some(text("0123456789")));
    assert_eq!((objects.exists(&path).await.unwrap(), objects.size(&path).await.unwrap()), (true, Some(10)));
    for (range, expected) in [
        (GetRange::Bounded(2..5), "234"),
        (GetRange::Bounded(7..10), "789"),
        (GetRange::Bounded(0..10), "0123456789"),
    ] {
        assert_eq!(objects.get_part(&path, range, 100).await.unwrap(), Some(text(expected)));
    }
    assert!(objects.get(&path, 9).await.unwrap_err().to_string().contains("at most 9"));
    objects.put_over(&path, text("new")).await.unwrap();
    assert_eq!(objects.get(&path, 100).await.unwrap(), Some(text("new")));
    for _ in 0..2 {
        objects.delete(&path).await.unwrap();
        assert_eq!(objects.get(&path, 100).await.unwrap(), None);
    }
    assert_eq!(objects.put_new(&path, text("again")).await.unwrap(), Put::Done, "a deleted name is free");
    let large = Bytes::from(vec![7; 9 << 20]);
    let path = Path::from("acme/prod/archive/large");
    assert_eq!(objects.put_new(&path, large.clone()).await.unwrap(), Put::Done);
    assert_eq!(objects.get(&path, u64::MAX).await.unwrap(), Some(large));
    let empty = Path::from("acme/prod/archive/empty");
    assert_eq!(objects.put_new(&empty, Bytes::new()).await.unwrap(), Put::Done);
    assert_eq!(objects.get(&empty, 100).await.unwrap(), Some(Bytes::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_writers_that_race_for_a_name_one_has_it_and_the_others_know() {
    let store = place();
    for round in 0..8 {
        let path = Path::from(format!("acme/prod/manifests/orchestration/{round:020}.json"));
        let writers = (0..12).map(|writer| {
            let (objects, path) = (objects(&store), path.clone());
            tokio::spawn(async move { objects.put_new(&path, text(&format!("{writer}"))).await.unwrap() })
        });
        let mut won = Vec::new();
        for (writer, outcome) in futures_util::future::join_all(writers).await.into_iter().enumerate() {
            if outcome.unwrap() == Put::Done {
                won.push(writer.to_string());
            }
        }
        let there = objects(&store).get(&path, 100).await.unwrap().unwrap();
        assert_eq!(won, [String::from_utf8(there.to_vec()).unwrap()], "round {round}");
    }
}

#[tokio::test]
async fn listings_are_complete_in_order_and_end_at_the_folder() {
    let objects = objects(&place());
    let folder = Path::from("acme/prod/ledger/orchestration");
    // More than one page of every store.
    let names: Vec<String> = (0..1_050).map(|number| format!("{folder}/{number:05}.json")).collect();
    let beside =
        ["acme/prod/ledger/orchestration_segments/a", "acme/prod/ledger/orchestration.json", "acme/x", "b/c"];
    let all = names.iter().map(String::as_str).chain(beside).rev();
    let puts = all.map(|name| {
        let objects = objects.clone();
        async move { objects.put_new(&Path::from(name), text(name)).await.unwrap() }
    });
    let done = stream::iter(puts.collect::<Vec<_>>()).buffer_unordered(16).collect::<Vec<_>>().await;
    assert!(done.iter().all(|put| *put == Put::Done));
    let listed = objects.list(&folder).await.unwrap();
    assert_eq!(listed.iter().map(|object| object.path.to_string()).collect::<Vec<_>>(), names);
    assert!(listed.iter().all(|object| object.bytes == names[0].len() as u64));
    let folders = objects.folders(Some(&Path::from("acme"))).await.unwrap();
    assert_eq!(folders, [Path::from("acme/prod")]);
    assert_eq!(objects.folders(None).await.unwrap(), [Path::from("acme"), Path::from("b")]);
    assert!(objects.first().await.unwrap().is_some());
}
