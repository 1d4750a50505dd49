//! `segno batch …`: batches of runbooks.

use std::path::Path;

use segno_api::Client;
use segno_api::batch::{
    Batch, BatchAction, BatchDetails, BatchRequest, BatchStatus, CreateBatch, Explanation, Member,
    MemberStatus, NoticeState, Phase, PhaseStatus, PutMembers, RemoveMembers, RequestState, Step,
};
use segno_api::change::{BatchChange, RowChange, RowKind};
use segno_api::client::{ListBatches, ListMembers};
use segno_runbook::limits::MAX_CSV_BYTES;
use segno_runbook::members::INVALID_MEMBERS;
use serde_json::json;

use super::arguments::{self, BatchVerb, Batches, OfPhase, RequestVerb};
use super::{batch_report, batch_watch};
use crate::documents::read;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table, count};

/// Does what was asked.
pub async fn run(arguments: Batches, output: &Output) -> Result<(), Failure> {
    let client = &arguments.connection.client(output)?;
    match arguments.verb {
        BatchVerb::Create(arguments) => create(client, arguments, output).await,
        BatchVerb::List { runbook, status, paging } => {
            let list = ListBatches { runbook, status, ..ListBatches::default() };
            batches(client, &list, &paging, output).await
        }
        BatchVerb::Show(batch) => show(&client.batch(batch.id).await?, output),
        BatchVerb::Explain { batch, row } => explain(client, batch.id, row.as_deref(), output).await,
        BatchVerb::Watch { batch, limit } => {
            batch_watch::run(client, batch.id, usize::from(limit), output).await
        }
        BatchVerb::Delete(batch) => delete(client, batch.id, output).await,
        BatchVerb::Report(batch) => batch_report::run(client, batch.id, output).await,
        BatchVerb::Members { batch, member: Some(key), .. } => {
            let member = member_of_key(client, batch.id, &key).await?;
            listed(&Page::of(vec![member], Vec::new(), None), output)
        }
        BatchVerb::Members { batch, member: None, status, paging } => {
            members(client, batch.id, &status, &paging, output).await
        }
        BatchVerb::AddMembers { batch, file } => {
            let members = PutMembers { members_csv: Some(csv(&file)?), members: Vec::new() };
            shown(batch.id, &client.put_batch_members(batch.id, &members).await?, output)
        }
        BatchVerb::RemoveMembers { batch, keys } => {
            shown(batch.id, &client.remove_batch_members(batch.id, &RemoveMembers { keys }).await?, output)
        }
        BatchVerb::Request(verb) => {
            let (batch, action) = action(client, verb, output).await?;
            request(client, batch, &action, output).await
        }
    }
}

/// The batch and the request that a verb is about.
async fn action(client: &Client, verb: RequestVerb, output: &Output) -> Result<(u64, BatchAction), Failure> {
    let phase = async |of: &OfPhase| id_of(client, of).await;
    Ok(match verb {
        RequestVerb::Advance(batch) => (batch.id, BatchAction::Advance {}),
        RequestVerb::Pause { batch, reason } => (batch.id, BatchAction::PauseBatch { reason }),
        RequestVerb::Resume(batch) => (batch.id, BatchAction::ResumeBatch {}),
        RequestVerb::Cancel { batch, reason } => (batch.id, BatchAction::CancelBatch { reason }),
        RequestVerb::Retry { batch, members, origin } => {
            let batch_member_ids = (!members.is_empty()).then_some(members);
            (batch.id, BatchAction::RetryMembers { batch_member_ids, from: origin.retry_from() })
        }
        RequestVerb::RetryInit(batch) => (batch.id, BatchAction::RetryInit {}),
        RequestVerb::RetryRollback { batch, row } => (batch.id, retry_rollback(&row)?),
        RequestVerb::Reschedule { batch, start } => {
            (batch.id, BatchAction::Reschedule { batch_start_time: output.moment(start)? })
        }
        RequestVerb::Approve(of) => {
            (of.id, BatchAction::ApprovePhase { phase_execution_id: phase(&of).await? })
        }
        RequestVerb::Reject(of) => {
            (of.id, BatchAction::RejectPhase { phase_execution_id: phase(&of).await? })
        }
        RequestVerb::SkipPhase(of) => {
            (of.id, BatchAction::SkipPhase { phase_execution_id: phase(&of).await? })
        }
        RequestVerb::CancelPhase(of) => {
            (of.id, BatchAction::CancelPhase { phase_execution_id: phase(&of).await? })
        }
        RequestVerb::ResumePhase(of) => {
            (of.id, BatchAction::ResumePhase { phase_execution_id: phase(&of).await? })
        }
        RequestVerb::SkipStep(of) => (of.id, BatchAction::SkipStep { step_execution_id: of.step }),
        RequestVerb::CancelStep(of) => (of.id, BatchAction::CancelStep { step_execution_id: of.step }),
    })
}

