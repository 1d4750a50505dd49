//! Recurring actions as they go over the wire.

use segno_actions::recurring::{
    BackfillLine, BackfillOutcome, Decision, HistoryEntry, MissedPolicy, Outcome, OverlapPolicy,
    RecurringAction, RunAnswer,
};
use segno_actions::schedule::{Gap, Overlap, Zones};
use segno_api::recurring as wire;

use super::super::instances::view::json;
use crate::app::Tenant;
use crate::problem::Refusal;

/// The schedule in plain English; empty when it cannot be read any more.
fn schedule(action: &RecurringAction, zones: &Zones) -> String {
    action.schedule.compile(zones).map(|schedule| schedule.describe()).unwrap_or_default()
}

fn warnings(action: &RecurringAction, zones: &Zones) -> Vec<String> {
    action.schedule.compile(zones).map(|schedule| schedule.warnings()).unwrap_or_default()
}

fn status(action: &RecurringAction) -> String {
    let status = match (action.enabled, &action.paused_at) {
        (true, _) => "active",
        (false, Some(_)) => "paused",
        (false, None) => "completed",
    };
    status.to_owned()
}

/// The answer to a creation.
pub fn created(action: &RecurringAction, zones: &Zones) -> wire::RecurringCreated {
    wire::RecurringCreated {
        recurring_id: action.id.clone(),
        next_execution: action.next_execution_at,
        cron_expr: action.schedule.cron_expr.clone(),
        timezone: action.schedule.timezone.clone(),
        enabled: action.enabled,
        schedule: schedule(action, zones),
        warnings: warnings(action, zones),
    }
}

/// The answer to pausing and resuming.
pub fn state(action: RecurringAction) -> wire::RecurringState {
    wire::RecurringState {
        id: action.id,
        enabled: action.enabled,
        next_execution_at: action.next_execution_at,
    }
}

/// A row of a listing.
pub fn summary(action: &RecurringAction, zones: &Zones) -> wire::RecurringSummary {
    wire::RecurringSummary {
        schedule: schedule(action, zones),
        status: status(action),
        id: action.id.clone(),
        name: action.name.clone(),
        cron_expr: action.schedule.cron_expr.clone(),
        timezone: action.schedule.timezone.clone(),
        enabled: action.enabled,
        description: action.description.clone(),
        provider: action.action_template.provider.clone(),
        orchestration: action.action_template.orchestration.as_ref().map(ToString::to_string),
        action_type: action.action_template.action_type.clone(),
        next_execution_at: action.next_execution_at,
        last_executed_at: action.last_executed_at,
        execution_count: action.execution_count,
        created_at: action.created_at,
        labels: action.labels.clone(),
        recent: Vec::new(),
    }
}

