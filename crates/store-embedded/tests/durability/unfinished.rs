//! Power cuts and kills at every step of a command that fills a new directory: it is never taken for an empty store, and the same
//! command can be run again.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno::store::{ContentItem, ErrorKind, Export, ProviderAdmin, Transfer};
use segno_embedded::{
    ClosedStore, EmbeddedStore, FilledBy, OpenError, OpenOptions, check_files, salvage_files,
};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::disk::{Contents, Disk};
use crate::{block_on, cases, script};

const STEPS: usize = 40;

/// Images of a power cut at each step.
const IMAGES_PER_STEP: u64 = 1;

fn options(disk: &Arc<Disk>, clock: &Arc<VirtualClock>) -> OpenOptions {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    OpenOptions::default().files(disk.mount()).clock(clock).checkpoint_bytes(3_000)
}

async fn collect(export: &mut dyn Export) -> Vec<ContentItem> {
    let mut content = Vec::new();
    loop {
        let items = export.next_items().await.unwrap();
        if items.is_empty() {
            return content;
        }
        content.extend(items);
    }
}

async fn content_of(store: &impl Transfer) -> Vec<ContentItem> {
    collect(&mut *store.export().await.unwrap()).await
}

/// The content that a script leaves, and its clock.
async fn source() -> (Vec<ContentItem>, Arc<VirtualClock>) {
    let clock = VirtualClock::new();
    let memory = MemoryStore::with_clock(Arc::clone(&clock) as _);
    for step in &script::script(3, STEPS) {
        script::run(step, &*memory, &clock).await;
    }
    (content_of(&*memory).await, clock)
}

async fn fill(store: &EmbeddedStore, content: &[ContentItem]) {
    let mut import = store.import().await.unwrap();
    for items in content.chunks(23) {
        import.put(items.to_vec()).await.unwrap();
    }
    import.finish().await.unwrap();
}

/// What a directory is after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// There is nothing.
    Nothing,
    /// Every way of opening it is refused.
    Refused,
    Whole,
}

fn is_refused<T>(opened: Result<T, OpenError>, by: FilledBy, what: &str) {
    let error = opened.map(drop).expect_err(what);
    assert!(matches!(error, OpenError::Unfinished { .. }), "{what}: {error}");
    // The marker itself may be torn; then there is nothing else.
    let is_named = error.to_string().contains(&by.to_string());
    assert!(is_named || matches!(error, OpenError::Unfinished { by: None }), "{what}: {error}");
}

async fn look(image: &Contents, clock: &Arc<VirtualClock>, by: FilledBy, whole: &[ContentItem]) -> Found {
    let what = format!("{by}: {:?}", image.files().collect::<Vec<_>>());
    if image.files().next().is_none() {
        return Found::Nothing;
    }
    let disk = Disk::with(image.clone());
    match EmbeddedStore::open_with("", options(&disk, clock)) {
        Ok(store) => {
            assert_eq!(content_of(&*store).await[1..], whole[1..], "{what}");
            Found::Whole
        }
        opened => {
            is_refused(opened, by, &what);
            is_refused(ClosedStore::of_files(disk.mount(), &**clock), by, &what);
            is_refused(check_files(&disk.mount(), &mut |_| {}), by, &what);
            assert_eq!(disk.contents(), *image, "{what}: it was changed");
            Found::Refused
        }
    }
}

