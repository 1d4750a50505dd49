//! Rows of runbooks and batches as they go over the wire.

use std::collections::BTreeMap;

use jiff::Timestamp;
use segno_api::automation::Automation;
use segno_api::batch::{self as wire, BatchAction};
use segno_api::runbook as wire_runbook;
use segno_runbook::drive::{
    NoticeRow, NoticeState, PhaseTransition, Receipt, ReceiptState, RunbookHead, RunbookRow, Transition,
};
use segno_runbook::message::{Action, OverdueBehavior};
use segno_runbook::rows::{
    BatchRow, BatchStatus, InitId, InitRow, MemberId, MemberRow, MemberStatus, PhaseId, PhaseRow,
    PhaseStatus, RetryFrom, StepCounts, StepId, StepRow, Work, WorkStatus,
};
use segno_runbook::step::Explanation;
use serde::Serialize;
use serde_json::Value;

use crate::problem::Code;

pub fn stored_overdue(overdue: wire_runbook::OverdueBehavior) -> OverdueBehavior {
    match overdue {
        wire_runbook::OverdueBehavior::Rerun => OverdueBehavior::Rerun,
        wire_runbook::OverdueBehavior::Ignore => OverdueBehavior::Ignore,
    }
}

pub fn runbook(head: RunbookHead, automation: Automation) -> wire_runbook::Runbook {
    wire_runbook::Runbook {
        name: head.name,
        description: head.description,
        active_version: head.active_version,
        created_at: head.created_at,
        updated_at: head.updated_at,
        automation,
    }
}

pub fn version(row: RunbookRow) -> wire_runbook::RunbookVersion {
    wire_runbook::RunbookVersion {
        id: row.id.0,
        name: row.name,
        version: row.version,
        is_active: row.is_active,
        overdue_behavior: match row.overdue_behavior {
            OverdueBehavior::Rerun => wire_runbook::OverdueBehavior::Rerun,
            OverdueBehavior::Ignore => wire_runbook::OverdueBehavior::Ignore,
        },
        rerun_init: row.rerun_init,
        created_at: row.created_at,
        created_by: row.created_by,
        yaml_content: Some(row.yaml_content),
        warnings: Vec::new(),
        moves: None,
    }
}

pub fn moves(transition: Transition) -> wire_runbook::VersionMoves {
    let phase = |phase: PhaseTransition| wire_runbook::PhaseMoves {
        phase_name: phase.phase_name,
        runs_again: phase.runs_again,
        members: phase.members,
        in_progress: phase.in_progress,
        skipped: phase.skipped,
        approval_again: phase.approval_again,
    };
    wire_runbook::VersionMoves {
        batches: transition.batches,
        members: transition.members,
        staying: transition.staying,
        init_again: transition.init_again,
        phases: transition.phases.into_iter().map(phase).collect(),
        not_counted: transition.not_counted,
    }
}

/// The state of a batch.
pub fn batch_status(status: BatchStatus) -> wire::BatchStatus {
    match status {
        BatchStatus::Detected => wire::BatchStatus::Detected,
        BatchStatus::InitDispatched => wire::BatchStatus::InitDispatched,
        BatchStatus::Active => wire::BatchStatus::Active,
        BatchStatus::Completed => wire::BatchStatus::Completed,
        BatchStatus::Failed => wire::BatchStatus::Failed,
        BatchStatus::Cancelled => wire::BatchStatus::Cancelled,
    }
}

pub fn batch(row: &BatchRow) -> wire::Batch {
    wire::Batch {
        id: row.id.0,
        runbook_name: row.runbook_name.clone(),
        runbook_version: row.runbook_version,
        batch_start_time: row.batch_start_time,
        status: batch_status(row.status),
        detected_at: row.detected_at,
        init_dispatched_at: row.init_dispatched_at,
        completed_at: row.completed_at,
        error_message: row.error_message.clone(),
        paused_at: row.paused_at,
        ending: row.ending.map(batch_status),
        pause_reason: row.pause_reason.clone(),
        is_sealed: row.is_sealed,
        archived: false,
        member_counts: wire::MemberCounts {
            active: row.member_counts.active,
            removed: row.member_counts.removed,
            failed: row.member_counts.failed,
            cancelled: row.member_counts.cancelled,
        },
    }
}

pub fn unreadable(row: segno_actions::Unreadable) -> segno_api::Unreadable {
    segno_api::Unreadable { id: row.id, reason: row.reason }
}

