//! Power cuts at every step, also during checkpoints and during recovery: nothing acknowledged is missing, nothing is
//! there by half.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::disk::Disk;
use crate::script::{self, Step};
use crate::{block_on, cases};

const STEPS: usize = 40;
const IMAGES_PER_SCRIPT: u64 = 60;

pub fn open(disk: &Arc<Disk>, clock: &Arc<VirtualClock>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .checkpoint_bytes(3_000);
    EmbeddedStore::open_with("", options).unwrap()
}

/// What the oracle shows at the end after each number of steps.
pub async fn expectations(steps: &[Step]) -> Vec<String> {
    let mut expected = Vec::new();
    for count in 0..=steps.len() {
        let clock = VirtualClock::new();
        let oracle = MemoryStore::with_clock(Arc::clone(&clock) as _);
        for step in &steps[..count] {
            script::run(step, &*oracle, &clock).await;
        }
        expected.push(script::show_all(&*oracle, &clock, script::end_ms()).await);
    }
    expected
}

#[test]
fn a_power_cut_loses_nothing_acknowledged_and_leaves_nothing_by_half() {
    let images = cases("SEGNO_CRASH_IMAGES", 150);
    for seed in 0..images.div_ceil(IMAGES_PER_SCRIPT) {
        block_on(power_cuts(seed));
    }
}

async fn power_cuts(seed: u64) {
    let steps = script::script(seed, STEPS);
    let expected = expectations(&steps).await;
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let store = open(&disk, &clock);
    // How much had been done to the disk when each step was acknowledged.
    let mut acknowledged = vec![disk.done()];
    let mut random = Random::new(seed);
    let mut compactions = tokio::task::JoinSet::new();
    for step in &steps {
        script::run(step, &*store, &clock).await;
        acknowledged.push(disk.done());
        if random.chance(1, 8) {
            // It goes on beside the next steps. One that comes while another runs interrupts it.
            let store = Arc::clone(&store);
            compactions.spawn(async move { store.compact(|_| {}).await });
            tokio::task::yield_now().await;
        }
    }
    compactions.join_all().await;
    store.close();
    for image in 0..IMAGES_PER_SCRIPT {
        let cut = random.below(disk.done() as u64 + 1) as usize;
        let finished = acknowledged.partition_point(|done| *done <= cut);
        let what = format!("seed {seed}, image {image}: cut at {cut} of {}", disk.done());
        let mut contents = disk.image(cut, &mut random);
        // Every other image is cut again while it recovers.
        for _ in 0..random.below(3) {
            let recovering = Disk::with(contents);
            drop(open(&recovering, &VirtualClock::new()));
            let cut = random.below(recovering.done() as u64 + 1) as usize;
            contents = recovering.image(cut, &mut random);
        }
        let clock = VirtualClock::new();
        let store = open(&Disk::with(contents), &clock);
        let shown = script::show_all(&*store, &clock, script::end_ms()).await;
        // Before the first opening was finished there is an empty store.
        let last = finished.saturating_sub(1);
        let candidates = &expected[last..(last + 2).min(expected.len())];
        assert!(
            candidates.contains(&shown),
            "{what}: neither after step {last} nor after the next\n{shown}\nexpected\n{}",
            candidates.join("\nor\n")
        );
    }
}
