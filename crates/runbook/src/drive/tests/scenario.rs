//! One batch with everything: init with polling, barriers, polls, retries, a rollback, a removed
//! and a late member, pause and resume, retry of failed members, and at the end a cancelled batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use segno::store::ListRecords;
use serde_json::{Value, json};

use super::world::{Pace, Reply, Workers, World, entry};
use crate::drive::{RECEIPTS, ReceiptState};
use crate::message::Action;
use crate::rows::{BatchId, BatchStatus, MemberStatus, PhaseStatus, RetryFrom, Row, Table, Work, WorkStatus};

pub const EVERYTHING: &str = r#"
name: migrate
data_source: {type: manual, primary_key: Key}
retry: {max_retries: 1, interval: 10s}
init:
  - {name: open, worker_id: here, function: Open-Batch, params: {Batch: "{{_batch_id}}"},
     output_params: {BatchRef: Id}, poll: {interval: 30s, timeout: 10m}}
phases:
  - name: prepare
    offset: T-14m
    steps:
      - {name: create, worker_id: here, function: New-User, params: {Key: "{{Key}}", Ref: "{{BatchRef}}"},
         output_params: {UserId: Id}, on_failure: undo}
      - {name: sync, worker_id: here, function: Wait-Sync, params: {Key: "{{Key}}", User: "{{UserId}}"},
         poll: {interval: 2m, timeout: 20m}}
  - name: cutover
    offset: T-0
    steps:
      - {name: switch, worker_id: here, function: Switch, params: {Key: "{{Key}}"}}
      - {name: verify, worker_id: here, function: Verify, params: {Key: "{{Key}}"}}
on_member_removed:
  - {name: revert, worker_id: here, function: Revert, params: {Key: "{{Key}}", User: "{{UserId}}"}}
rollbacks:
  undo:
    - {name: delete, worker_id: here, function: Delete-User, params: {Key: "{{Key}}"}}
    - {name: close, worker_id: here, function: Close-Account, params: {Key: "{{Key}}"}}
"#;

/// Workers of the scenario. What they answer follows from the job, so a call that is made again is
/// answered as before.
pub fn workers() -> Workers {
    Arc::new(|function, job, input| {
        let key = input["Key"].as_str().unwrap_or_default();
        let in_progress = || Reply::Done(json!({"complete": false}));
        match function {
            "open-batch" if job.contains("poll") => {
                Reply::Done(json!({"complete": true, "data": {"Id": "ref-1"}}))
            }
            "open-batch" => in_progress(),
            "new-user" => match key {
                "b" if !job.contains("retry") => Reply::Fail("busy"),
                "c" if !job.contains("retry-2") => Reply::Fail("no licence"),
                _ => Reply::Later(2, json!({"Id": format!("user-{key}")})),
            },
            "wait-sync" if key == "d" || !job.contains("poll-2") => in_progress(),
            _ => Reply::Later(1, json!({"Id": "x"})),
        }
    })
}

/// What the scenario came to, without times.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub rows: Vec<String>,
    pub instances: Vec<String>,
}

impl Outcome {
    /// The same without the polls of a member that never ends: how many there are depends on the
    /// time.
    pub fn without_polls_of(mut self, member: &str) -> Self {
        let step = format!("/{member}/sync");
        self.rows.retain(|line| !line.contains(&step));
        self.instances.retain(|line| !line.contains(&step));
        self
    }

    /// Compares it with what was expected, line by line.
    pub fn check(&self, expected: &Outcome, when: &str) {
        let lines = |outcome: &Outcome| [outcome.rows.clone(), outcome.instances.clone()].concat();
        let (found, expected) = (lines(self), lines(expected));
        let differ: Vec<_> =
            found.iter().zip(&expected).filter(|(found, expected)| found != expected).collect();
        assert!(differ.is_empty() && found.len() == expected.len(), "{when}: {differ:#?} {found:#?}");
    }
}

/// The runbook, with times that fit the pace.
fn runbook(pace: Pace) -> String {
    match pace {
        Pace::Virtual => EVERYTHING.to_owned(),
        Pace::Real => ["10s", "30s", "2m"]
            .iter()
            .fold(EVERYTHING.replace("T-14m", "T-0"), |text, time| text.replace(time, "1s")),
    }
}

