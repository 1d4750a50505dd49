//! Properties of random lives. `SEGNO_LEDGER_LOGS=200000` runs more of them; a failure prints its seed.

use std::collections::BTreeMap;

use segno_testkit::seeded::Random;

use super::simulation::{Features, Life, scope};
use crate::event::Envelope;
use crate::fold::{State, fold, rebuild_run};
use crate::tables::{Changes, Resolution, Row, Rows, TableChanges, TaskState, VisitChanges, VisitRows};

/// Logs in the gate, over all tests of this file.
const LOGS: u64 = 10_000;
/// Parts in which they run beside each other.
const PARTS: u64 = 4;

fn logs() -> u64 {
    std::env::var("SEGNO_LEDGER_LOGS").ok().and_then(|count| count.parse().ok()).unwrap_or(LOGS)
}

/// Names the seed of a life that fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with seed {}", self.0);
        }
    }
}

fn check_part(part: u64) {
    for seed in (part..logs()).step_by(PARTS as usize) {
        let _named = Seed(seed);
        let features = Features { pools: seed % 3 == 0, people: seed % 2 == 0 };
        let life = Life::of(seed, features);
        let mut random = Random::new(seed ^ 0x5eed);
        counters_equal_counts(&life.state);
        let expected = life.state.rows();
        in_any_order_with_duplicates(&life.log, &expected, &mut random);
        in_any_split(&life.log, &expected, &mut random);
        if seed % 4 < 2 {
            stored_in_files(&life.log, &expected, &mut random);
        }
        if !features.pools {
            with_a_straggler(&life.log, &expected, &mut random);
        }
    }
}

#[test]
fn random_lives_end_alike_however_they_are_folded_part_1() {
    check_part(0);
}

#[test]
fn random_lives_end_alike_however_they_are_folded_part_2() {
    check_part(1);
}

#[test]
fn random_lives_end_alike_however_they_are_folded_part_3() {
    check_part(2);
}

#[test]
fn random_lives_end_alike_however_they_are_folded_part_4() {
    check_part(3);
}

/// Counters are what a query over the rows would count, and nothing of an ended run is left open.
fn counters_equal_counts(state: &State) {
    for run in state.runs() {
        let tasks: Vec<_> = state.tasks_of(&run.run_id).collect();
        let count = |state| tasks.iter().filter(|task| task.state == state).count() as u32;
        assert_eq!(run.tasks_total, tasks.len() as u32);
        assert_eq!(run.tasks_succeeded, count(TaskState::Succeeded));
        assert_eq!(run.tasks_failed, count(TaskState::Failed));
        assert_eq!(run.tasks_skipped, count(TaskState::Skipped));
        assert_eq!(run.tasks_cancelled, count(TaskState::Cancelled));
        assert_eq!(run.tasks_completed, run.tasks_total, "it ended");
        let edges: Vec<_> = state.edges_of(&run.run_id).collect();
        for task in tasks {
            let mine = || edges.iter().filter(|edge| edge.downstream_task_key == task.task_key);
            assert_eq!(task.deps_total, mine().count() as u32, "{}", task.task_key);
            let satisfied = mine().filter(|edge| edge.satisfied).count() as u32;
            assert_eq!(task.deps_satisfied_count, satisfied, "{}", task.task_key);
            let resolved = mine().filter(|edge| edge.resolution.is_some()).count() as u32;
            assert_eq!(task.deps_resolved_count, resolved, "{}", task.task_key);
            let is_consistent = |edge: &&&crate::tables::DepRow| {
                edge.satisfied == (edge.resolution == Some(Resolution::Succeeded))
            };
            assert!(mine().all(|edge| is_consistent(&edge)));
        }
    }
    assert_eq!(state.ready().count(), 0);
    assert_eq!(state.retries().count(), 0);
    assert_eq!(state.expansions().count(), 0);
    assert_eq!(state.running().count(), 0);
    assert_eq!(state.dispatched().count(), 0);
    assert_eq!(state.pending_dispatches().count(), 0);
    assert!(state.rows().dispatch_outbox.is_empty());
    assert!(state.rows().timers.is_empty());
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for place in (1..items.len()).rev() {
        items.swap(place, random.below(place as u64 + 1) as usize);
    }
}

fn in_any_order_with_duplicates(log: &[Envelope], expected: &Rows, random: &mut Random) {
    let mut events = log.to_vec();
    let repeated: Vec<Envelope> = log.iter().filter(|_| random.chance(1, 4)).cloned().collect();
    events.extend(repeated);
    shuffle(&mut events, random);
    let mut state = State::new(scope());
    fold(&mut state, &events);
    assert_eq!(&state.rows(), expected);
}