/// The request that retries the rollback of a step or an init step.
fn retry_rollback(row: &str) -> Result<BatchAction, Failure> {
    let id = |prefix: &str| row.strip_prefix(prefix).and_then(|id| id.parse().ok());
    match (id("step-"), id("init-")) {
        (Some(step_execution_id), _) => Ok(BatchAction::RetryRollback { step_execution_id }),
        (_, Some(init_execution_id)) => Ok(BatchAction::RetryInitRollback { init_execution_id }),
        _ => Err(Failure::Refused(format!("{row:?} is no step; write step-1042 or init-7"))),
    }
}

/// The text of a CSV file with members.
fn csv(file: &Path) -> Result<String, Failure> {
    String::from_utf8(read(file, MAX_CSV_BYTES)?).map_err(|error| {
        let (file, place) = (file.display(), error.utf8_error().valid_up_to());
        Failure::invalid(INVALID_MEMBERS, format!("{file} is not UTF-8 at byte {place}; save it as UTF-8"))
    })
}

async fn create(client: &Client, arguments: arguments::CreateBatch, output: &Output) -> Result<(), Failure> {
    let csv = csv(&arguments.members)?;
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

async fn batches(
    client: &Client,
    list: &ListBatches,
    paging: &Paging,
    output: &Output,
) -> Result<(), Failure> {
    let page = paging.gather(|page| {
        let list = ListBatches { page, ..list.clone() };
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
            taking_part(batch).to_string(),
            batch.member_counts.failed.to_string(),
            state(batch),
        ]);
    }
    output.list(&page, &rows)
}

/// Members of a batch that have not left it.
fn taking_part(batch: &Batch) -> u32 {
    let counts = batch.member_counts;
    counts.active.saturating_add(counts.failed).saturating_add(counts.cancelled)
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
    if batch.archived {
        table = table.line("archived", "yes: its time in the store is over");
    }
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
            phase_state(phase),
        ]);
    }
    let mut text = table.to_text(output.colours);
    if !details.init.is_empty() {
        text = format!("{text}\n{}", init_rows(details).to_text(output.colours));
    }
    text = format!("{text}\n{}", rows.to_text(output.colours));
    if !details.notices.is_empty() {
        text = format!("{text}\n{}", notices(details, output).to_text(output.colours));
    }
    output.text(details, &text)?;
    output.missing(&details.unreadable);
    Ok(())
}

/// The init steps of a batch.
fn init_rows(details: &BatchDetails) -> Rows {
    let mut rows = Rows::new(["init", "id", "pool", "function", "retries", "polls", "state", "error"]);
    for step in &details.init {
        rows.add([
            step.step_name.clone(),
            step.id.to_string(),
            step.worker_id.clone(),
            step.function_name.clone(),
            step.retry_count.to_string(),
            step.poll_count.to_string(),
            step_state(step),
            step_error(step),
        ]);
    }
    rows
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
    let phase = match row.filter(|row| !is_row(row)) {
        Some(name) => Some(id_of(client, &OfPhase { id: batch, phase: name.to_owned() }).await?),
        None => None,
    };
    let phase = phase.map(|id| format!("phase-{id}"));
    let explanation = client.explain_batch(batch, phase.as_deref().or(row)).await?;
    output.print(&explanation, explained(Table::default(), &explanation, output))
}