pub fn phase(row: PhaseRow) -> wire::Phase {
    wire::Phase {
        id: row.id.0,
        batch_id: row.batch_id.0,
        phase_name: row.phase_name,
        offset_minutes: row.offset_minutes,
        due_at: row.due_at,
        runbook_version: row.runbook_version,
        status: match row.status {
            PhaseStatus::Pending => wire::PhaseStatus::Pending,
            PhaseStatus::Dispatched => wire::PhaseStatus::Dispatched,
            PhaseStatus::Completed => wire::PhaseStatus::Completed,
            PhaseStatus::Failed => wire::PhaseStatus::Failed,
            PhaseStatus::Skipped => wire::PhaseStatus::Skipped,
            PhaseStatus::Superseded => wire::PhaseStatus::Superseded,
        },
        dispatched_at: row.dispatched_at,
        completed_at: row.completed_at,
        reason: row.reason.and_then(name),
        steps: row.steps,
        step_counts: step_counts(&row.step_counts),
        members_succeeded: row.members_succeeded,
        members_failed: row.members_failed,
        approval_requested_at: row.approval_requested_at,
        approved_at: row.approved_at,
        approved_by: row.approved_by,
        stopped_at: row.stopped_at,
    }
}

fn step_counts(counts: &StepCounts) -> BTreeMap<String, u64> {
    let counts = [
        ("pending", counts.pending),
        ("dispatched", counts.dispatched),
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("polling", counts.polling),
        ("poll_timeout", counts.poll_timeout),
        ("rolled_back", counts.rolled_back),
        ("cancelled", counts.cancelled),
        ("skipped", counts.skipped),
    ];
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(state, count)| (state.to_owned(), u64::from(count))).collect()
}

/// A member. `last_query` is when the source of its batch was queried last; a current member was seen then.
pub fn member(row: MemberRow, last_query: Option<Timestamp>) -> wire::Member {
    let seen_at = last_query.map_or(row.first_seen_at, |at| at.max(row.first_seen_at));
    wire::Member {
        id: row.id.0,
        batch_id: row.batch_id.0,
        member_key: row.member_key,
        status: match row.status {
            MemberStatus::Active => wire::MemberStatus::Active,
            MemberStatus::Removed => wire::MemberStatus::Removed,
            MemberStatus::Failed => wire::MemberStatus::Failed,
            MemberStatus::Cancelled => wire::MemberStatus::Cancelled,
        },
        added_at: row.added_at,
        removed_at: row.removed_at,
        failed_at: row.failed_at,
        removal_state: row.removal_state.and_then(name),
        removal_error: row.removal_error,
        first_seen_at: row.first_seen_at,
        last_seen_at: row.last_seen_at.unwrap_or(seen_at),
        is_current: row.is_current,
        data: row.data,
        worker_data: row.worker_data,
    }
}

pub fn step(row: StepRow) -> wire::Step {
    wire::Step {
        phase_execution_id: Some(row.phase_execution_id.0),
        batch_member_id: Some(row.batch_member_id.0),
        rollback_state: row.rollback_state.and_then(name),
        rollback_error: row.rollback_error,
        ..work(row.id.0, row.work)
    }
}

pub fn init(row: InitRow) -> wire::Step {
    wire::Step {
        rollback_state: row.rollback_state.and_then(name),
        rollback_error: row.rollback_error,
        ..work(row.id.0, row.work)
    }
}

fn work(id: u64, work: Work) -> wire::Step {
    wire::Step {
        id,
        phase_execution_id: None,
        batch_member_id: None,
        step_name: work.step_name,
        step_index: work.step_index,
        worker_id: work.worker_id,
        function_name: work.function_name,
        params_json: work.params_json,
        status: match work.status {
            WorkStatus::Pending => wire::StepStatus::Pending,
            WorkStatus::Dispatched => wire::StepStatus::Dispatched,
            WorkStatus::Succeeded => wire::StepStatus::Succeeded,
            WorkStatus::Failed => wire::StepStatus::Failed,
            WorkStatus::Polling => wire::StepStatus::Polling,
            WorkStatus::PollTimeout => wire::StepStatus::PollTimeout,
            WorkStatus::RolledBack => wire::StepStatus::RolledBack,
            WorkStatus::Cancelled => wire::StepStatus::Cancelled,
            WorkStatus::Skipped => wire::StepStatus::Skipped,
        },
        job_id: work.job_id,
        result_json: work.result_json,
        error_message: work.error_message,
        dispatched_at: work.dispatched_at,
        completed_at: work.completed_at,
        poll_count: work.poll_count,
        retry_count: work.retry_count,
        rollback_state: None,
        rollback_error: None,
    }
}

