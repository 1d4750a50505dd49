//! Random runbooks, workers and requests.

use std::collections::BTreeMap;

use fastrand::Rng;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::definition::{
    Approval, BatchTime, Blackout, DataSource, Definition, MemberLimit, Members, OnPhaseFailure, Phase, Poll,
    Retry, SourceKind, StepDefinition, Wave,
};
use crate::message::{Action, EventMessage, MemberEntry, Message, Outcome, OverdueBehavior};
use crate::model::{Model, Reply, Workers};
use crate::rows::{BatchId, PhaseStatus, RetryFrom, RunbookId};

/// What random runs may contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spice {
    /// Requests, lost results, waves and all the rest that depends on timing.
    pub(super) is_wild: bool,
}

fn chance(rng: &mut Rng, percent: u32) -> bool {
    rng.u32(0..100) < percent
}

fn step(rng: &mut Rng, name: String, rollbacks: &[String], spice: Spice) -> StepDefinition {
    let mut params = BTreeMap::new();
    params.insert("Key".to_owned(), json!("{{Key}}"));
    if chance(rng, 10) {
        let out = if spice.is_wild { "{{Out0}}" } else { "{{Out0 | default('none')}}" };
        params.insert("Out".to_owned(), json!(out));
    }
    let mut output_params = BTreeMap::new();
    if chance(rng, 20) {
        output_params.insert("Out0".to_owned(), "Id".to_owned());
    }
    let has_rollback = !rollbacks.is_empty() && chance(rng, 50);
    StepDefinition {
        name,
        worker_id: "pool".to_owned(),
        function: "Do-It".to_owned(),
        params,
        output_params,
        on_failure: has_rollback.then(|| rollbacks[rng.usize(0..rollbacks.len())].clone()),
        poll: chance(rng, 30)
            .then(|| Poll { interval_sec: rng.u64(1..20) * 10, timeout_sec: rng.u64(1..10) * 100 }),
        retry: Retry { max_retries: rng.u32(0..3), interval_sec: rng.u64(0..100) },
    }
}

/// Steps that see the batch only.
fn batch_step(rng: &mut Rng, name: String, rollbacks: &[String], spice: Spice) -> StepDefinition {
    let mut step = step(rng, name, rollbacks, spice);
    step.params.clear();
    step
}

fn steps(
    rng: &mut Rng,
    prefix: &str,
    count: usize,
    rollbacks: &[String],
    spice: Spice,
) -> Vec<StepDefinition> {
    (0..count).map(|index| step(rng, format!("{prefix}{index}"), rollbacks, spice)).collect()
}

pub(super) fn definition(rng: &mut Rng, spice: Spice) -> Definition {
    let rollbacks: BTreeMap<String, Vec<StepDefinition>> = (0..rng.usize(0..3))
        .map(|index| {
            let count = rng.usize(1..4);
            (format!("undo{index}"), steps(rng, "undo", count, &[], spice))
        })
        .collect();
    let names: Vec<String> = rollbacks.keys().cloned().collect();
    let mut offset = 60 * rng.u64(0..3);
    let mut phases: Vec<Phase> = (0..rng.usize(1..4))
        .map(|index| {
            offset += rng.u64(0..3) * 30;
            phase(rng, format!("phase{index}"), offset, &names, spice)
        })
        .collect();
    phases.reverse();
    let init_count = rng.usize(0..3);
    let init = (0..init_count).map(|index| batch_step(rng, format!("init{index}"), &names, spice)).collect();
    let removal_count = rng.usize(0..3);
    Definition {
        name: "random".to_owned(),
        description: None,
        data_source: manual_source(),
        init,
        phases,
        on_member_removed: steps(rng, "remove", removal_count, &[], spice),
        rollbacks,
        members: if chance(rng, 60) { Members::Barrier } else { Members::Independent },
        on_phase_failure: match rng.u32(0..6) {
            0 => OnPhaseFailure::Pause,
            1 => OnPhaseFailure::Stop,
            _ => OnPhaseFailure::Continue,
        },
        blackout: blackouts(rng, spice),
        notify: None,
    }
}

/// The model adds members itself.
fn manual_source() -> DataSource {
    DataSource {
        kind: SourceKind::Manual,
        primary_key: "Key".to_owned(),
        batch_time: BatchTime::Manual,
        multi_valued_columns: Vec::new(),
        interval_sec: 300,
        max_removed_percent: 20,
    }
}

fn blackouts(rng: &mut Rng, spice: Spice) -> Vec<Blackout> {
    if !(spice.is_wild && chance(rng, 10)) {
        return Vec::new();
    }
    let from_sec = rng.u32(0..24) * 3_600;
    let to_sec = (from_sec + rng.u32(1..6) * 1_800) % 86_400;
    vec![Blackout { days: Vec::new(), from_sec, to_sec, timezone: "UTC".to_owned() }]
}

