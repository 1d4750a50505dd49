//! Log files that are gone or cut short: reported wherever something acknowledged may be lost with them, and never when a
//! crash has left the files like that.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::ErrorKind;
use segno_embedded::{EmbeddedStore, OpenError, OpenOptions, check_files, salvage_files};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::disk::{Contents, Disk};
use crate::power_cut::{expectations, open};
use crate::{block_on, cases, script};

const STEPS: usize = 14;

fn try_open(contents: Contents, clock: &Arc<VirtualClock>) -> Result<Arc<EmbeddedStore>, OpenError> {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    EmbeddedStore::open_with("", OpenOptions::default().files(Disk::with(contents).mount()).clock(clock))
}

fn segments(contents: &Contents) -> Vec<String> {
    contents.files().map(|(name, _)| name.clone()).filter(|name| name.starts_with("log-")).collect()
}

/// A store that is opened twice, with checkpoints in between, and what it shows after each step.
struct Written {
    disk: Arc<Disk>,
    /// How much had been done to the disk when each step was acknowledged.
    acknowledged: Vec<usize>,
    expected: Vec<String>,
}

impl Written {
    async fn new(seed: u64) -> Self {
        let steps = script::script(seed, STEPS);
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let mut store = open(&disk, &clock);
        let mut acknowledged = vec![disk.done()];
        for (number, step) in steps.iter().enumerate() {
            if number == STEPS / 2 {
                drop(store);
                store = open(&disk, &clock);
            }
            script::run(step, &*store, &clock).await;
            acknowledged.push(disk.done());
        }
        store.close();
        Written { disk, acknowledged, expected: expectations(&steps).await }
    }

    /// What may be shown when everything is there that was acknowledged at a cut.
    fn allowed_at(&self, cut: usize) -> &[String] {
        let finished = self.acknowledged.partition_point(|done| *done <= cut);
        let last = finished.saturating_sub(1);
        &self.expected[last..(last + 2).min(self.expected.len())]
    }
}

#[test]
fn what_a_crash_leaves_is_never_taken_for_a_loss() {
    for seed in 0..cases("SEGNO_CRASH_SCRIPTS", 1) {
        let written = block_on(Written::new(seed));
        let mut random = Random::new(seed);
        for cut in 0..=written.disk.done() {
            let image = written.disk.image(cut, &mut random);
            // Before that there is no store to check.
            if image.files().any(|(name, _)| name == "state.redb") {
                let report = check_files(&Disk::with(image.clone()).mount(), &mut |_| {}).unwrap();
                assert!(report.is_sound(), "seed {seed}, cut at {cut}: {:?}", report.findings);
            }
            let opened = try_open(image, &VirtualClock::new());
            assert!(opened.is_ok(), "seed {seed}, cut at {cut}: {opened:?}");
        }
    }
}

#[test]
fn a_segment_that_is_gone_is_reported_or_had_nothing_acknowledged() {
    let (mut reported, mut harmless) = (0, 0);
    for seed in 0..cases("SEGNO_CRASH_SCRIPTS", 1) {
        let written = block_on(Written::new(seed));
        let mut random = Random::new(seed);
        for cut in written.acknowledged[0]..=written.disk.done() {
            let image = written.disk.image(cut, &mut random);
            for name in segments(&image) {
                let what = format!("seed {seed}, cut at {cut}, without {name}");
                let mut contents = image.clone();
                contents.remove(&name);
                let is_sound =
                    check_files(&Disk::with(contents.clone()).mount(), &mut |_| {}).unwrap().is_sound();
                let clock = VirtualClock::new();
                match try_open(contents, &clock) {
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
                        assert!(error.to_string().contains(&name), "{what}: {error}");
                        assert!(!is_sound, "{what}: a check finds nothing");
                        reported += 1;
                    }
                    Ok(store) => {
                        let shown = block_on(script::show_all(&*store, &clock, script::end_ms()));
                        assert!(written.allowed_at(cut).contains(&shown), "{what}: something is lost");
                        assert!(is_sound, "{what}: a check finds something");
                        harmless += 1;
                    }
                }
            }
        }
    }
    assert!(reported > harmless, "{reported} reported, {harmless} harmless");
}