/// All of it.
pub fn whole(tenant: &Tenant, action: RecurringAction) -> Result<wire::RecurringAction, Refusal> {
    let (template, policy, spec) = (&action.action_template, &action.policy, &action.schedule);
    Ok(wire::RecurringAction {
        schedule: schedule(&action, tenant.zones()),
        warnings: warnings(&action, tenant.zones()),
        status: status(&action),
        namespace: action.namespace.to_string(),
        tenant: action.tenant.to_string(),
        cron_expr: spec.cron_expr.clone(),
        every: spec.every.map(|every| every.to_string()),
        anchor: spec.anchor,
        at: spec.at,
        timezone: spec.timezone.clone(),
        daylight: wire::Daylight {
            gap: match spec.daylight.gap {
                Gap::Shift => wire::DaylightGap::Shift,
                Gap::Skip => wire::DaylightGap::Skip,
            },
            overlap: match spec.daylight.overlap {
                Overlap::First => wire::DaylightOverlap::First,
                Overlap::Last => wire::DaylightOverlap::Last,
                Overlap::Both => wire::DaylightOverlap::Both,
            },
        },
        starts_at: spec.starts_at,
        ends_at: spec.ends_at,
        exclude: spec.exclude.clone(),
        action_template: wire::RecurringTemplate {
            provider: template.provider.clone(),
            orchestration: template.orchestration.as_ref().map(ToString::to_string),
            action_type: template.action_type.clone(),
            payload: json(&template.payload)?,
            metadata: template.metadata.clone(),
            dedup_key: template.dedup_key.clone(),
        },
        overlap_policy: match policy.overlap_policy {
            OverlapPolicy::Allow => wire::OverlapPolicy::Allow,
            OverlapPolicy::Skip => wire::OverlapPolicy::Skip,
            OverlapPolicy::BufferOne => wire::OverlapPolicy::BufferOne,
            OverlapPolicy::CancelOther => wire::OverlapPolicy::CancelOther,
        },
        missed: match policy.missed {
            MissedPolicy::None => wire::MissedPolicy::None,
            MissedPolicy::Latest => wire::MissedPolicy::Latest,
            MissedPolicy::All => wire::MissedPolicy::All,
        },
        catch_up_window: policy.catch_up_window.to_string(),
        catch_up_limit: policy.catch_up_limit,
        jitter: policy.jitter.map(|jitter| jitter.to_string()),
        max_executions: policy.max_executions,
        pause_after_failures: policy.pause_after_failures,
        dedup_window: policy.dedup_window.to_string(),
        last_execution_id: action.last_execution_id,
        id: action.id,
        name: action.name,
        enabled: action.enabled,
        created_at: action.created_at,
        updated_at: action.updated_at,
        last_executed_at: action.last_executed_at,
        next_execution_at: action.next_execution_at,
        execution_count: action.execution_count,
        failure_count: action.failure_count,
        consecutive_failures: action.consecutive_failures,
        last_error: action.last_error,
        paused_at: action.paused_at,
        pause_note: action.pause_note,
        resumes_at: action.resumes_at,
        disabled_reason: action.disabled_reason,
        description: action.description,
        labels: action.labels,
    })
}

fn decision(decision: Decision) -> String {
    let name = match decision {
        Decision::Fired => "fired",
        Decision::Skipped => "skipped",
        Decision::Buffered => "buffered",
        Decision::Refused => "refused",
        Decision::Disabled => "disabled",
    };
    name.to_owned()
}

/// What became of a run out of schedule.
pub fn run(answer: RunAnswer) -> wire::RecurringRun {
    let RunAnswer { recurring_id, is_new, run } = answer;
    wire::RecurringRun {
        id: recurring_id,
        created: is_new,
        time: run.time,
        decision: decision(run.decision),
        detail: run.detail,
        instance: run.instance,
    }
}

/// What became of an occurrence.
pub fn entry(entry: HistoryEntry) -> wire::RecurringEntry {
    let outcome = entry.outcome.map(|outcome| match outcome {
        Outcome::Completed => "completed".to_owned(),
        Outcome::Failed => "failed".to_owned(),
        Outcome::Cancelled => "cancelled".to_owned(),
    });
    wire::RecurringEntry {
        time: entry.time,
        decided_at: entry.decided_at,
        decision: decision(entry.decision),
        reason: entry.reason.map(|reason| reason.as_str().to_owned()),
        detail: entry.detail,
        note: entry.note.map(|note| note.to_string()),
        manual: entry.is_manual,
        instance: entry.instance,
        outcome,
        ended_at: entry.ended_at,
        until: entry.until,
        count: entry.count,
    }
}

/// What became of a backfill.
pub fn backfilled(id: String, lines: Vec<BackfillLine>) -> wire::Backfilled {
    let dispatched = lines.iter().filter(|line| line.outcome == BackfillOutcome::Started).count();
    let results = lines.into_iter().map(|line| {
        let outcome = match line.outcome {
            BackfillOutcome::WouldStart => "would_start",
            BackfillOutcome::Started => "started",
            BackfillOutcome::AlreadyRun => "already_run",
            BackfillOutcome::Excluded => "excluded",
            BackfillOutcome::Deduplicated => "deduplicated",
            BackfillOutcome::Refused => "refused",
        };
        let (excluded_by, error) = match line.outcome {
            BackfillOutcome::Excluded => (line.detail, None),
            _ => (None, line.detail),
        };
        wire::BackfillResult {
            occurrence: line.time,
            outcome: outcome.to_owned(),
            excluded_by,
            error,
            instance: line.instance,
        }
    });
    let results: Vec<_> = results.collect();
    wire::Backfilled { id, occurrences: results.len(), dispatched, results }
}
