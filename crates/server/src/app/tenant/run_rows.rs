//! Rows of the ledger as they go over the wire.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use segno_actions::functions::Scope;
use segno_actions::pools::Room;
use segno_api::Json;
use segno_api::asset::AssetPartition;
use segno_api::backfill::{Backfill, BackfillChunk, BackfillStatus, ChunkStatus};
use segno_api::run::{Run, RunStatus, RunTask, RunTrigger, RunTriggerKind, RunWait, TaskStatus};
use segno_ledger::drive::{JudgedPartition, RunDetail, WaitReason};
use segno_ledger::event::{PartitionSelector, Trigger};
use segno_ledger::ids::dispatch_id;
use segno_ledger::tables::{
    BackfillChunkRow, BackfillRow, BackfillState, ChunkState, PartitionRow, RunRow, RunState, TaskRow,
    TaskState,
};

/// A run.
pub fn run(row: &RunRow) -> Run {
    let labels: BTreeMap<String, String> =
        row.labels.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    Run {
        id: row.run_id.to_string(),
        dag: row.dag.as_deref().unwrap_or(&row.plan_id).to_owned(),
        dag_version: row.code_version.as_deref().and_then(|version| version.parse().ok()),
        status: run_status(row.state),
        is_paused: row.paused,
        cancel_requested: row.cancel_requested,
        reason: text(&row.reason),
        trigger: row.trigger.as_deref().and_then(trigger),
        run_key: text(&row.run_key),
        parent_run: text(&row.parent_run_id),
        labels,
        triggered_at: time(row.triggered_at),
        completed_at: row.completed_at.map(time),
        tasks_total: row.tasks_total,
        tasks_completed: row.tasks_completed,
        tasks_succeeded: row.tasks_succeeded,
        tasks_failed: row.tasks_failed,
        tasks_skipped: row.tasks_skipped,
        tasks_cancelled: row.tasks_cancelled,
    }
}

/// The parameters of a run.
pub fn params(row: &RunRow) -> Option<Json> {
    row.params.as_deref().and_then(|json| Json::from_text(json.to_owned()).ok())
}

/// The input of a task as its DAG has it: the row keeps beside it which texts are templates.
pub fn input(row: &TaskRow) -> Option<Json> {
    let mut stored: serde_json::Value = serde_json::from_str(row.input.as_deref()?).ok()?;
    let value = stored.get_mut("value").map(serde_json::Value::take);
    Json::of(&value.unwrap_or(stored)).ok()
}

/// The state of a run, as the API has it.
pub fn run_status(state: RunState) -> RunStatus {
    match state {
        RunState::Triggered => RunStatus::Triggered,
        RunState::Running => RunStatus::Running,
        RunState::Succeeded => RunStatus::Succeeded,
        RunState::Failed => RunStatus::Failed,
        RunState::Cancelled => RunStatus::Cancelled,
    }
}

/// The stored state of a run.
pub fn run_state(status: RunStatus) -> RunState {
    match status {
        RunStatus::Triggered => RunState::Triggered,
        RunStatus::Running => RunState::Running,
        RunStatus::Succeeded => RunState::Succeeded,
        RunStatus::Failed => RunState::Failed,
        RunStatus::Cancelled => RunState::Cancelled,
    }
}

/// The stored state of a task.
pub fn task_state(status: TaskStatus) -> TaskState {
    match status {
        TaskStatus::Planned => TaskState::Planned,
        TaskStatus::Blocked => TaskState::Blocked,
        TaskStatus::Ready => TaskState::Ready,
        TaskStatus::Dispatched => TaskState::Dispatched,
        TaskStatus::Running => TaskState::Running,
        TaskStatus::RetryWait => TaskState::RetryWait,
        TaskStatus::Skipped => TaskState::Skipped,
        TaskStatus::Cancelled => TaskState::Cancelled,
        TaskStatus::Failed => TaskState::Failed,
        TaskStatus::Succeeded => TaskState::Succeeded,
    }
}

fn trigger(json: &str) -> Option<RunTrigger> {
    let (kind, id) = match serde_json::from_str(json).ok()? {
        Trigger::Cron { schedule_id } => (RunTriggerKind::Schedule, schedule_id),
        Trigger::Manual { user_id } => (RunTriggerKind::Manual, user_id),
        Trigger::Materialization { upstream_materialization_id: id } => (RunTriggerKind::Materialization, id),
        Trigger::Webhook { webhook_id } => (RunTriggerKind::Webhook, webhook_id),
        Trigger::Sensor { sensor_id, .. } => (RunTriggerKind::Sensor, sensor_id),
        Trigger::Backfill { backfill_id, .. } => (RunTriggerKind::Backfill, backfill_id),
    };
    // A server without keys does not know its callers.
    let id = Some(id.to_string()).filter(|id| kind != RunTriggerKind::Manual || id != "unknown");
    Some(RunTrigger { kind, id })
}