#[test]
fn a_salvage_that_was_interrupted_is_refused_and_can_be_run_again() {
    block_on(async {
        let (content, clock) = source().await;
        let from = Disk::empty();
        let store = EmbeddedStore::open_with("", options(&from, &clock)).unwrap();
        fill(&store, &content).await;
        store.close();
        let to = Disk::empty();
        salvage_files(&from.mount(), &to.mount(), &mut |_| {}).unwrap();
        let finished = to.done();
        let mut random = Random::new(1);
        let mut seen = [0; 3];
        for cut in 0..=finished {
            for _ in 0..cases("SEGNO_CUT_IMAGES", IMAGES_PER_STEP) {
                let image = to.image(cut, &mut random);
                let found = look(&image, &clock, FilledBy::Salvage, &content).await;
                assert!(cut < finished || found == Found::Whole, "it was finished, and is {found:?}");
                seen[found as usize] += 1;
                if found == Found::Whole {
                    continue;
                }
                let again = Disk::with(image);
                salvage_files(&from.mount(), &again.mount(), &mut |_| {}).expect("the same command");
                let store = EmbeddedStore::open_with("", options(&again, &clock)).unwrap();
                assert_eq!(content_of(&*store).await[1..], content[1..], "cut at {cut}: again");
            }
        }
        assert!(seen[Found::Refused as usize] > 10, "{seen:?}");
    });
}

#[test]
fn an_import_into_a_new_directory_that_was_interrupted_is_refused_and_can_be_made_again() {
    for by in [FilledBy::Restore, FilledBy::Copy] {
        block_on(imports(by));
    }
}

async fn imports(by: FilledBy) {
    let (content, clock) = source().await;
    let disk = Disk::empty();
    let store = EmbeddedStore::open_with("", options(&disk, &clock).to_be_filled(by)).unwrap();
    let refused = store.list_instances().await.expect_err("it takes nothing but the import");
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    fill(&store, &content).await;
    let finished = disk.done();
    store.list_instances().await.expect("it is a store");
    store.close();
    let (mut random, mut seen) = (Random::new(2), [0; 3]);
    for cut in 0..=finished {
        let image = disk.image(cut, &mut random);
        let found = look(&image, &clock, by, &content).await;
        assert!(cut < finished || found == Found::Whole, "it was finished, and is {found:?}");
        seen[found as usize] += 1;
        // Every few steps, because it takes long.
        if found == Found::Whole || !cut.is_multiple_of(5) {
            continue;
        }
        let again = Disk::with(image);
        let store = EmbeddedStore::open_with("", options(&again, &clock).to_be_filled(by)).unwrap();
        fill(&store, &content).await;
        store.close();
        let store = EmbeddedStore::open_with("", options(&again, &clock)).unwrap();
        assert_eq!(content_of(&*store).await[1..], content[1..], "cut at {cut}: again");
    }
    assert!(seen[Found::Refused as usize] > 10, "{seen:?}");
}

#[test]
fn another_command_does_not_go_on_with_what_was_interrupted() {
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let by = |by| options(&disk, &clock).to_be_filled(by);
    EmbeddedStore::open_with("", by(FilledBy::Restore)).unwrap().close();
    let before = disk.contents();
    is_refused(EmbeddedStore::open_with("", by(FilledBy::Copy)), FilledBy::Restore, "another command");
    let refused = salvage_files(&Disk::empty().mount(), &disk.mount(), &mut |_| {});
    is_refused(refused, FilledBy::Restore, "a salvage");
    assert_eq!(disk.contents(), before);
}

/// A store that is there is never marked: its content would be taken for leftovers.
#[test]
fn a_store_that_is_there_is_filled_if_it_is_empty_and_never_marked() {
    block_on(async {
        let (content, clock) = source().await;
        let disk = Disk::empty();
        EmbeddedStore::open_with("", options(&disk, &clock)).unwrap().close();
        let store =
            EmbeddedStore::open_with("", options(&disk, &clock).to_be_filled(FilledBy::Restore)).unwrap();
        fill(&store, &content).await;
        store.close();
        let store =
            EmbeddedStore::open_with("", options(&disk, &clock).to_be_filled(FilledBy::Restore)).unwrap();
        let refused = store.import().await.map(drop).expect_err("it has content");
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        drop(store);
        let store = EmbeddedStore::open_with("", options(&disk, &clock)).unwrap();
        assert_eq!(content_of(&*store).await[1..], content[1..]);
    });
}
