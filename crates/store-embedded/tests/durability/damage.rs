//! Flipped bits: noticed or harmless, never a wrong value and never a panic. And what `check` and `salvage` make of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use segno::clock::Clock;
use segno::store::*;
use segno_embedded::{EmbeddedStore, OpenOptions, check_files, salvage_files};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::disk::{Contents, Disk};
use crate::power_cut::open;
use crate::script;
use crate::{block_on, cases};

/// A store that was killed: a state file, and a log behind it that matters.
pub async fn killed() -> Contents {
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let options = || OpenOptions::default().files(disk.mount()).clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = EmbeddedStore::open_with("", options()).unwrap();
    for step in &script::script(7, 120) {
        script::run(step, &*store, &clock).await;
    }
    store.close();
    let store = EmbeddedStore::open_with("", options()).unwrap();
    for step in &script::script(8, 60) {
        script::run(step, &*store, &clock).await;
    }
    disk.contents()
}

/// What a store shows, line by line; `None` when it refuses to open or to answer, with an error that says why.
pub async fn shown(contents: Contents) -> Option<String> {
    let clock = VirtualClock::new();
    let options = OpenOptions::default()
        .files(Disk::with(contents).mount())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = match EmbeddedStore::open_with("", options) {
        Ok(store) => store,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error:?}");
            return None;
        }
    };
    let mut text = script::show_all(&*store, &clock, script::end_ms()).await;
    // What opening left out of the queues shows nowhere else.
    if store.known_damage().await.unwrap().is_some() {
        text.push_str("Corrupt\n");
    }
    Some(text)
}

/// Whether a store refused some of what was asked.
fn has_errors(shown: &str) -> bool {
    ["Corrupt", "Unavailable"].iter().any(|kind| shown.contains(kind))
}

fn names(contents: &Contents, prefix: &str) -> Vec<(String, usize)> {
    let files = contents.files().filter(|(name, _)| name.starts_with(prefix));
    files.map(|(name, len)| (name.clone(), len)).collect()
}

#[test]
fn a_flipped_bit_in_the_log_is_noticed() {
    let contents = block_on(killed());
    let whole = block_on(shown(contents.clone())).unwrap();
    let mut random = Random::new(1);
    let (mut refused, mut cut) = (0, 0);
    let log = names(&contents, "log-");
    for _ in 0..cases("SEGNO_FLIPPED_BITS", 1_000) {
        let (name, len) = &log[random.below(log.len() as u64) as usize];
        let mut damaged = contents.clone();
        // Most of a segment is zeros that are never read; its beginning is what matters.
        assert!(damaged.flip(name, random.below(8 * (*len).min(6_000) as u64) as usize));
        match block_on(shown(damaged)) {
            None => refused += 1,
            // The last record of a log may have been torn: a flipped bit in it cannot be distinguished from that.
            Some(shown) if shown != whole => cut += 1,
            Some(_) => {}
        }
    }
    assert!(refused > 100, "{refused} refused, {cut} taken for a torn end");
    assert!(cut < refused / 2, "{cut} taken for a torn end, {refused} refused");
}

#[test]
fn a_flipped_bit_in_the_state_is_noticed_or_harmless() {
    let contents = block_on(killed());
    let whole = block_on(shown(contents.clone())).unwrap();
    let (name, len) = names(&contents, "state.redb").remove(0);
    let stride = cases("SEGNO_FLIP_STRIDE", 1_499) as usize;
    let (mut noticed, mut harmless) = (0, 0);
    for (number, byte) in (0..len).step_by(stride).enumerate() {
        let mut damaged = contents.clone();
        assert!(damaged.flip(&name, 8 * byte + number % 8));
        match block_on(shown(damaged)) {
            None => noticed += 1,
            Some(shown) if has_errors(&shown) => noticed += 1,
            Some(shown) => {
                assert_eq!(shown, whole, "a wrong answer with byte {byte} damaged");
                harmless += 1;
            }
        }
    }
    println!("{noticed} noticed, {harmless} harmless");
    assert!(noticed > 0, "{harmless} harmless");
}