/// The partition of a run, if all its tasks have the same.
pub fn partition(tasks: &[TaskRow]) -> Option<String> {
    let keys: BTreeSet<&str> = tasks.iter().filter_map(|task| task.partition_key.as_deref()).collect();
    (keys.len() == 1).then(|| keys.into_iter().map(str::to_owned).collect())
}

/// Why a run waits: what its tasks wait for, and the first time at which something happens by itself.
pub fn run_wait(detail: &RunDetail) -> RunWait {
    let status = run_status(detail.run.state);
    if status.is_final() {
        return RunWait { why: format!("it has ended: {status}"), wakes_at: None };
    }
    let wakes_at = detail.waits.iter().filter_map(|wait| wait.due_ms).min().map(time);
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for wait in &detail.waits {
        *counts.entry(in_short(&wait.reason)).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let why = match (detail.run.paused, detail.run.cancel_requested, counts.is_empty()) {
        (_, true, _) => "it is being cancelled: running tasks end first".to_owned(),
        (true, _, _) => "it is paused; resume it".to_owned(),
        (_, _, true) => "its tasks are planned in a moment".to_owned(),
        _ => format!("tasks: {}", counts.join(", ")),
    };
    RunWait { why, wakes_at }
}

fn in_short(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::Upstream(_) => "wait for upstream tasks",
        WaitReason::Paused => "are paused",
        WaitReason::Slot(Some(_)) => "wait for a slot of a pool",
        WaitReason::Slot(None) => "are ready",
        WaitReason::Worker => "wait for a worker",
        WaitReason::RunSlot(_) => "wait until another run of the DAG ends",
        WaitReason::Runs => "run",
        WaitReason::Retry => "wait for their next attempt",
        WaitReason::Items => "wait for the tasks of a list",
    }
}

/// Tasks of a run, upstream before downstream, and by key among those of the same depth.
pub fn sorted(detail: &RunDetail) -> impl Iterator<Item = &TaskRow> {
    let mut downstream: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut open: HashMap<&str, usize> = HashMap::new();
    for edge in &detail.edges {
        downstream.entry(&edge.upstream_task_key).or_default().push(&edge.downstream_task_key);
        *open.entry(&edge.downstream_task_key).or_default() += 1;
    }
    let mut depth: HashMap<&str, usize> = HashMap::new();
    let mut ready: Vec<&str> = detail.tasks.iter().map(|task| &*task.task_key).collect();
    ready.retain(|key| !open.contains_key(key));
    while let Some(key) = ready.pop() {
        let below = depth.get(key).copied().unwrap_or_default() + 1;
        for next in downstream.get(key).into_iter().flatten().copied() {
            let known = depth.entry(next).or_default();
            *known = below.max(*known);
            if let Some(left) = open.get_mut(next) {
                *left -= 1;
                if *left == 0 {
                    ready.push(next);
                }
            }
        }
    }
    let mut tasks: Vec<&TaskRow> = detail.tasks.iter().collect();
    let place = |task: &TaskRow| depth.get(&*task.task_key).copied().unwrap_or_default();
    tasks.sort_by(|a, b| (place(a), &a.task_key).cmp(&(place(b), &b.task_key)));
    tasks.into_iter()
}

/// A task, without its instance.
pub fn task(detail: &RunDetail, row: &TaskRow) -> RunTask {
    let upstream = detail.edges.iter().filter(|edge| edge.downstream_task_key == row.task_key);
    let waits = detail.waits.iter().find(|wait| wait.task_key == row.task_key);
    RunTask {
        key: row.task_key.to_string(),
        status: task_status(row.state),
        depends_on: upstream.map(|edge| edge.upstream_task_key.to_string()).collect(),
        function: text(&row.function),
        orchestration: text(&row.orchestration),
        attempt: row.attempt,
        max_attempts: row.max_attempts,
        trigger_rule: row.trigger_rule.text().to_owned(),
        ready_at: row.ready_at.map(time),
        dispatched_at: row.dispatched_at.map(time),
        started_at: began_at(row).map(time),
        completed_at: row.completed_at.map(time),
        retry_not_before: row.retry_not_before.map(time),
        progress_pct: row.progress_pct,
        worker: text(&row.worker_id),
        error_message: text(&row.error_message),
        error_category: text(&row.error_category),
        pool: text(&row.pool),
        asset: text(&row.asset_key),
        partition: text(&row.partition_key),
        expanded_from: text(&row.expanded_from),
        marked_by: text(&row.marked_by),
        instance: None,
        waits: waits.map(|wait| RunWait { why: wait.reason.to_string(), wakes_at: wait.due_ms.map(time) }),
    }
}

