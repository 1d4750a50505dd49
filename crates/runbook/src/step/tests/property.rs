//! Properties of random runbooks under random messages: duplicated, reordered, dropped, redelivered, with crashes
//! at any commit. After every commit, [`crate::model`] checks the invariants; here, that every member ends.
//!
//! 10,000 sequences run in the tests, in less than 60 s of one core. `SEGNO_RUNBOOK_SEQUENCES=1000000 cargo nextest run
//! --workspace -E 'package(segno-runbook) and test(property)'` runs more. A failure prints its seed;
//! `SEGNO_RUNBOOK_SEED=<seed>` runs that one alone and checks the invariants after every commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;

use super::random::{self, Spice, attend, bus_message, create, definition, entry, request, start, workers};
use crate::message::Message;
use crate::model::Model;
use crate::rows::{Row, RowKey, earlier};
use crate::step::Input;

/// Sequences of all tests here, unless the environment has another number.
const SEQUENCES: u64 = 10_000;

/// Moments after which a batch that has not ended hangs.
const MAX_MOMENTS: usize = 5_000;

/// Runs a share of the sequences; a failure names its seed.
fn sequences(share_percent: u64, offset: u64, run: impl Fn(u64)) {
    if let Some(seed) = std::env::var("SEGNO_RUNBOOK_SEED").ok().and_then(|seed| seed.parse().ok()) {
        run(seed);
        return;
    }
    let total = std::env::var("SEGNO_RUNBOOK_SEQUENCES").ok().and_then(|total| total.parse().ok());
    let count = total.unwrap_or(SEQUENCES) * share_percent / 100;
    for seed in (0..count).map(|index| offset * 10_000_000 + index) {
        if let Err(failure) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("failed with SEGNO_RUNBOOK_SEED={seed}");
            std::panic::resume_unwind(failure);
        }
    }
}

fn new_model(rng: &mut Rng, spice: Spice) -> Model {
    let seed = rng.u64(..);
    let now = earlier(start(), rng.u64(0..4) * 7_200);
    let mut model = Model::new(now, workers(seed, spice));
    model.define(1, definition(rng, spice));
    model.define(2, definition(rng, spice));
    let manual = rng.u32(0..10) == 0;
    let members: Vec<_> = (0..rng.u32(0..5)).map(|index| entry(&format!("m{index}@x"))).collect();
    create(&mut model, (!manual).then(start), &members);
    model
}

/// Runs until the batch has ended, with an operator who attends to what waits for a person.
fn run_to_end(model: &mut Model) {
    let mut moments = 0;
    loop {
        while model.tick() {
            moments += 1;
            assert!(moments < MAX_MOMENTS, "the batch does not end: {:#?}", model.batch());
        }
        if !attend(model) {
            break;
        }
        moments += 1;
        let phases: Vec<_> = model.phases().collect();
        assert!(moments < MAX_MOMENTS, "the operator does not help: {:#?} {phases:#?}", model.batch());
    }
    assert!(model.batch().status.is_terminal(), "nothing happens any more: {:#?}", model.batch());
    for (key, row) in model.rows() {
        let is_open = match row {
            Row::Step(row) => row.work.status.is_open(),
            Row::Init(row) => row.work.status.is_open(),
            Row::Rollback(row) => row.work.status.is_open(),
            Row::Removal(row) => row.work.status.is_open(),
            Row::Member(row) => row.is_leaving() || row.is_returning,
            Row::Phase(row) => !row.status.is_terminal(),
            Row::Batch(_) | Row::MemberKey(_) => false,
        };
        assert!(!is_open, "the batch has ended, but {key} is open: {row:#?}");
    }
}

/// Repeats, reorders and drops messages that wait, and delivers others that are not due.
fn disturb(rng: &mut Rng, model: &mut Model) {
    match rng.u32(0..12) {
        0 | 1 => {
            if let Some(message) = model.inbox_mut().front().cloned() {
                model.send(message);
            }
        }
        2 => model.inbox_mut().make_contiguous().reverse(),
        3 => {
            // A result that is lost is found when its call is looked after. Requests are durable.
            let is_result = |message: &Message| matches!(message, Message::Result(_));
            if model.inbox_mut().front().is_some_and(is_result) {
                model.inbox_mut().pop_front();
            }
        }
        4 => model.crash(),
        5 => {
            if let Some(message) = bus_message(rng, model) {
                model.send(message);
            }
        }
        6 => {
            let keys: Vec<RowKey> = model.rows().map(|(key, _)| key.clone()).collect();
            if let Some(key) = keys.get(rng.usize(0..keys.len().max(1))) {
                model.apply(&Input::Due(key.clone()));
                model.commit();
            }
        }
        _ => {
            if let Some(action) = request(rng, model) {
                model.request(action);
            }
        }
    }
}