/// Files as a compactor writes them: rows by key, changed by deltas.
#[derive(Default)]
struct Files(BTreeMap<&'static str, BTreeMap<Vec<String>, Vec<crate::tables::Cell>>>);

fn key_of<K: AsRef<[std::sync::Arc<str>]>>(key: &K) -> Vec<String> {
    key.as_ref().iter().map(|part| part.to_string()).collect()
}

impl VisitChanges for Files {
    type Error = std::convert::Infallible;

    fn changes<R: Row>(&mut self, changes: &TableChanges<R>) -> Result<(), Self::Error> {
        let table = self.0.entry(R::TABLE).or_default();
        for key in &changes.deleted {
            assert!(table.remove(&key_of(key)).is_some(), "{}: a tombstone for no row: {key:?}", R::TABLE);
        }
        table.extend(changes.upserted.iter().map(|row| (key_of(&row.key()), row.to_cells())));
        Ok(())
    }
}

/// Fills rows from files.
struct Read<'a>(&'a Files);

impl VisitRows for Read<'_> {
    type Error = crate::tables::UnexpectedCell;

    fn rows<R: Row>(&mut self, rows: &mut Vec<R>) -> Result<(), Self::Error> {
        let table = self.0.0.get(R::TABLE);
        for cells in table.into_iter().flat_map(BTreeMap::values) {
            rows.push(R::from_cells(cells.clone())?);
        }
        Ok(())
    }
}

impl Files {
    fn read(&self) -> Rows {
        let mut rows = Rows::default();
        rows.visit(&mut Read(self)).unwrap();
        rows
    }

    fn apply(&mut self, changes: &Changes) {
        changes.visit(self).unwrap();
    }
}

/// Consecutive batches, each some of what is left.
fn batches<'a>(log: &'a [Envelope], random: &mut Random) -> Vec<&'a [Envelope]> {
    let mut batches = Vec::new();
    let mut rest = log;
    while !rest.is_empty() {
        let (batch, next) = rest.split_at(random.between(1, rest.len() as u64) as usize);
        batches.push(batch);
        rest = next;
    }
    batches
}

fn in_any_split(log: &[Envelope], expected: &Rows, random: &mut Random) {
    let mut state = State::new(scope());
    for batch in batches(log, random) {
        assert!(fold(&mut state, batch).stragglers.is_empty());
    }
    assert_eq!(&state.rows(), expected);
}

/// The same with changes stored in files after each batch, and the state sometimes loaded from them.
fn stored_in_files(log: &[Envelope], expected: &Rows, random: &mut Random) {
    let mut state = State::new(scope());
    let mut files = Files::default();
    for batch in batches(log, random) {
        fold(&mut state, batch);
        files.apply(&state.take_changes());
        if random.chance(1, 2) {
            state = State::load(scope(), files.read(), state.watermark());
        }
    }
    assert_eq!(&state.rows(), expected);
    assert_eq!(&files.read(), expected, "what was written is what is in memory");
}

/// One event becomes visible after later ones were folded.
fn with_a_straggler(log: &[Envelope], expected: &Rows, random: &mut Random) {
    let late = random.below(log.len() as u64) as usize;
    let seen = random.between(late as u64 + 1, log.len() as u64) as usize;
    let mut early: Vec<Envelope> = log[..seen].to_vec();
    let straggler = early.remove(late);
    let mut state = State::new(scope());
    fold(&mut state, &early);
    let mut files = Files::default();
    files.apply(&state.take_changes());
    let untouched = |rows: &Rows, run_id: &str| {
        let others = rows.tasks.iter().filter(|row| &*row.run_id != run_id);
        others.cloned().collect::<Vec<_>>()
    };
    let before = state.rows();
    let report = fold(&mut state, std::slice::from_ref(&straggler));
    for run_id in &report.stragglers {
        rebuild_run(&mut state, run_id, &log[..seen]);
        assert_eq!(untouched(&state.rows(), run_id), untouched(&before, run_id));
    }
    files.apply(&state.take_changes());
    fold(&mut state, &log[seen..]);
    files.apply(&state.take_changes());
    let mut rows = state.rows();
    // Which attempt of two late ones counts for a partition does not depend on what was folded again.
    rows.partition_status.clone_from(&expected.partition_status);
    assert_eq!(&rows, expected);
    let mut read = files.read();
    read.partition_status.clone_from(&expected.partition_status);
    assert_eq!(&read, expected, "what was written is what is in memory");
}
