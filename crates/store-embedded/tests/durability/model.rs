//! Random operations on the embedded store and on the memory store must be answered alike, also when the embedded one
//! is closed and opened again in between.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::disk::Disk;
use crate::{block_on, cases, script};

const STEPS: usize = 60;

fn open(disk: &Arc<Disk>, clock: &Arc<VirtualClock>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .checkpoint_bytes(4_000);
    EmbeddedStore::open_with("", options).unwrap()
}

#[test]
fn every_answer_is_the_oracles_also_across_reopening() {
    let sequences = cases("SEGNO_MODEL_SEQUENCES", 25);
    let mut joined = 0;
    for seed in 0..sequences {
        block_on(async {
            let (mut random, disk) = (Random::new(seed), Disk::empty());
            let (oracle_clock, clock) = (VirtualClock::new(), VirtualClock::new());
            let oracle = MemoryStore::with_clock(Arc::clone(&oracle_clock) as _);
            let mut store = open(&disk, &clock);
            for (number, step) in script::script(seed, STEPS).iter().enumerate() {
                let expected = script::run(step, &*oracle, &oracle_clock).await;
                let answer = script::run(step, &*store, &clock).await;
                joined += u64::from(answer.ends_with("joined"));
                assert_eq!(answer, expected, "seed {seed}, step {number}");
                if random.chance(1, 6) {
                    drop(store);
                    store = open(&disk, &clock);
                }
                if random.chance(1, 6) {
                    let (shown, expected) = (script::show(&*store).await, script::show(&*oracle).await);
                    assert_eq!(shown, expected, "seed {seed}, after step {number}");
                }
            }
            let end_ms = script::end_ms();
            let expected = script::show_all(&*oracle, &oracle_clock, end_ms).await;
            assert_eq!(script::show_all(&*store, &clock, end_ms).await, expected, "seed {seed}, at the end");
        });
    }
    assert!(joined >= sequences / 10, "{joined} turns were joined to activities in {sequences} sequences");
}