/// Plays the scenario, from outside of all processes.
pub async fn play(world: &World) -> BatchId {
    world.publish(&runbook(world.pace)).await;
    let start = match world.pace {
        Pace::Virtual => world.now() + SignedDuration::from_mins(15),
        Pace::Real => world.now(),
    };
    let batch = world.create(Some(start), &["a", "b", "c", "d"]).await;
    // d leaves while it polls, e comes late.
    let polls = async || match world.step(batch, "d", "sync").await {
        Some(step) => step.work.poll_count > 0,
        None => false,
    };
    world.until("a poll of d", polls).await;
    if world.pace == Pace::Real {
        // The batch cannot end while d polls.
        pause(world, batch).await;
        world.request(batch, "resume", Action::ResumeBatch).await;
        world.until_answered(batch, "resume").await;
    }
    let (runbooks, scope) = (&world.runbooks, &world.scope);
    runbooks.remove_members(scope, batch, vec!["D".to_owned()], ("leave", None)).await.unwrap();
    runbooks.put_members(scope, batch, vec![entry("e")], ("join", None)).await.unwrap();
    let ended = async |name: &str| world.phase(batch, name).await.status.is_terminal();
    world.until("the end of prepare", async || ended("prepare").await).await;
    if world.pace == Pace::Virtual {
        // Nothing of the next phase begins while the batch is paused.
        pause(world, batch).await;
        let past = start + SignedDuration::from_mins(1);
        world.until("the due time of cutover", async || world.now() > past).await;
        assert_eq!(world.phase(batch, "cutover").await.step_counts.succeeded, 0);
        world.request(batch, "resume", Action::ResumeBatch).await;
    }
    let failed = world.until_ended(batch).await;
    assert_eq!(failed.status, BatchStatus::Failed, "c has failed: {:?}", failed.error_message);
    let retry = Action::RetryMembers { batch_member_ids: None, from: RetryFrom::Step };
    world.request(batch, "retry", retry).await;
    world.until("the retry", async || world.batch(batch).await.status == BatchStatus::Completed).await;
    batch
}

async fn pause(world: &World, batch: BatchId) {
    let pause = Action::PauseBatch { reason: Some("lunch".to_owned()) };
    world.request(batch, "pause", pause).await;
    assert_eq!(world.until_answered(batch, "pause").await.state, ReceiptState::Applied);
}

/// A second batch, which is cancelled while its calls run.
pub async fn play_cancelled(world: &World) -> BatchId {
    let start = world.now() + SignedDuration::from_mins(14);
    let batch = world.create(Some(start), &["d", "f"]).await;
    let polls = async || {
        let step = world.step(batch, "d", "sync").await;
        step.is_some_and(|step| step.work.status == WorkStatus::Polling)
    };
    world.until("a poll of d", polls).await;
    world.request(batch, "cancel", Action::CancelBatch { reason: Some("wrong list".to_owned()) }).await;
    world.until_ended(batch).await;
    batch
}

/// Everything about the batches that does not depend on the time, or on ids: a node that dies may
/// have drawn ids that it did not use.
pub async fn outcome(world: &World, batches: &[BatchId]) -> Outcome {
    let mut rows = Vec::new();
    let mut names = Names::default();
    for batch in batches {
        names.add(world, *batch).await;
        let row = world.batch(*batch).await;
        rows.push(format!("batch {batch} {:?} {:?} {:?}", row.status, row.error_message, row.member_counts));
        for table in Table::ALL {
            rows.extend(world.table(*batch, table).await.iter().map(|row| shown(row, &names)));
        }
    }
    let receipts = ListRecords { kind: RECEIPTS, id_prefix: "", after_id: None, limit: 1_000 };
    for record in world.store.list_records(receipts).await.unwrap() {
        let receipt: Value = serde_json::from_slice(&record.body).unwrap();
        rows.push(format!("receipt {} {}", receipt["key"], receipt["state"]));
    }
    let mut instances: Vec<String> = Vec::new();
    for instance in world.instances().await {
        let (job, status) = instance.rsplit_once(' ').unwrap();
        let job = job.strip_prefix("eu/acme/runbook:").unwrap();
        instances.push(format!("{} {status}", names.job(job)));
    }
    instances.sort();
    Outcome { rows, instances }
}

