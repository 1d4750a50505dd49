//! `segno batch …`: batches of runbooks.

use segno_api::Client;
use segno_api::batch::{
    Batch, BatchAction, BatchDetails, BatchStatus, CreateBatch, Explanation, MemberStatus, NoticeState,
    Phase, PhaseStatus, RequestState, RetryFrom,
};
use segno_api::change::{BatchChange, RowChange, RowKind};
use segno_api::client::ListBatches;
use segno_runbook::limits::MAX_CSV_BYTES;
use segno_runbook::members::INVALID_MEMBERS;
use serde_json::json;

use super::arguments::{self, BatchVerb, Batches, OfPhase};
use super::{batch_report, batch_watch};
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table, count};
use crate::runbook::read;

/// Does what was asked.
pub async fn run(arguments: Batches, output: &Output) -> Result<(), Failure> {
    let client = &arguments.connection.client(output)?;
    let (batch, action) = match arguments.verb {
        BatchVerb::Create(arguments) => return create(client, arguments, output).await,
        BatchVerb::List { runbook, paging } => return list(client, runbook, &paging, output).await,
        BatchVerb::Show(batch) => return show(&client.batch(batch.id).await?, output),
        BatchVerb::Explain { batch, row } => return explain(client, batch.id, row.as_deref(), output).await,
        BatchVerb::Watch { batch, limit } => {
            return batch_watch::run(client, batch.id, usize::from(limit), output).await;
        }
        BatchVerb::Delete(batch) => return delete(client, batch.id, output).await,
        BatchVerb::Report(batch) => return batch_report::run(client, batch.id, output).await,
        BatchVerb::Members { batch, paging } => return members(client, batch.id, &paging, output).await,
        BatchVerb::Advance(batch) => (batch.id, BatchAction::Advance),
        BatchVerb::Pause { batch, reason } => (batch.id, BatchAction::PauseBatch { reason }),
        BatchVerb::Resume(batch) => (batch.id, BatchAction::ResumeBatch),
        BatchVerb::Cancel { batch, reason } => (batch.id, BatchAction::CancelBatch { reason }),
        BatchVerb::Retry { batch, members, from_phase } => {
            let from = if from_phase { RetryFrom::Phase } else { RetryFrom::Step };
            let batch_member_ids = (!members.is_empty()).then_some(members);
            (batch.id, BatchAction::RetryMembers { batch_member_ids, from })
        }
        BatchVerb::Approve(phase) => {
            (phase.id, BatchAction::ApprovePhase { phase_execution_id: id_of(client, &phase).await? })
        }
        BatchVerb::Reject(phase) => {
            (phase.id, BatchAction::RejectPhase { phase_execution_id: id_of(client, &phase).await? })
        }
        BatchVerb::SkipPhase(phase) => {
            (phase.id, BatchAction::SkipPhase { phase_execution_id: id_of(client, &phase).await? })
        }
    };
    request(client, batch, &action, output).await
}

async fn create(client: &Client, arguments: arguments::CreateBatch, output: &Output) -> Result<(), Failure> {
    let bytes = read(&arguments.members, MAX_CSV_BYTES)?;
    let file = arguments.members.display();
    let csv = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::invalid(INVALID_MEMBERS, format!("{file} is not UTF-8 at byte {place}; save it as UTF-8"))
    })?;
    let new = CreateBatch {
        runbook: arguments.runbook,
        version: arguments.version,
        batch_start_time: output.optional_moment(arguments.start)?,
        members_csv: Some(csv),
        members: Vec::new(),
    };
    let batch = client.create_batch(&new).await?;
    let mut table = Table::default()
        .line("batch", batch.id.to_string())
        .line("runbook", format!("{} version {}", batch.runbook_name, batch.runbook_version));
    if let Some(start) = batch.batch_start_time {
        table = table.line("start", output.time(start));
    }
    output.print(&batch, table)
}