fn wild_sequence(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut model = new_model(&mut rng, Spice { is_wild: true });
    model.checks = rng.u32(0..4) == 0 || std::env::var_os("SEGNO_RUNBOOK_SEED").is_some();
    model.rows_per_part = [1, 3, 8, 2_000][rng.usize(0..4)];
    model.inputs_per_commit = [1, 1, 2, 5][rng.usize(0..4)];
    model.settle();
    for _ in 0..rng.u32(0..30) {
        for _ in 0..rng.u32(0..3) {
            disturb(&mut rng, &mut model);
        }
        if !model.tick() {
            attend(&mut model);
        }
    }
    run_to_end(&mut model);
    model.check();
}

#[test]
fn every_member_ends_whatever_happens_a() {
    sequences(30, 1, wild_sequence);
}

#[test]
fn every_member_ends_whatever_happens_b() {
    sequences(30, 2, wild_sequence);
}

#[test]
fn every_member_ends_whatever_happens_c() {
    sequences(30, 3, wild_sequence);
}

/// States of all rows at the end.
///
/// The comparison is exact because tame runbooks have no placeholder without a value. A step with one fails while
/// it is released. Releasing the steps of one phase and creating those of a later one take turns, part by
/// part, so the size of parts would decide what comes first at that moment: whether steps of the later phase
/// were created and then cancelled or never created, and, where members are independent, whether
/// the later phase had begun when `on_phase_failure` stopped the batch. Both ends are right. Results and timers
/// come before cursor work, so that failures by them have one end.
fn ends(model: &Model) -> Vec<String> {
    let end = |(key, row): (&RowKey, &Row)| match row {
        Row::Batch(row) => format!("{key} {:?} {:?}", row.status, row.member_counts),
        Row::Phase(row) => {
            let members = (row.members_succeeded, row.members_failed);
            format!("{key} {:?} {:?} {members:?}", row.status, row.reason)
        }
        Row::Member(row) => format!("{key} {:?} {:?}", row.status, row.worker_data),
        Row::Step(row) => format!("{key} {:?} {:?}", row.work.status, row.work.job_id),
        Row::Init(row) => format!("{key} {:?} {:?}", row.work.status, row.work.job_id),
        Row::Rollback(row) => format!("{key} {:?} {:?}", row.work.status, row.work.job_id),
        Row::Removal(row) => format!("{key} {:?} {:?}", row.work.status, row.work.job_id),
        Row::MemberKey(row) => format!("{key} {row:?}"),
    };
    model.rows().map(end).collect()
}

fn split_sequence(seed: u64) {
    let run = |rows_per_part: u32, inputs_per_commit: usize, crash_percent: u32| {
        let mut rng = Rng::with_seed(seed);
        let mut crashes = Rng::with_seed(seed);
        let mut model = new_model(&mut rng, Spice { is_wild: false });
        model.checks = false;
        model.rows_per_part = rows_per_part;
        model.inputs_per_commit = inputs_per_commit;
        while model.tick() {
            if crashes.u32(0..100) < crash_percent {
                model.crash();
            }
        }
        let mut moments = 0;
        while attend(&mut model) && moments < 100 {
            moments += 1;
            while model.tick() {}
        }
        ends(&model)
    };
    let whole = run(2_000, 1_000, 0);
    for (rows_per_part, inputs_per_commit, crash_percent) in [(1, 1, 0), (4, 3, 30)] {
        assert_eq!(whole, run(rows_per_part, inputs_per_commit, crash_percent), "split by {rows_per_part}");
    }
}

#[test]
fn any_split_into_parts_and_commits_gives_the_same_end() {
    sequences(10, 4, split_sequence);
}

#[test]
fn random_definitions_are_varied() {
    let mut rng = Rng::with_seed(1);
    let mut has_polls = false;
    for _ in 0..20 {
        let definition = random::definition(&mut rng, Spice { is_wild: true });
        has_polls |= definition.phases.iter().flat_map(|phase| &phase.steps).any(|step| step.poll.is_some());
    }
    assert!(has_polls);
}