/// Names of members and steps by their ids.
#[derive(Default)]
struct Names(BTreeMap<(&'static str, u64), String>);

impl Names {
    async fn add(&mut self, world: &World, batch: BatchId) {
        for member in world.members(batch).await {
            self.0.insert(("member", member.id.0), format!("{batch}/{}", member.member_key));
        }
        for step in world.steps(batch).await {
            let member = &self.0[&("member", step.batch_member_id.0)];
            let name = format!("{member}/{}", step.work.step_name);
            self.0.insert(("step", step.id.0), name);
        }
    }

    /// The id of a job, with names in place of ids.
    fn job(&self, job: &str) -> String {
        let parts: Vec<&str> = job.split('-').collect();
        let name = |kind, number: &str| self.0[&(kind, number.parse().unwrap())].clone();
        match parts.as_slice() {
            ["step", step, rest @ ..] => format!("step {} {rest:?}", name("step", step)),
            ["removed", member, rest @ ..] => format!("removed {} {rest:?}", name("member", member)),
            ["rollback", _, member, rest @ ..] => format!("rollback {} {rest:?}", name("member", member)),
            _ => job.to_owned(),
        }
    }
}

fn shown(row: &Row, names: &Names) -> String {
    let work = match row {
        Row::Step(row) => &row.work,
        Row::Init(row) => &row.work,
        Row::Rollback(row) => &row.work,
        Row::Removal(row) => &row.work,
        Row::Member(row) => {
            return format!("member {} {:?} {:?}", row.member_key, row.status, row.worker_data);
        }
        Row::Phase(row) => return format!("phase {} {:?} {:?}", row.phase_name, row.status, row.step_counts),
        Row::MemberKey(row) => return format!("key {} {}", row.key, row.is_current),
        Row::Batch(_) => return String::new(),
    };
    let job = work.job_id.as_deref().map(|job| names.job(job));
    let Work { step_name, status, retry_count, poll_count, result_json, error_message, .. } = work;
    format!("{step_name} {status:?} {job:?} {retry_count} {poll_count} {result_json:?} {error_message:?}")
}

#[test]
fn a_batch_with_everything_goes_as_the_runbook_says() {
    segno_testkit::run(async {
        let world = World::new(workers());
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = play(&world).await;
        let status = async |member: &str, step: &str| world.step(batch, member, step).await.unwrap().work;
        let created = status("a", "create").await;
        assert_eq!(created.status, WorkStatus::Succeeded);
        assert_eq!(created.params_json, r#"{"Key":"a","Ref":"ref-1"}"#, "the output of init");
        assert_eq!(status("a", "sync").await.poll_count, 2);
        assert_eq!(status("b", "create").await.retry_count, 1);
        assert_eq!(status("c", "create").await.retry_count, 2);
        assert_eq!(status("d", "sync").await.status, WorkStatus::Cancelled);
        for member in ["a", "b", "c", "e"] {
            assert_eq!(status(member, "verify").await.status, WorkStatus::Succeeded, "{member}");
        }
        assert_eq!(world.member(batch, "d").await.status, MemberStatus::Removed);
        let rollbacks = world.table(batch, Table::RollbackExecutions).await;
        assert_eq!(rollbacks.len(), 2, "{rollbacks:?}");
        let removals = world.table(batch, Table::RemovalExecutions).await;
        let Row::Removal(removal) = &removals[0] else { unreachable!("rows of the table") };
        assert_eq!(removal.work.status, WorkStatus::Succeeded);
        assert_eq!(removal.work.params_json, r#"{"Key":"d","User":"user-d"}"#);
        for phase in ["prepare", "cutover"] {
            assert_eq!(world.phase(batch, phase).await.status, PhaseStatus::Completed, "{phase}");
        }
        let receipt = world.runbooks.receipt(&world.scope, batch, "pause").await.unwrap().unwrap();
        assert_eq!(receipt.state, ReceiptState::Applied);

        let cancelled = play_cancelled(&world).await;
        assert_eq!(world.batch(cancelled).await.status, BatchStatus::Cancelled);
        let doubled: Vec<String> = world
            .attempts
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, count)| **count > 1)
            .map(|(job, count)| format!("{job} {count}"))
            .collect();
        assert!(doubled.is_empty(), "{doubled:?}");
        drop(process);
    });
}
