//! Compaction of a store that is not open: a power cut at any step leaves the store as it was, and it never becomes larger.

use segno_embedded::compact_files;
use segno_testkit::seeded::Random;

use crate::block_on;
use crate::damage::{killed, shown};
use crate::disk::{Contents, Disk};

fn state_bytes(contents: &Contents) -> usize {
    contents.files().filter(|(name, _)| *name == "state.redb").map(|(_, len)| len).sum()
}

#[test]
fn a_store_that_is_compacted_while_it_is_closed_stays_the_same() {
    let contents = block_on(killed());
    let whole = block_on(shown(contents.clone())).expect("a whole store");
    let disk = Disk::with(contents.clone());
    let report = compact_files(&disk.mount(), &mut |_| {}).expect("room");
    assert!(report.bytes_after < report.bytes_before, "{report:?}");
    assert!(state_bytes(&disk.contents()) <= state_bytes(&contents));
    assert_eq!(block_on(shown(disk.contents())).as_ref(), Some(&whole));
    let mut random = Random::new(1);
    for cut in 0..=disk.done() {
        let found = block_on(shown(disk.image(cut, &mut random)));
        assert_eq!(found.as_ref(), Some(&whole), "cut at {cut} of {}", disk.done());
    }
    // There is nothing to be had any more.
    let compacted = disk.contents();
    let report = compact_files(&disk.mount(), &mut |_| {}).expect("room");
    assert_eq!(report.bytes_after, report.bytes_before);
    let names = |contents: &Contents| -> Vec<(String, usize)> {
        contents.files().map(|(name, len)| (name.clone(), len)).collect()
    };
    assert_eq!(names(&disk.contents()), names(&compacted));
}