/// A store after a clean stop, and one that was killed with everything in its log.
fn left() -> [(&'static str, Contents); 2] {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let options =
            || OpenOptions::default().files(disk.mount()).clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let store = EmbeddedStore::open_with("", options()).unwrap();
        for step in &script::script(7, 30) {
            script::run(step, &*store, &clock).await;
        }
        store.close();
        let closed = disk.contents();
        let store = EmbeddedStore::open_with("", options()).unwrap();
        for step in &script::script(8, 30) {
            script::run(step, &*store, &clock).await;
        }
        [("closed", closed), ("killed", disk.contents())]
    })
}

#[test]
fn a_cut_segment_and_one_that_is_gone_are_reported_alike() {
    for (what, whole) in left() {
        let newest = segments(&whole).pop().unwrap();
        let mut gone = whole.clone();
        gone.remove(&newest);
        let mut damaged = vec![(gone, "is missing")];
        for len in [0, 31, 32, 33, 4_096, 262_143] {
            let mut cut = whole.clone();
            cut.truncate(&newest, len);
            damaged.push((cut, if len < 32 { "fails its checksum" } else { "was cut short" }));
        }
        for (contents, problem) in damaged {
            let refused = try_open(contents.clone(), &VirtualClock::new()).unwrap_err().to_string();
            assert!(refused.contains(&newest) && refused.contains(problem), "{what}: {refused}");
            assert!(refused.contains("segno store salvage"), "{what}: {refused}");
            let disk = Disk::with(contents.clone());
            let report = check_files(&disk.mount(), &mut |_| {}).unwrap();
            let is_found =
                report.findings.iter().any(|found| found.place == newest && found.problem.contains(problem));
            assert!(is_found, "{what}, {problem}: {:?}", report.findings);
            assert_eq!(disk.contents(), contents, "{what}, {problem}: it was changed");
        }
    }
}

#[test]
fn a_check_tells_from_which_commit_on_something_may_be_lost() {
    for (what, mut contents) in left() {
        let newest = segments(&contents).pop().unwrap();
        contents.remove(&newest);
        let first: u64 = newest.trim_start_matches("log-").parse().unwrap();
        let report = check_files(&Disk::with(contents.clone()).mount(), &mut |_| {}).unwrap();
        let found =
            report.findings.iter().find(|found| found.place == newest).expect("the file that is gone");
        assert_eq!(found.key, format!("commits from {first} on"), "{what}");
        assert!(found.problem.contains("may be lost"), "{what}: {}", found.problem);
        let (from, to) = (Disk::with(contents), Disk::empty());
        let salvaged = salvage_files(&from.mount(), &to.mount(), &mut |_| {}).unwrap();
        assert!(salvaged.left_out.contains(found), "{what}: {:?}", salvaged.left_out);
        assert!(try_open(to.contents(), &VirtualClock::new()).is_ok(), "{what}: what was saved opens");
    }
}

#[test]
fn a_segment_or_state_of_another_time_is_reported() {
    let [(_, closed), (_, killed)] = left();
    let swap = |into: &Contents, from: &Contents, prefix: &str| {
        let mut mixed = into.clone();
        mixed.remove(prefix);
        mixed.copy_from(from, prefix);
        mixed
    };
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    drop(open(&disk, &clock));
    let other = disk.contents();
    for (what, mixed) in [
        ("the state of another store", swap(&killed, &other, "state.redb")),
        ("the log of another store", swap(&closed, &other, "log-")),
    ] {
        let refused = try_open(mixed.clone(), &VirtualClock::new()).expect_err(what);
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{what}: {refused}");
        let report = check_files(&Disk::with(mixed).mount(), &mut |_| {}).unwrap();
        assert!(!report.is_sound(), "{what}");
    }
}

#[test]
fn a_log_without_its_state_is_not_taken_for_a_new_store() {
    for (what, mut contents) in left() {
        contents.remove("state.redb");
        let disk = Disk::with(contents.clone());
        let options = OpenOptions::default().files(disk.mount()).clock(VirtualClock::new());
        let refused = EmbeddedStore::open_with("", options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{what}: {refused}");
        assert!(refused.to_string().contains("state.redb is missing"), "{what}: {refused}");
        assert_eq!(disk.contents(), contents, "{what}: it was changed");
    }
}