/// When the last attempt of a task was taken up. One that ended before a node noticed that counts from its dispatch.
fn began_at(row: &TaskRow) -> Option<i64> {
    let has_ended = row.completed_at.is_some() || row.retry_not_before.is_some();
    row.started_at.or(row.dispatched_at.filter(|_| has_ended))
}

/// The stored instance of the attempt of a task, if one was dispatched.
pub fn instance_of(scope: &Scope, row: &TaskRow) -> Option<String> {
    let has_target = row.function.is_some() || row.orchestration.is_some();
    let was_dispatched = row.attempt > 0 && row.dispatched_at.is_some();
    let job = dispatch_id(&row.run_id, &row.task_key, row.attempt);
    (has_target && was_dispatched).then(|| Room::LEDGER.instance_id(scope, &job))
}

/// The state of a task, as the API has it.
pub fn task_status(state: TaskState) -> TaskStatus {
    match state {
        TaskState::Planned => TaskStatus::Planned,
        TaskState::Blocked => TaskStatus::Blocked,
        TaskState::Ready => TaskStatus::Ready,
        TaskState::Dispatched => TaskStatus::Dispatched,
        TaskState::Running => TaskStatus::Running,
        TaskState::RetryWait => TaskStatus::RetryWait,
        TaskState::Skipped => TaskStatus::Skipped,
        TaskState::Cancelled => TaskStatus::Cancelled,
        TaskState::Failed => TaskStatus::Failed,
        TaskState::Succeeded => TaskStatus::Succeeded,
    }
}

/// A partition of an asset, and whether it is stale.
pub fn judged_partition(judged: &JudgedPartition) -> AssetPartition {
    AssetPartition {
        stale_since: judged.stale.and_then(|stale| stale.since_ms).map(time),
        stale_reason: judged.stale.map(|stale| stale.reason.code().to_owned()),
        ..asset_partition(&judged.row)
    }
}

/// A partition of an asset, without a look at what it is made of.
pub fn asset_partition(row: &PartitionRow) -> AssetPartition {
    AssetPartition {
        asset: row.asset_key.to_string(),
        partition: row.partition_key.to_string(),
        last_materialization_run: text(&row.last_materialization_run_id),
        last_materialization_at: row.last_materialization_at.map(time),
        last_attempt_run: text(&row.last_attempt_run_id),
        last_attempt_at: row.last_attempt_at.map(time),
        last_attempt_outcome: text(&row.last_attempt_outcome),
        stale_since: None,
        stale_reason: None,
    }
}

/// A backfill.
pub fn backfill(row: &BackfillRow) -> Backfill {
    let (first_partition, last_partition) = match serde_json::from_str(&row.partition_selector) {
        Ok(PartitionSelector::Range { start, end }) => (Some(start.to_string()), Some(end.to_string())),
        Ok(PartitionSelector::Explicit { keys }) => {
            (keys.first().map(ToString::to_string), keys.last().map(ToString::to_string))
        }
        _ => (None, None),
    };
    Backfill {
        id: row.backfill_id.to_string(),
        dag: text(&row.dag).unwrap_or_default(),
        status: match row.state {
            BackfillState::Pending => BackfillStatus::Pending,
            BackfillState::Running => BackfillStatus::Running,
            BackfillState::Paused => BackfillStatus::Paused,
            BackfillState::Succeeded => BackfillStatus::Succeeded,
            BackfillState::Failed => BackfillStatus::Failed,
            BackfillState::Cancelled => BackfillStatus::Cancelled,
        },
        first_partition,
        last_partition,
        total_partitions: row.total_partitions,
        chunk_size: row.chunk_size,
        max_concurrent_runs: row.max_concurrent_runs,
        planned_chunks: row.planned_chunks,
        completed_chunks: row.completed_chunks,
        failed_chunks: row.failed_chunks,
        parent_backfill: text(&row.parent_backfill_id),
        created_at: time(row.created_at),
    }
}

/// A chunk of a backfill.
pub fn chunk(row: &BackfillChunkRow) -> BackfillChunk {
    BackfillChunk {
        index: row.chunk_index,
        status: match row.state {
            ChunkState::Planned => ChunkStatus::Planned,
            ChunkState::Running => ChunkStatus::Running,
            ChunkState::Succeeded => ChunkStatus::Succeeded,
            ChunkState::Failed => ChunkStatus::Failed,
        },
        partitions: serde_json::from_str(&row.partition_keys).unwrap_or_default(),
        run: text(&row.run_id),
    }
}

fn text(value: &Option<std::sync::Arc<str>>) -> Option<String> {
    value.as_deref().map(str::to_owned)
}

/// A stored time in Unix milliseconds.
fn time(at_ms: i64) -> Timestamp {
    Timestamp::from_millisecond(at_ms).unwrap_or(if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX })
}