#[test]
fn damage_in_one_place_leaves_the_rest_readable() {
    const RECORDS: usize = 300;
    let put = |number| RecordWrite::Put {
        kind: "big".to_owned(),
        id: format!("{number:04}"),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: vec![number as u8; 2_000].into(),
    };
    let disk = Disk::empty();
    let store = open(&disk, &VirtualClock::new());
    let batch = RecordBatch { writes: (0..RECORDS).map(put).collect(), ..RecordBatch::default() };
    block_on(store.commit_records(batch)).unwrap();
    store.close();
    let (name, len) = names(&disk.contents(), "state.redb").remove(0);
    let (mut damaged_reads, mut good_reads) = (0, 0);
    for byte in (0..len).step_by(4_096).skip(4) {
        let mut damaged = disk.contents();
        assert!(damaged.flip(&name, 8 * byte + 800));
        let options = OpenOptions::default().files(Disk::with(damaged).mount()).clock(VirtualClock::new());
        let Ok(store) = EmbeddedStore::open_with("", options) else { continue };
        for number in (0..RECORDS).step_by(3) {
            let id = format!("{number:04}");
            match block_on(store.get_record("big", &id)) {
                Ok(record) => {
                    assert_eq!(record.unwrap().body, vec![number as u8; 2_000]);
                    good_reads += 1;
                }
                // Never `Unavailable`: what is damaged does not get better by itself, and the rest is not damaged.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    assert!(error.to_string().contains("segno store check"), "{error}");
                    damaged_reads += 1;
                }
            }
        }
    }
    assert!(damaged_reads > 50, "{damaged_reads} damaged");
    assert!(good_reads > 10 * damaged_reads, "{good_reads} good, {damaged_reads} damaged");
}

/// Records of one kind, each with a block of its own.
fn big_records(range: std::ops::Range<usize>) -> RecordBatch {
    let put = |number| RecordWrite::Put {
        kind: "big".to_owned(),
        id: format!("{number:04}"),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: vec![number as u8; 3_000].into(),
    };
    RecordBatch { writes: range.map(put).collect(), ..RecordBatch::default() }
}

/// Which records can be read, with their values checked.
fn readable_records(store: &EmbeddedStore, count: usize) -> BTreeSet<usize> {
    let is_readable = |number: &usize| match block_on(store.get_record("big", &format!("{number:04}"))) {
        Ok(record) => {
            assert_eq!(record.expect("it is there").body, vec![*number as u8; 3_000]);
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            false
        }
    };
    (0..count).filter(is_readable).collect()
}

#[test]
fn a_store_with_damage_reads_and_writes_around_it_and_says_that_it_is_damaged() {
    const RECORDS: usize = 200;
    const MORE: usize = 400;
    let disk = Disk::empty();
    let store = open(&disk, &VirtualClock::new());
    block_on(store.commit_records(big_records(0..RECORDS))).unwrap();
    assert_eq!(block_on(store.known_damage()).unwrap(), None);
    store.close();
    let (name, len) = names(&disk.contents(), "state.redb").remove(0);
    let mut cases = 0;
    for byte in (0..len).step_by(4_096).skip(4).step_by(5) {
        let mut damaged = disk.contents();
        assert!(damaged.flip(&name, 8 * byte + 800));
        let disk = Disk::with(damaged);
        let options = || OpenOptions::default().files(disk.mount()).clock(VirtualClock::new());
        let Ok(store) = EmbeddedStore::open_with("", options()) else { continue };
        let readable = readable_records(&store, RECORDS);
        // What is new lies behind the last record, so the block of that one must be whole.
        if readable.len() == RECORDS || !readable.contains(&(RECORDS - 1)) {
            continue;
        }
        cases += 1;
        let reason = block_on(store.known_damage()).unwrap().expect("damage was met");
        assert!(reason.contains("of state.redb fails its checksum"), "{reason}");
        // Behind all rows that are there, so that a checkpoint need not change what is damaged.
        let written = block_on(store.commit_records(big_records(RECORDS..MORE)));
        let exported = block_on(async {
            let mut export = store.export().await?;
            while !export.next_items().await?.is_empty() {}
            Ok::<_, ProviderError>(())
        });
        // A backup is all or nothing.
        assert_eq!(exported.expect_err("it cannot have everything").kind(), ErrorKind::Corrupt);
        written.expect("the log takes it");
        for _ in 0..3 {
            let all: BTreeSet<usize> = readable.iter().copied().chain(RECORDS..MORE).collect();
            assert_eq!(readable_records(&store, MORE), all, "byte {byte}");
        }
        store.close();
        let store = EmbeddedStore::open_with("", options()).expect("what was acknowledged is there");
        let all: BTreeSet<usize> = readable.into_iter().chain(RECORDS..MORE).collect();
        assert_eq!(readable_records(&store, MORE), all, "byte {byte}");
    }
    assert!(cases > 10, "{cases} cases");
}

