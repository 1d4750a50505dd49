//! The commit of a turn: made from a plan, and repeated until its outcome is known.

use std::sync::Arc;

use bytes::Bytes;

use super::Shared;
use super::observer::{self, ExecutionSpan};
use crate::dead_letter::DEAD_LETTER_KIND;
use crate::replay::{Execution, TurnPlan};
use crate::store::{
    AckOrchestrationItem, AfterAck, CustomStatusChange, ErrorKind, ExecutionMetadata, ExecutionStatus,
    LockToken, ProviderError, TurnLock, engine_version,
};
use crate::telemetry;

/// Deliveries of a message that was decoded and refused.
pub(super) const DELIVERED_ONCE: u32 = 1;

/// The commit of a plan.
pub(super) fn to_ack(
    shared: &Shared,
    execution: &Execution,
    plan: TurnPlan,
    token: LockToken,
    now_ms: u64,
) -> AckOrchestrationItem {
    let mut metadata = ExecutionMetadata::default();
    if let Some((status, output)) = plan.status {
        metadata.status = Some(status);
        metadata.output = output.map(|output| output.encode());
    }
    if let Some(status) = plan.custom_status {
        metadata.custom_status = Some(match status {
            Some(status) => CustomStatusChange::Set(Bytes::copy_from_slice(status.as_str().as_bytes())),
            None => CustomStatusChange::Clear,
        });
    }
    if plan.starts {
        let started = execution.started();
        metadata.orchestration_name = Some(started.name.as_str().into());
        metadata.orchestration_version = Some(started.version.as_str().into());
        metadata.parent_instance_id = started.parent.as_ref().map(|parent| parent.instance.clone());
        metadata.pinned_version = Some(engine_version());
        metadata.incarnation = Some(started.seed);
    }
    if plan.labels_changed || (plan.starts && !execution.started().labels.is_empty()) {
        metadata.labels = Some(execution.labels());
    }
    let instance = &execution.id().instance;
    let parked = plan.refused.into_iter().flat_map(|(item, reason)| {
        let body = item.for_orchestrator(&**instance).body;
        shared.letters().message(instance, DELIVERED_ONCE, reason, now_ms).writes(Some(body))
    });
    AckOrchestrationItem {
        lock_token: token,
        lock: TurnLock::Instance,
        execution_id: execution.id().execution_id,
        history_delta: plan.events,
        worker_items: plan.worker_items,
        orchestrator_items: plan.orchestrator_items,
        metadata,
        cancelled_activities: plan.cancelled_activities,
        cancelled_timers: plan.cancelled_timers,
        records: parked.collect(),
        after: AfterAck::Release,
    }
}

/// Commits a turn, which ends an execution if there is a span. An error of the store never fails an
/// instance: the commit is retried for as long as the lock holds. A turn that joins its activity is
/// tried once: the end of the activity can still be committed by itself.
pub(super) async fn ack(
    shared: &Shared,
    instance: &str,
    turn: Arc<AckOrchestrationItem>,
    span: Option<&ExecutionSpan>,
) -> Result<(), ProviderError> {
    let counts = Counts::of(&turn);
    let commit = |tries| {
        let is_repeated_part = tries > 0 && is_part(&turn);
        let answer = shared.store.ack_orchestration_item(Arc::clone(&turn));
        async move {
            match answer.await {
                // The first try was not answered, but succeeded: no other commit can have written
                // its events.
                Err(error) if is_repeated_part && error.kind() == ErrorKind::Conflict => Ok(()),
                answer => answer,
            }
        }
    };
    let committed = match turn.lock {
        TurnLock::Instance => shared.insist("a turn could not be committed", commit).await,
        TurnLock::Activity { .. } => shared.store.ack_orchestration_item(Arc::clone(&turn)).await,
    };
    match &committed {
        Ok(()) => {
            shared.leases.stop_activities(&turn.cancelled_activities);
            counts.add();
            if let Some(observer) = &shared.observer {
                observer::report(&**observer, instance, &turn, span);
            }
        }
        // A turn that could not join its activity had no lock to lose.
        Err(error) if error.kind() == ErrorKind::LockLost && turn.lock == TurnLock::Instance => {
            metrics::counter!(telemetry::LOCKS_LOST, "what" => "turn").increment(1);
        }
        Err(_) => {}
    }
    committed
}

/// Whether this commit records a part of the turn, which continues.
fn is_part(turn: &AckOrchestrationItem) -> bool {
    turn.after == AfterAck::KeepLock && !turn.history_delta.is_empty()
}

/// Abandons a turn, until the store has answered.
pub(super) async fn abandon(
    shared: &Shared,
    token: LockToken,
    delay: std::time::Duration,
    ignore_attempt: bool,
) {
    let abandon = |_| shared.store.abandon_orchestration_item(token, Some(delay), ignore_attempt);
    // A lost lock is as good as an abandoned one.
    let _abandoned = shared.insist("a turn could not be abandoned", abandon).await;
}

/// What a turn adds to the metrics once it is committed: counted from the commit, so nothing is
/// counted twice.
struct Counts {
    ends_turn: bool,
    started: bool,
    ended: Option<ExecutionStatus>,
    continued: bool,
    activities: u64,
    refused: u64,
}

impl Counts {
    fn of(turn: &AckOrchestrationItem) -> Self {
        Counts {
            ends_turn: turn.after == AfterAck::Release,
            refused: turn.records.iter().filter(|write| write.key().0 == DEAD_LETTER_KIND).count() as u64,
            started: turn.execution_id == 1 && turn.metadata.pinned_version.is_some(),
            ended: turn.metadata.status.filter(|status| status.is_terminal()),
            continued: turn.metadata.status == Some(ExecutionStatus::ContinuedAsNew),
            activities: turn.worker_items.len() as u64,
        }
    }

    fn add(&self) {
        if self.ends_turn {
            metrics::counter!(telemetry::TURNS).increment(1);
        }
        if self.refused > 0 {
            metrics::counter!(telemetry::DEAD_LETTERS, "queue" => "orchestrator").increment(self.refused);
        }
        if self.started {
            metrics::counter!(telemetry::INSTANCES_STARTED).increment(1);
        }
        // Labels are literals: others would be allocated every time.
        match self.ended {
            Some(ExecutionStatus::Completed) => {
                metrics::counter!(telemetry::INSTANCES_ENDED, "outcome" => "completed").increment(1);
            }
            Some(ExecutionStatus::Failed) => {
                metrics::counter!(telemetry::INSTANCES_ENDED, "outcome" => "failed").increment(1);
            }
            Some(ExecutionStatus::Cancelled) => {
                metrics::counter!(telemetry::INSTANCES_ENDED, "outcome" => "cancelled").increment(1);
            }
            _ => {}
        }
        if self.continued {
            metrics::counter!(telemetry::CONTINUED_AS_NEW).increment(1);
        }
        if self.activities > 0 {
            metrics::counter!(telemetry::ATTEMPTS_QUEUED).increment(self.activities);
        }
    }
}