fn phase(rng: &mut Rng, name: String, offset_minutes: u64, rollbacks: &[String], spice: Spice) -> Phase {
    let count = rng.usize(1..4);
    let steps = (0..count).map(|index| step(rng, format!("{name}-step{index}"), rollbacks, spice)).collect();
    let mut phase = Phase {
        name,
        offset_minutes,
        steps,
        success_threshold: [100, 100, 50, 0][rng.usize(0..4)],
        max_parallel: None,
        waves: Vec::new(),
        error_budget: None,
        approval: None,
    };
    if spice.is_wild {
        phase.max_parallel = match rng.u32(0..8) {
            0 => Some(MemberLimit::Members(rng.u32(1..3))),
            1 => Some(MemberLimit::Percent(rng.u8(1..60))),
            _ => None,
        };
        if chance(rng, 25) {
            let pause_sec = [0, 0, 300][rng.usize(0..3)];
            phase.waves =
                [rng.u8(0..50), rng.u8(50..90), 100].map(|percent| Wave { percent, pause_sec }).to_vec();
        }
        phase.error_budget = match rng.u32(0..10) {
            0 => Some(MemberLimit::Members(rng.u32(0..3))),
            1 => Some(MemberLimit::Percent(rng.u8(0..60))),
            _ => None,
        };
        phase.approval = chance(rng, 10)
            .then(|| Approval { message: None, timeout_sec: rng.bool().then(|| rng.u64(1..2_000)) });
    }
    phase
}

/// Workers whose answer depends on the job's id and a seed only, however the run is split.
pub(super) fn workers(seed: u64, spice: Spice) -> Workers {
    Box::new(move |dispatch| {
        let hash = dispatch
            .job_id
            .bytes()
            .fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut rng = Rng::with_seed(hash);
        let after_sec = rng.u64(1..200);
        let outcome = match rng.u32(0..100) {
            0..14 => Outcome::failed("it failed"),
            14..17 if spice.is_wild => Outcome::Failed { message: "slow".to_owned(), throttled: true },
            17..40 => Outcome::InProgress,
            _ => Outcome::Completed { result: json!({"id": "x"}) },
        };
        match rng.u32(0..100) {
            0..4 if spice.is_wild => Reply::Lost(after_sec, outcome),
            4..6 if spice.is_wild => Reply::Never,
            6..8 if spice.is_wild => Reply::Vanish(outcome),
            8..30 if spice.is_wild => Reply::Deaf(after_sec, outcome),
            _ => Reply::After(after_sec, outcome),
        }
    })
}

pub(super) fn entry(key: &str) -> MemberEntry {
    let mut data = Map::new();
    data.insert("Key".to_owned(), Value::from(key));
    MemberEntry { key: key.to_owned(), data, digest: String::new() }
}

pub(super) fn start() -> Timestamp {
    "2025-03-15T00:00:00Z".parse().expect("it is a time")
}

/// Creates a batch with members.
pub(super) fn create(model: &mut Model, start: Option<Timestamp>, members: &[MemberEntry]) {
    model.request(Action::CreateBatch {
        batch_id: BatchId(42),
        runbook_id: RunbookId(7),
        runbook_name: "random".to_owned(),
        runbook_version: 1,
        batch_start_time: start,
    });
    for chunk in members.chunks(2) {
        model.request(Action::PutMembers { members: chunk.to_vec() });
    }
    model.request(Action::Seal);
}

fn pick<T>(rng: &mut Rng, list: impl Iterator<Item = T>) -> Option<T> {
    let list: Vec<T> = list.collect();
    if list.is_empty() { None } else { list.into_iter().nth(rng.usize(0..usize::MAX) % 7) }
}