#[test]
fn readers_that_meet_damage_at_the_same_time_keep_no_other_from_reading() {
    const RECORDS: usize = 200;
    let disk = Disk::empty();
    let store = open(&disk, &VirtualClock::new());
    block_on(store.commit_records(big_records(0..RECORDS))).unwrap();
    store.close();
    let (name, len) = names(&disk.contents(), "state.redb").remove(0);
    let open_with = |contents: &Contents| {
        let files = Disk::with(contents.clone()).mount();
        EmbeddedStore::open_with("", OpenOptions::default().files(files).clock(VirtualClock::new()))
    };
    // Several blocks, each of which has rows and none of which all others are found by.
    let mut damaged = disk.contents();
    let mut places = 0;
    for byte in (0..len).step_by(4_096).skip(8).step_by(6) {
        let mut once_more = damaged.clone();
        once_more.flip(&name, 8 * byte + 800);
        let lost = open_with(&once_more).map(|store| RECORDS - readable_records(&store, RECORDS).len());
        if lost.is_ok_and(|lost| lost > places && lost < RECORDS / 2) {
            damaged = once_more;
            places += 1;
        }
    }
    assert!(places >= 3, "{places} places");
    let store = open_with(&damaged).unwrap();
    let readable = readable_records(&store, RECORDS);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| assert_eq!(readable_records(&store, RECORDS), readable)));
        }
    });
}

fn check(contents: &Contents) -> segno_embedded::CheckReport {
    check_files(&Disk::with(contents.clone()).mount(), &mut |_| {}).unwrap()
}

#[test]
fn a_sound_store_is_found_sound() {
    for seed in 0..20 {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        block_on(async {
            for step in &script::script(seed, 80) {
                script::run(step, &*store, &clock).await;
            }
        });
        let killed = disk.contents();
        store.close();
        // The first checkpoint may not have been made when the store was killed; closing makes one.
        for (contents, has_rows) in [(killed, false), (disk.contents(), true)] {
            let before = contents.clone();
            let report = check(&contents);
            assert!(report.is_sound(), "seed {seed}: {:?}", report.findings);
            assert!(report.rows > 0 || !has_rows, "seed {seed}: nothing was checked");
            assert_eq!(contents, before, "seed {seed}: checking changed the store");
        }
    }
}

#[test]
fn a_check_finds_every_flipped_bit_that_matters() {
    let contents = block_on(killed());
    let whole = block_on(shown(contents.clone())).unwrap();
    let mut random = Random::new(3);
    let mut found = 0;
    let files: Vec<(String, usize)> =
        names(&contents, "state.redb").into_iter().chain(names(&contents, "log-")).collect();
    for _ in 0..cases("SEGNO_CHECKED_BITS", 40) {
        let (name, len) = &files[random.below(files.len() as u64) as usize];
        let len = if name.starts_with("log-") { (*len).min(6_000) } else { *len };
        let mut damaged = contents.clone();
        assert!(damaged.flip(name, random.below(8 * len as u64) as usize));
        let report = check(&damaged);
        found += u64::from(!report.is_sound());
        if report.is_sound() {
            let shown = block_on(shown(damaged)).expect("a store that was found sound opens");
            // The last record of a log may have been torn: a flipped bit in it cannot be distinguished from that.
            assert!(shown == whole || name.starts_with("log-"), "{name} was found sound");
        }
    }
    assert!(found > 10, "{found} found");
}