async fn list(
    client: &Client,
    runbook: Option<String>,
    paging: &Paging,
    output: &Output,
) -> Result<(), Failure> {
    let page = paging.gather(|page| {
        let list = ListBatches { runbook: runbook.clone(), page };
        async move {
            let page = client.batches(&list).await?;
            Ok(Page::of(page.batches, page.unreadable, page.next_cursor))
        }
    });
    let page = page.await?;
    let mut rows = Rows::new(["batch", "runbook", "version", "start", "members", "failed", "state"]);
    for batch in &page.items {
        rows.add([
            batch.id.to_string(),
            batch.runbook_name.clone(),
            batch.runbook_version.to_string(),
            output.time_or_none(batch.batch_start_time),
            batch.member_counts.active.to_string(),
            batch.member_counts.failed.to_string(),
            state(batch).to_owned(),
        ]);
    }
    output.list(&page, &rows)
}

fn show(details: &BatchDetails, output: &Output) -> Result<(), Failure> {
    let batch = &details.batch;
    let counts = batch.member_counts;
    let mut table = Table::default()
        .line("batch", batch.id.to_string())
        .line("runbook", format!("{} version {}", batch.runbook_name, batch.runbook_version))
        .line("state", state(batch))
        .line("created", output.time(batch.detected_at));
    if let Some(start) = batch.batch_start_time {
        table = table.line("start", output.time(start));
    }
    if let Some(ended) = batch.completed_at {
        table = table.line("ended", output.time(ended));
    }
    if let Some(error) = batch.error_message.as_ref().or(batch.pause_reason.as_ref()) {
        table = table.line("reason", error);
    }
    let numbers = [
        (counts.active, "active"),
        (counts.failed, "failed"),
        (counts.removed, "removed"),
        (counts.cancelled, "cancelled"),
    ];
    let members = numbers.iter().filter(|(count, _)| *count > 0);
    let members: Vec<String> = members.map(|(count, state)| format!("{count} {state}")).collect();
    table = table.line("members", members.join(", "));
    if batch.completed_at.is_none() {
        table = explained(table, &details.explanation, output);
    }
    let mut rows = Rows::new(["phase", "id", "due", "steps", "state"]);
    for phase in &details.phases {
        let steps = phase.step_counts.iter().map(|(state, count)| format!("{count} {state}"));
        rows.add([
            phase.phase_name.clone(),
            phase.id.to_string(),
            output.time_or_none(phase.due_at),
            steps.collect::<Vec<_>>().join(", "),
            phase_state(phase).to_owned(),
        ]);
    }
    let mut text = format!("{}\n{}", table.to_text(output.colours), rows.to_text(output.colours));
    if !details.notices.is_empty() {
        text = format!("{text}\n{}", notices(details, output).to_text(output.colours));
    }
    output.text(details, &text)
}

fn notices(details: &BatchDetails, output: &Output) -> Rows {
    let mut rows = Rows::new(["notice", "phase", "function", "made", "state", "error"]);
    for notice in &details.notices {
        let state = match notice.state {
            NoticeState::Sending => "sending",
            NoticeState::Delivered => "delivered",
            NoticeState::Failed => "failed",
        };
        rows.add([
            notice.event.replace('_', " "),
            notice.phase_name.clone(),
            notice.function_name.clone(),
            output.time(notice.created_at),
            state.to_owned(),
            notice.error_message.clone().unwrap_or_default(),
        ]);
    }
    rows
}

async fn delete(client: &Client, batch: u64, output: &Output) -> Result<(), Failure> {
    client.delete_batch(batch).await?;
    output.print(&json!({ "deleted": batch }), Table::default().line(format!("batch {batch}"), "deleted"))
}

async fn explain(client: &Client, batch: u64, row: Option<&str>, output: &Output) -> Result<(), Failure> {
    let explanation = client.explain_batch(batch, row).await?;
    output.print(&explanation, explained(Table::default(), &explanation, output))
}

fn explained(table: Table, explanation: &Explanation, output: &Output) -> Table {
    let mut table = table.line("why", &explanation.why);
    match (explanation.wakes_at, &explanation.released_by) {
        (Some(at), _) => table = table.line("wakes", output.time(at)),
        (None, Some(by)) => table = table.line("released", by),
        (None, None) => {}
    }
    table
}