/// Whether a text is a row as the API has it, such as `step-1042`. Another one is the name of a phase.
fn is_row(text: &str) -> bool {
    let is_numbered = |kind: &str| text.strip_prefix(kind).is_some_and(|id| id.parse::<u64>().is_ok());
    text == "batch" || ["phase-", "member-", "step-", "init-"].into_iter().any(is_numbered)
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

async fn members(
    client: &Client,
    batch: u64,
    status: &[MemberStatus],
    paging: &Paging,
    output: &Output,
) -> Result<(), Failure> {
    let page = paging.gather(|page| async move {
        let list = ListMembers { status: status.to_vec(), page };
        let page = client.batch_members(batch, list).await?;
        Ok(Page::of(page.members, page.unreadable, page.next_cursor))
    });
    listed(&page.await?, output)
}

/// The member of a batch that has a key.
pub(super) async fn member_of_key(client: &Client, batch: u64, key: &str) -> Result<Member, Failure> {
    client.batch_member_of_key(batch, key).await?.ok_or_else(|| {
        let text = format!(
            "batch {batch} has no member with the key {key:?}; list them with `segno batch members {batch}`"
        );
        Failure::not_found(text)
    })
}

fn listed(page: &Page<Member>, output: &Output) -> Result<(), Failure> {
    let mut rows = Rows::new(["member", "id", "added", "state"]);
    for member in &page.items {
        rows.add([
            member.member_key.clone(),
            member.id.to_string(),
            output.time(member.added_at),
            member_state(member),
        ]);
    }
    output.list(page, &rows)
}

/// The id of a phase that is given by its name or its id. Letter case does not matter, as in runbooks.
/// Of several with the name, it is that of the newest version.
async fn id_of(client: &Client, of: &OfPhase) -> Result<u64, Failure> {
    let phases = client.batch(of.id).await?.phases;
    let wanted = of.phase.to_lowercase();
    let named = phases.iter().filter(|phase| phase.phase_name.to_lowercase() == wanted);
    if let Some(phase) = named.max_by_key(|phase| phase.runbook_version) {
        return Ok(phase.id);
    }
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase_name.as_str()).collect();
    of.phase.parse().map_err(|_| {
        let (id, phase) = (of.id, &of.phase);
        let text = format!("batch {id} has no phase {phase:?}; its phases are {}", names.join(", "));
        Failure::not_found(text)
    })
}

/// Requests something of a batch, and shows what became of it.
pub async fn request(
    client: &Client,
    batch: u64,
    action: &BatchAction,
    output: &Output,
) -> Result<(), Failure> {
    shown(batch, &client.request_of_batch(batch, action).await?, output)
}

fn shown(batch: u64, request: &BatchRequest, output: &Output) -> Result<(), Failure> {
    let state = match request.state {
        RequestState::Waiting => "stored; it will be applied",
        RequestState::Applied => "applied",
        RequestState::Refused => "refused",
        RequestState::Ignored => "changed nothing",
    };
    let mut table = Table::default()
        .line("batch", batch.to_string())
        .line("request", &request.action)
        .line("state", state);
    if let Some(reason) = &request.reason {
        table = table.line("reason", reason);
    }
    output.print(request, table)
}

/// The state of a batch, in the words of the API; `paused` and `cancelling` while it is so.
pub fn state(batch: &Batch) -> String {
    match (batch.ending, batch.paused_at) {
        (Some(BatchStatus::Cancelled), _) => "cancelling".to_owned(),
        (None, Some(_)) => "paused".to_owned(),
        _ => batch.status.to_string(),
    }
}

/// The state of a phase, in the words of the API, and what it waits for if that is a person.
pub fn phase_state(phase: &Phase) -> String {
    match phase.status {
        PhaseStatus::Pending if phase.approval_requested_at.is_some() && phase.approved_at.is_none() => {
            "pending: waits for approval".to_owned()
        }
        PhaseStatus::Pending if phase.approved_at.is_some() => "pending: approved already".to_owned(),
        PhaseStatus::Dispatched if phase.stopped_at.is_some() => {
            "dispatched: stopped by its error budget".to_owned()
        }
        status => match &phase.reason {
            Some(reason) => format!("{status}: {}", reason.replace('_', " ")),
            None => status.to_string(),
        },
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

/// Why a step failed, and why its rollback did.
pub fn step_error(step: &Step) -> String {
    let error = step.error_message.clone().unwrap_or_default();
    match &step.rollback_error {
        Some(rollback) => format!("{error}; rollback: {rollback}"),
        None => error,
    }
}

/// The state of a member, in the words of the API, and how far its removal steps are.
pub fn member_state(member: &Member) -> String {
    match member.removal_state.as_deref() {
        None | Some("succeeded") => member.status.to_string(),
        Some(removal) => format!("{}: removal steps {removal}", member.status),
    }
}

/// The state of a step, in the words of the API, and how far its rollback is.
pub fn step_state(step: &Step) -> String {
    match step.rollback_state.as_deref() {
        None | Some("succeeded") => step.status.to_string(),
        Some(rollback) => format!("{}: rollback {rollback}", step.status),
    }
}