/// Everything that belongs to one instance or record, as lines.
async fn lines(contents: Contents) -> BTreeSet<String> {
    let clock = VirtualClock::new();
    let store = open(&Disk::with(contents), &clock);
    let mut lines = BTreeSet::new();
    for instance in store.list_instances().await.unwrap() {
        for execution_id in store.list_executions(&instance).await.unwrap() {
            let info = store.get_execution_info(&instance, execution_id).await.unwrap();
            let history = store.read_history_with_execution_id(&instance, execution_id).await.unwrap();
            lines.insert(format!("{instance} {info:?} {history:?}"));
        }
    }
    for kind in ["claim", "a/b:c"] {
        let all = ListRecords { kind, limit: 1_000, ..ListRecords::default() };
        lines.extend(store.list_records(all).await.unwrap().iter().map(|record| format!("{record:?}")));
    }
    lines
}

fn salvage(damaged: &Contents) -> (Contents, segno_embedded::SalvageReport) {
    let (from, to) = (Disk::with(damaged.clone()), Disk::empty());
    let report = salvage_files(&from.mount(), &to.mount(), &mut |_| {}).unwrap();
    assert_eq!(from.contents(), *damaged, "the damaged store was changed");
    (to.contents(), report)
}

#[test]
fn a_sound_store_is_salvaged_whole() {
    let contents = block_on(killed());
    let (saved, report) = salvage(&contents);
    assert_eq!((report.left_out.len(), report.more_left_out), (0, 0), "{:?}", report.left_out);
    assert_eq!(block_on(shown(saved.clone())), block_on(shown(contents)));
    assert!(check(&saved).is_sound());
}

#[test]
fn what_is_salvaged_is_sound_and_true() {
    let contents = block_on(killed());
    let whole = block_on(lines(contents.clone()));
    let mut random = Random::new(5);
    let state = names(&contents, "state.redb").remove(0);
    let mut lost = 0;
    for round in 0..cases("SEGNO_SALVAGES", 20) {
        let mut damaged = contents.clone();
        for _ in 0..=random.below(3) {
            damaged.flip(&state.0, random.below(8 * state.1 as u64) as usize);
        }
        let (saved, report) = salvage(&damaged);
        let found = check(&saved);
        assert!(found.is_sound(), "round {round}: {:?}", found.findings);
        let saved = block_on(lines(saved));
        assert!(report.left_out.is_empty() <= (saved == whole), "round {round}: a loss was not reported");
        lost += whole.difference(&saved).count();
        // The log is whole, so nothing that is saved is older than what was there.
        let untrue: Vec<_> = saved.difference(&whole).collect();
        assert!(untrue.is_empty() || !report.left_out.is_empty(), "round {round}: {untrue:?}");
    }
    println!("{lost} lines of {} lost", whole.len());
}

#[test]
fn a_store_without_its_state_or_with_a_hole_in_its_log_is_salvaged() {
    let contents = block_on(killed());
    let mut without_state = contents.clone();
    without_state.remove("state.redb");
    assert!(!check(&without_state).is_sound());
    let (saved, report) = salvage(&without_state);
    assert!(check(&saved).is_sound() && !report.left_out.is_empty());
    assert!(!block_on(lines(saved)).is_empty(), "the log alone has something");

    let mut holed = contents.clone();
    let log = names(&contents, "log-").pop().unwrap().0;
    assert!(holed.flip(&log, 8 * 800));
    assert!(block_on(shown(holed.clone())).is_none() && !check(&holed).is_sound());
    let (saved, report) = salvage(&holed);
    assert!(check(&saved).is_sound(), "{:?}", check(&saved).findings);
    assert!(report.left_out.iter().any(|finding| finding.problem.contains("cannot be read")), "{report:?}");
    assert!(block_on(lines(saved)).len() > 3);
}
