//! A ledger that was written once and must be readable for ever: `tests/golden/ledger`.
//! `UPDATE_GOLDEN=1` writes it if it is not there.

use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use super::world::{Script, World, batches, eager, folded};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ledger")
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Writes the ledger of a fixed log.
async fn write_golden() {
    let (world, mut script) = (World::new(eager()), Script::new(9));
    let mut compactor = world.open(1).await;
    for batch in batches(&script.events(120), &mut script.random) {
        compactor.append(batch).await.unwrap();
        compactor.settle().await.unwrap();
    }
    // What is no longer named goes, so that the files are those of the tables.
    world.clock.advance(world.options.grace_ms + 1);
    compactor.fold_waiting().await.unwrap();
    compactor.settle().await.unwrap();
    let listed: Vec<_> = world.objects.list(None).try_collect().await.unwrap();
    for object in listed {
        let bytes = world.objects.get(&object.location).await.unwrap().bytes().await.unwrap();
        let path = directory().join(object.location.as_ref());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

#[tokio::test]
async fn the_golden_ledger_is_read_and_written_on() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() && !directory().exists() {
        write_golden().await;
    }
    let world = World::new(eager());
    let mut found = Vec::new();
    files(&directory(), &mut found);
    assert!(found.len() > 20, "{found:?}");
    for path in found {
        let location = path.strip_prefix(directory()).unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let location = object_store::path::Path::from(location);
        world.objects.put(&location, PutPayload::from(bytes)).await.unwrap();
    }
    let rows = world.tables().await;
    let described: String = rows.runs.iter().map(|run| format!("{run:?}\n")).collect::<String>()
        + &rows.tasks.iter().map(|task| format!("{task:?}\n")).collect::<String>();
    expect_test::expect_file!["../../../tests/golden/ledger_rows.txt"].assert_eq(&described);
    let mut compactor = world.open(2).await;
    assert_eq!(compactor.replay().await.unwrap().rows(), rows, "the log gives the tables");
    let mut script = Script::new(9);
    let mut events = script.events(120);
    assert_eq!(folded(&events), rows);
    let more = script.rest();
    events.extend(more.clone());
    compactor.append(more).await.unwrap();
    assert_eq!(world.tables().await, folded(&events));
}
