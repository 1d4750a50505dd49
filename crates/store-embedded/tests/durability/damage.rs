//! Flipped bits: noticed, never a wrong value.

use segno::clock::Clock;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;
use std::sync::Arc;

use crate::disk::{Contents, Disk};
use crate::power_cut::open;
use crate::script;
use crate::{block_on, cases};

#[test]
fn a_flipped_bit_in_the_log_is_noticed() {
    let contents = block_on(written());
    let log: Vec<(String, usize)> = contents
        .files()
        .filter(|(name, _)| name.starts_with("log-"))
        .map(|(name, len)| (name.clone(), len))
        .collect();
    let whole = block_on(shown(contents.clone())).unwrap();
    let mut random = Random::new(1);
    let (mut refused, mut cut) = (0, 0);
    for _ in 0..cases("SEGNO_FLIPPED_BITS", 300) {
        let (name, len) = &log[random.below(log.len() as u64) as usize];
        let mut damaged = contents.clone();
        // Most of a segment is zeros that are never read; its beginning is what matters.
        assert!(damaged.flip(name, random.below(8 * (*len).min(6_000) as u64) as usize));
        match block_on(shown(damaged)) {
            None => refused += 1,
            // The last record of a log may have been torn: nobody can tell a flipped bit in it from that.
            Some(shown) if shown != whole => cut += 1,
            Some(_) => {}
        }
    }
    assert!(refused > 100, "{refused} refused, {cut} taken for a torn end");
    assert!(cut < 100, "{cut} taken for a torn end, {refused} refused");
}

async fn written() -> Contents {
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let options = OpenOptions::default().files(disk.mount()).clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = EmbeddedStore::open_with("", options).unwrap();
    for step in &script::script(7, 60) {
        script::run(step, &*store, &clock).await;
    }
    drop(store);
    disk.contents()
}

/// What a store on these files shows; `None` when it refuses to open.
async fn shown(contents: Contents) -> Option<String> {
    let clock = VirtualClock::new();
    let options = OpenOptions::default()
        .files(Disk::with(contents).mount())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = EmbeddedStore::open_with("", options).ok()?;
    Some(script::show_all(&*store, &clock, script::end_ms()).await)
}

#[test]
fn the_files_of_a_store_open_again() {
    let contents = block_on(written());
    drop(open(&Disk::with(contents), &VirtualClock::new()));
}