/// A request that may make sense now, or not.
pub(super) fn request(rng: &mut Rng, model: &Model) -> Option<Action> {
    let key = format!("M{}@x", rng.u32(0..6));
    let phase = pick(rng, model.phases()).map(|phase| phase.id);
    let member = pick(rng, model.members()).map(|member| member.id);
    let step = pick(rng, model.steps()).map(|step| step.id);
    Some(match rng.u32(0..30) {
        0..4 => Action::PutMembers { members: vec![entry(&key), entry(&key.to_lowercase())] },
        4..8 => Action::RemoveMembers { keys: vec![key.to_uppercase()] },
        8 | 9 => Action::PauseBatch { reason: None },
        10 | 11 => Action::ResumeBatch,
        12 => Action::ResumePhase { phase_execution_id: phase? },
        13 => Action::ResumeMember { batch_member_id: member? },
        14 if rng.u32(0..3) == 0 => Action::CancelBatch { reason: None },
        14 | 15 => Action::CancelMember { batch_member_id: member? },
        16 => Action::CancelPhase { phase_execution_id: phase? },
        17 => Action::CancelStep { step_execution_id: step? },
        18 => Action::SkipPhase { phase_execution_id: phase? },
        19 => Action::SkipStep { step_execution_id: step? },
        20 | 21 => Action::RetryMembers {
            batch_member_ids: rng.bool().then(|| member.into_iter().collect()),
            from: if rng.bool() { RetryFrom::Step } else { RetryFrom::Phase },
        },
        22 => Action::RetryInit,
        23 => Action::RetryRollback { step_execution_id: step? },
        24 => Action::RetryRemoval { batch_member_id: member? },
        25 => Action::Reschedule { batch_start_time: crate::rows::later(model.now, rng.u64(0..20_000)) },
        26 => Action::PublishVersion {
            runbook_id: RunbookId(8),
            runbook_version: 2,
            overdue_behavior: if rng.bool() { OverdueBehavior::Rerun } else { OverdueBehavior::Ignore },
            rerun_init: rng.bool(),
        },
        27 => Action::ApprovePhase { phase_execution_id: phase? },
        28 => Action::RejectPhase { phase_execution_id: phase? },
        _ => Action::Advance,
    })
}

/// A message of another scheduler on the bus.
pub(super) fn bus_message(rng: &mut Rng, model: &Model) -> Option<Message> {
    let batch = model.batch();
    let (runbook_name, runbook_version, batch_id) =
        (batch.runbook_name.clone(), batch.runbook_version, batch.id);
    let member = pick(rng, model.members()).map(|member| (member.id, member.member_key.clone()));
    let step = pick(rng, model.steps());
    Some(Message::Event(match rng.u32(0..7) {
        0 => EventMessage::BatchInit {
            runbook_name,
            runbook_version,
            batch_id,
            batch_start_time: batch.batch_start_time,
            member_count: 1,
        },
        1 => {
            let phase = pick(rng, model.phases())?;
            EventMessage::PhaseDue {
                runbook_name,
                runbook_version,
                batch_id,
                phase_execution_id: phase.id,
                phase_name: phase.phase_name.clone(),
                offset_minutes: phase.offset_minutes,
                due_at: phase.due_at,
                member_ids: Vec::new(),
            }
        }
        2 => {
            let (batch_member_id, member_key) = member?;
            EventMessage::MemberAdded { runbook_name, runbook_version, batch_id, batch_member_id, member_key }
        }
        3 => {
            let (batch_member_id, member_key) = member?;
            EventMessage::MemberRemoved {
                runbook_name,
                runbook_version,
                batch_id,
                batch_member_id,
                member_key,
            }
        }
        4 => {
            let step = step?;
            EventMessage::PollCheck {
                runbook_name,
                runbook_version,
                batch_id,
                step_execution_id: step.id.0,
                step_name: step.work.step_name.clone(),
                poll_count: step.work.poll_count,
                is_init_step: false,
            }
        }
        5 => EventMessage::RetryCheck {
            step_execution_id: step?.id.0,
            is_init_step: false,
            runbook_name,
            runbook_version,
            batch_id,
        },
        _ => {
            let step = step?;
            EventMessage::DispatchTimeout {
                step_execution_id: step.id.0,
                is_init_step: false,
                runbook_name,
                runbook_version,
                batch_id,
                step_name: step.work.step_name.clone(),
                dispatched_at: step.work.dispatched_at?,
            }
        }
    }))
}

/// What an attentive operator does: goes on with whatever waits for a person.
pub(super) fn attend(model: &mut Model) -> bool {
    let batch = model.batch();
    let mut actions = Vec::new();
    if batch.status.is_terminal() {
        return false;
    }
    if batch.paused_at.is_some() {
        actions.push(Action::ResumeBatch);
    }
    for phase in model.phases() {
        let waits = phase.status == PhaseStatus::Pending && phase.approval_requested_at.is_some();
        if waits && phase.approved_at.is_none() {
            actions.push(Action::ApprovePhase { phase_execution_id: phase.id });
        }
        if phase.stopped_at.is_some() {
            actions.push(Action::ResumePhase { phase_execution_id: phase.id });
        }
    }
    if batch.is_manual && actions.is_empty() {
        actions.push(Action::Advance);
    }
    let is_busy = !actions.is_empty();
    for action in actions {
        model.request(action);
    }
    is_busy
}