async fn members(client: &Client, batch: u64, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.batch_members(batch, request).await?;
        Ok(Page::of(page.members, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["member", "id", "added", "state"]);
    for member in &page.items {
        rows.add([
            member.member_key.clone(),
            member.id.to_string(),
            output.time(member.added_at),
            member_state(member.status).to_owned(),
        ]);
    }
    output.list(&page, &rows)
}

/// The id of a phase that is given by its name or its id. Of several with the name, it is that of
/// the newest version.
async fn id_of(client: &Client, of: &OfPhase) -> Result<u64, Failure> {
    let phases = client.batch(of.id).await?.phases;
    let named = phases.iter().filter(|phase| phase.phase_name == of.phase);
    if let Some(phase) = named.max_by_key(|phase| phase.runbook_version) {
        return Ok(phase.id);
    }
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase_name.as_str()).collect();
    of.phase.parse().map_err(|_| {
        let (id, phase) = (of.id, &of.phase);
        Failure::Refused(format!("batch {id} has no phase {phase:?}; its phases are {}", names.join(", ")))
    })
}

async fn request(client: &Client, batch: u64, action: &BatchAction, output: &Output) -> Result<(), Failure> {
    let request = client.request_of_batch(batch, action).await?;
    let state = match request.state {
        RequestState::Waiting => "stored; it will be applied",
        RequestState::Applied => "applied",
        RequestState::Refused => "refused",
        RequestState::Ignored => "changed nothing",
    };
    let mut table = Table::default()
        .line("batch", batch.to_string())
        .line("request", request.action.replace('_', " "))
        .line("state", state);
    if let Some(reason) = &request.reason {
        table = table.line("reason", reason);
    }
    output.print(&request, table)
}

/// The state of a batch in a few words.
pub fn state(batch: &Batch) -> &'static str {
    let has_ended =
        matches!(batch.status, BatchStatus::Completed | BatchStatus::Failed | BatchStatus::Cancelled);
    match batch.status {
        _ if batch.paused_at.is_some() && !has_ended => "paused",
        BatchStatus::Detected => "created",
        BatchStatus::InitDispatched => "init",
        BatchStatus::Active => "active",
        BatchStatus::Completed => "completed",
        BatchStatus::Failed => "failed",
        BatchStatus::Cancelled => "cancelled",
    }
}

/// The state of a phase in a few words.
pub fn phase_state(phase: &Phase) -> &'static str {
    match phase.status {
        PhaseStatus::Pending if phase.approval_requested_at.is_some() && phase.approved_at.is_none() => {
            "waits for approval"
        }
        PhaseStatus::Pending => "pending",
        PhaseStatus::Dispatched if phase.stopped_at.is_some() => "stopped",
        PhaseStatus::Dispatched => "running",
        PhaseStatus::Completed => "completed",
        PhaseStatus::Failed => "failed",
        PhaseStatus::Skipped => "skipped",
        PhaseStatus::Superseded => "superseded",
    }
}

/// The rows that a commit changed, in one line.
pub fn changed_rows(change: &BatchChange) -> String {
    let mut shown: Vec<String> = change.rows.iter().take(SHOWN_ROWS).map(changed_row).collect();
    let more = change.rows.len().saturating_sub(SHOWN_ROWS) as u64;
    let left_out: u64 = change.left_out.values().flat_map(|counts| counts.values()).sum();
    if more + left_out > 0 {
        shown.push(format!("and {} more", count(more + left_out)));
    }
    shown.join(", ")
}

fn changed_row(row: &RowChange) -> String {
    let kind = match row.kind {
        RowKind::Batch => "batch",
        RowKind::Phase => "phase",
        RowKind::Init => "init",
        RowKind::Member => "member",
        RowKind::Step => "step",
        RowKind::Rollback => "rollback of step",
        RowKind::InitRollback => "rollback of init",
        RowKind::Removal => "removal of member",
    };
    let status = row.status.replace('_', " ");
    match (&row.held, row.kind) {
        (held, RowKind::Batch) => held.clone().unwrap_or(status),
        (Some(held), _) => format!("{kind}-{} waits for {held}", row.id),
        (None, _) => format!("{kind}-{} {status}", row.id),
    }
}

/// Rows of a change that are shown in one line.
const SHOWN_ROWS: usize = 4;

/// The state of a member.
pub fn member_state(status: MemberStatus) -> &'static str {
    match status {
        MemberStatus::Active => "active",
        MemberStatus::Removed => "removed",
        MemberStatus::Failed => "failed",
        MemberStatus::Cancelled => "cancelled",
    }
}
