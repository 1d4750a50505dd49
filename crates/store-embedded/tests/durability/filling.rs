//! Power cuts while a store is being filled: it is empty, or refuses to open, or is whole. It never looks like a good
//! store that it is not, and filling it again works.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno::store::{ContentItem, Export, ProviderAdmin, ProviderError, Transfer};
use segno_embedded::{EmbeddedStore, OpenError, OpenOptions, check_files};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::disk::{Contents, Disk};
use crate::{block_on, cases, script};

const STEPS: usize = 60;
const IMAGES_PER_SCRIPT: u64 = 20;
const ITEMS_PER_PUT: usize = 23;

fn options(disk: &Arc<Disk>, clock: &Arc<VirtualClock>) -> OpenOptions {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    OpenOptions::default().files(disk.mount()).clock(clock).checkpoint_bytes(3_000)
}

async fn collect(export: &mut dyn Export) -> Result<Vec<ContentItem>, ProviderError> {
    let mut content = Vec::new();
    loop {
        let items = export.next_items().await?;
        if items.is_empty() {
            return Ok(content);
        }
        content.extend(items);
    }
}

async fn content_of(store: &impl Transfer) -> Vec<ContentItem> {
    collect(&mut *store.export().await.unwrap()).await.unwrap()
}

async fn fill(store: &EmbeddedStore, content: &[ContentItem]) {
    let mut import = store.import().await.unwrap();
    for items in content.chunks(ITEMS_PER_PUT) {
        import.put(items.to_vec()).await.unwrap();
    }
    let back = collect(&mut *import.read_back().await.unwrap()).await.unwrap();
    assert_eq!(back, content);
    import.finish().await.unwrap();
}

/// What a script leaves in a store in memory.
async fn source(seed: u64) -> (Vec<ContentItem>, Arc<VirtualClock>) {
    let clock = VirtualClock::new();
    let memory = MemoryStore::with_clock(Arc::clone(&clock) as _);
    for step in &script::script(seed, STEPS) {
        script::run(step, &*memory, &clock).await;
    }
    (content_of(&*memory).await, clock)
}

#[test]
fn a_store_that_was_being_filled_is_empty_or_refused_or_whole() {
    let images = cases("SEGNO_FILLING_IMAGES", 60);
    for seed in 0..images.div_ceil(IMAGES_PER_SCRIPT) {
        block_on(power_cuts(seed));
    }
}

async fn power_cuts(seed: u64) {
    let (content, clock) = source(seed).await;
    let disk = Disk::empty();
    let store = EmbeddedStore::open_with("", options(&disk, &clock)).unwrap();
    let opened = disk.done();
    fill(&store, &content).await;
    let finished = disk.done();
    store.close();
    let mut random = Random::new(seed);
    let mut seen = [0; 3];
    for image in 0..IMAGES_PER_SCRIPT {
        // Mostly in the middle, sometimes before and after.
        let cut = opened / 2 + random.below((disk.done() - opened / 2) as u64 + 1) as usize;
        let what =
            format!("seed {seed}, image {image}: cut at {cut}, opened at {opened}, finished at {finished}");
        let found = look(disk.image(cut, &mut random), &clock, &content, &what).await;
        match found {
            Found::Empty => assert!(cut < finished, "{what}: an acknowledged import is lost"),
            Found::Refused => assert!(cut < finished, "{what}: an acknowledged import is not finished"),
            Found::Whole => assert!(cut > opened, "{what}: whole before it began"),
        }
        seen[found as usize] += 1;
    }
    assert!(seen[Found::Refused as usize] > 0, "no cut was in the middle: {seen:?}");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Empty,
    Refused,
    Whole,
}

async fn look(image: Contents, clock: &Arc<VirtualClock>, content: &[ContentItem], what: &str) -> Found {
    let disk = Disk::with(image);
    let opened = EmbeddedStore::open_with("", options(&disk, clock));
    assert!(matches!(opened, Ok(_) | Err(OpenError::Unfinished { .. })), "{what}: {:?}", opened.err());
    match opened {
        Ok(store) => {
            let found = content_of(&*store).await;
            if found.len() == 1 {
                return Found::Empty;
            }
            assert_eq!(found[1..], content[1..], "{what}");
            Found::Whole
        }
        Err(_) => {
            let store = EmbeddedStore::open_with("", options(&disk, clock).for_import()).unwrap();
            assert!(store.list_instances().await.unwrap_err().is_retryable(), "{what}: it does not work");
            fill(&store, content).await;
            assert_eq!(content_of(&*store).await[1..], content[1..], "{what}: filled again");
            drop(store);
            let again = EmbeddedStore::open_with("", options(&disk, clock)).unwrap();
            assert_eq!(content_of(&*again).await[1..], content[1..], "{what}: filled again and opened");
            Found::Refused
        }
    }
}

#[test]
fn a_store_that_was_filled_is_sound() {
    for seed in 0..10 {
        let disk = Disk::empty();
        block_on(async {
            let (content, clock) = source(seed).await;
            let store = EmbeddedStore::open_with("", options(&disk, &clock)).unwrap();
            fill(&store, &content).await;
            store.close();
        });
        let report = check_files(&disk.mount(), &mut |_| {}).unwrap();
        assert!(report.is_sound(), "seed {seed}: {report:?}");
    }
}

#[test]
fn an_export_of_a_reopened_store_is_the_same() {
    for seed in 0..cases("SEGNO_EXPORT_SEEDS", 20) {
        block_on(async {
            let clock = VirtualClock::new();
            let disk = Disk::empty();
            let memory = MemoryStore::with_clock(Arc::clone(&clock) as _);
            let other_clock = VirtualClock::new();
            let store = EmbeddedStore::open_with("", options(&disk, &other_clock)).unwrap();
            for step in &script::script(seed, STEPS) {
                script::run(step, &*memory, &clock).await;
                script::run(step, &*store, &other_clock).await;
            }
            let content = content_of(&*store).await;
            drop(store);
            let store = EmbeddedStore::open_with("", options(&disk, &other_clock)).unwrap();
            assert_eq!(content_of(&*store).await[1..], content[1..], "seed {seed}: reopened");
            let target = MemoryStore::with_clock(Arc::clone(&other_clock) as _);
            let mut import = target.import().await.unwrap();
            import.put(content.clone()).await.unwrap();
            import.finish().await.unwrap();
            assert_eq!(content_of(&*target).await[1..], content[1..], "seed {seed}: moved");
        });
    }
}