pub fn notice(row: NoticeRow) -> wire::Notice {
    wire::Notice {
        event: name(row.event).unwrap_or_default(),
        phase_execution_id: row.phase_execution_id.0,
        phase_name: row.phase_name,
        function_name: row.function_name,
        instance: format!("runbook:{}", row.job_id),
        state: match row.state {
            NoticeState::Sending => wire::NoticeState::Sending,
            NoticeState::Delivered => wire::NoticeState::Delivered,
            NoticeState::Failed => wire::NoticeState::Failed,
        },
        error_message: row.error_message,
        created_at: row.created_at,
        ended_at: row.ended_at,
    }
}

pub fn explanation(explanation: Explanation) -> wire::Explanation {
    wire::Explanation {
        why: explanation.why,
        released_by: explanation.releaser.map(|releaser| releaser.to_string()),
        wakes_at: explanation.wakes_at,
    }
}

pub fn request(receipt: Receipt) -> wire::BatchRequest {
    let code = match receipt.state {
        ReceiptState::Refused => Some(refusal_code(&receipt).as_str().to_owned()),
        _ => None,
    };
    wire::BatchRequest {
        code,
        key: receipt.key,
        action: receipt.action.replace('-', "_"),
        by: receipt.by,
        state: match receipt.state {
            ReceiptState::Waiting => wire::RequestState::Waiting,
            ReceiptState::Applied => wire::RequestState::Applied,
            ReceiptState::Refused => wire::RequestState::Refused,
            ReceiptState::Ignored => wire::RequestState::Ignored,
        },
        reason: receipt.reason,
        posted_at: receipt.posted_at,
        answered_at: receipt.answered_at,
    }
}

/// The code of a request that was refused.
pub fn refusal_code(receipt: &Receipt) -> Code {
    if receipt.is_not_found { Code::NotFound } else { Code::BatchRequestRefused }
}

pub fn action(action: BatchAction) -> Action {
    match action {
        BatchAction::Advance {} => Action::Advance,
        BatchAction::PauseBatch { reason } => Action::PauseBatch { reason },
        BatchAction::ResumeBatch {} => Action::ResumeBatch,
        BatchAction::CancelBatch { reason } => Action::CancelBatch { reason },
        BatchAction::Reschedule { batch_start_time } => Action::Reschedule { batch_start_time },
        BatchAction::RetryMembers { batch_member_ids, from } => Action::RetryMembers {
            batch_member_ids: batch_member_ids.map(|ids| ids.into_iter().map(MemberId).collect()),
            from: match from {
                wire::RetryFrom::Step => RetryFrom::Step,
                wire::RetryFrom::Phase => RetryFrom::Phase,
            },
        },
        BatchAction::RetryInit {} => Action::RetryInit,
        BatchAction::ApprovePhase { phase_execution_id: id } => {
            Action::ApprovePhase { phase_execution_id: PhaseId(id) }
        }
        BatchAction::RejectPhase { phase_execution_id: id } => {
            Action::RejectPhase { phase_execution_id: PhaseId(id) }
        }
        BatchAction::ResumePhase { phase_execution_id: id } => {
            Action::ResumePhase { phase_execution_id: PhaseId(id) }
        }
        BatchAction::SkipPhase { phase_execution_id: id } => {
            Action::SkipPhase { phase_execution_id: PhaseId(id) }
        }
        BatchAction::CancelPhase { phase_execution_id: id } => {
            Action::CancelPhase { phase_execution_id: PhaseId(id) }
        }
        BatchAction::CancelMember { batch_member_id: id } => {
            Action::CancelMember { batch_member_id: MemberId(id) }
        }
        BatchAction::ResumeMember { batch_member_id: id } => {
            Action::ResumeMember { batch_member_id: MemberId(id) }
        }
        BatchAction::RetryRemoval { batch_member_id: id } => {
            Action::RetryRemoval { batch_member_id: MemberId(id) }
        }
        BatchAction::SkipStep { step_execution_id: id } => Action::SkipStep { step_execution_id: StepId(id) },
        BatchAction::CancelStep { step_execution_id: id } => {
            Action::CancelStep { step_execution_id: StepId(id) }
        }
        BatchAction::RetryRollback { step_execution_id: id } => {
            Action::RetryRollback { step_execution_id: StepId(id) }
        }
        BatchAction::RetryInitRollback { init_execution_id: id } => {
            Action::RetryInitRollback { init_execution_id: InitId(id) }
        }
    }
}

/// The stored name of a value that is one word.
fn name(value: impl Serialize) -> Option<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => Some(name),
        _ => None,
    }
}
