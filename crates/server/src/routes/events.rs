//! What happens to all instances, batches and runs of a tenant, as server-sent events.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event as SseEvent;
use futures_util::stream::{self, Stream};
use segno::runtime::ChangeKind;
use segno::store::ExecutionStatus;
use segno_api::change::{
    self as wire, BatchChange, Change, FollowChanges, FollowedChange, RowChange, RowKind, RunChange,
    TaskChange,
};
use tokio_util::sync::CancellationToken;

use super::instances::{list, view};
use super::sse;
use crate::access::{Caller, timestamp};
use crate::app::{App, Tenant, TenantChange, TenantListener, batch_status, run_status, task_status};
use crate::events::{self, Held, Known, KnownInstance, ObservedBatch, ObservedRow, ObservedRun, Position};
use crate::extract::Query;
use crate::listen::until_stopped;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What happens to instances, batches of runbooks and runs of DAGs, as it happens: from now on, or from the event after `Last-Event-ID` if the server still has
/// it.
///
/// The first event is `listening`: what is committed after it will be shown. The others are `change`, with a change as
/// data, `batch`, with what one commit changed in a batch (`BatchChange`), and `run`, with what was published of a run
/// (`RunChange`): up to 50 rows or tasks, the others as counts. After an event `lagged` some are missing; list the instances, or
/// get the batch or the run, to see how they stand. Nodes keep the last
/// 10,000 changes, for a minute after the last listener has gone. Changes on other nodes of a cluster arrive within a second,
/// those of the first two seconds of the first listener may be missing.
#[utoipa::path(get, path = "/v1/events", tag = "instances", params(ScopeParameters, FollowChanges,
    ("last-event-id" = Option<String>, Header, description = "Id of the last event that was seen"),
), responses(
    (status = 200, content_type = "text/event-stream", body = FollowedChange),
))]
pub async fn events(
    State(app): State<App>,
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Query(request): Query<FollowChanges>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let after = sse::last_event(&headers, |text| text.parse::<Position>().ok())?;
    let is_of_instances = is_of_instances(&request);
    let of_instances = "cannot be used with prefix, status, orchestration, function or label";
    if request.batch.is_some() && is_of_instances {
        return Err(Refusal::field("batch", of_instances));
    }
    if request.run.is_some() && is_of_instances {
        return Err(Refusal::field("run", of_instances));
    }
    let filter = Filter {
        subject: match (request.batch, request.run) {
            (Some(_), Some(_)) => return Err(Refusal::field("run", "cannot be used with batch")),
            (Some(batch), None) => Subject::Batch(batch),
            (None, Some(run)) => Subject::Run(run),
            (None, None) if is_of_instances => Subject::Instances,
            (None, None) => Subject::All,
        },
        prefix: request.prefix.unwrap_or_default(),
        statuses: request.status.into_iter().map(view::engine_status).collect(),
        orchestration: request.orchestration,
        function: match &request.function {
            Some(name) => Some(list::parse_function("function", name)?.as_str().to_owned()),
            None => None,
        },
        labels: list::parse_labels("label", &request.label)?,
    };
    let permitted = sse::place(&tenant, caller)?;
    let listener = tenant.changes(after);
    let listening = SseEvent::default().id(listener.place().to_string()).event("listening").data("{}");
    let stopping = app.stopping.clone();
    let follower = Follower { tenant, stopping, filter, listener, ready: [listening].into() };
    Ok(sse::answer(permitted, follower.stream()))
}

/// Whether a filter is about instances, which batches and runs never match.
fn is_of_instances(request: &FollowChanges) -> bool {
    let FollowChanges { prefix, status, orchestration, function, label, batch: _, run: _ } = request;
    prefix.as_ref().is_some_and(|prefix| !prefix.is_empty())
        || !status.is_empty()
        || orchestration.is_some()
        || function.is_some()
        || !label.is_empty()
}

/// What changes are about.
enum Subject {
    /// Instances, batches and runs.
    All,
    /// One batch.
    Batch(u64),
    /// One run.
    Run(String),
    /// Instances only.
    Instances,
}

/// Which changes.
struct Filter {
    subject: Subject,
    prefix: String,
    statuses: BTreeSet<ExecutionStatus>,
    orchestration: Option<String>,
    function: Option<String>,
    labels: BTreeSet<(String, String)>,
}

impl Filter {
    fn lets_through(&self, tenant: &Tenant, change: &TenantChange) -> bool {
        match (&*change.known, &self.subject) {
            (Known::Instance(known), Subject::All | Subject::Instances) => {
                self.lets_instance_through(tenant, &change.id, known)
            }
            (Known::Batch(_) | Known::Run(_), Subject::All) => true,
            (Known::Batch(known), Subject::Batch(wanted)) => known.batch == *wanted,
            (Known::Run(known), Subject::Run(wanted)) => known.run == *wanted,
            _ => false,
        }
    }

    fn lets_instance_through(&self, tenant: &Tenant, id: &str, change: &KnownInstance) -> bool {
        let function = || tenant.function_of(&change.labels);
        id.starts_with(&self.prefix)
            && (self.statuses.is_empty() || self.statuses.contains(&change.status))
            && self.orchestration.as_ref().is_none_or(|name| change.orchestration.as_ref() == Some(name))
            && self.function.as_ref().is_none_or(|name| function() == Some(name.as_str()))
            && self.labels.iter().all(|(key, value)| change.labels.get(key) == Some(value))
    }
}

struct Follower {
    tenant: Tenant,
    stopping: CancellationToken,
    filter: Filter,
    listener: TenantListener,
    ready: VecDeque<SseEvent>,
}

impl Follower {
    fn stream(self) -> impl Stream<Item = Result<SseEvent, Infallible>> {
        stream::unfold(self, |mut follower| async move {
            loop {
                if let Some(event) = follower.ready.pop_front() {
                    return Some((Ok(event), follower));
                }
                let stopping = follower.stopping.clone();
                let heard = until_stopped(&stopping, follower.listener.hear()).await?;
                // The caller connects again and goes on after the last event.
                follower.ready = follower.shown(heard).ok()?;
            }
        })
    }

    fn shown(&self, heard: Result<Vec<TenantChange>, Position>) -> Result<VecDeque<SseEvent>, Refusal> {
        match heard {
            Err(place) => {
                let lagged = SseEvent::default().id(place.to_string()).event("lagged");
                let lagged = lagged.data(
                    r#"{"detail":"changes are missing here; list the instances, or get the batch or the run again"}"#,
                );
                Ok([lagged].into())
            }
            Ok(changes) => {
                let wanted =
                    changes.into_iter().filter(|change| self.filter.lets_through(&self.tenant, change));
                wanted.map(|change| event(&self.tenant, change)).collect()
            }
        }
    }
}

fn event(tenant: &Tenant, change: TenantChange) -> Result<SseEvent, Refusal> {
    let TenantChange { place, id, known } = change;
    let event = SseEvent::default().id(place.to_string());
    match &*known {
        Known::Instance(known) => sse::with_data(event.event("change"), &instance_change(tenant, id, known)),
        Known::Batch(known) => sse::with_data(event.event("batch"), &batch_change(known)),
        Known::Run(known) => sse::with_data(event.event("run"), &run_change(known)),
    }
}

fn instance_change(tenant: &Tenant, id: String, known: &KnownInstance) -> Change {
    let view::MadeOf { function, kind: made_by, labels } = view::made_of(tenant, &known.labels);
    Change {
        id,
        change: kind(known.kind),
        at: timestamp(known.at_ms),
        execution: known.execution,
        status: view::status(known.status),
        orchestration: known.orchestration.clone(),
        function,
        kind: made_by,
        labels,
    }
}

fn batch_change(known: &ObservedBatch) -> BatchChange {
    let row = |row: &ObservedRow| RowChange {
        kind: row_kind(row.kind),
        id: row.id,
        status: row.status.clone(),
        held: row.held.map(|held| {
            let held = match held {
                Held::Paused => "paused",
                Held::Approval => "approval",
                Held::Budget => "budget",
            };
            held.to_owned()
        }),
        phase: row.phase,
        member: row.member,
    };
    BatchChange {
        batch: known.batch,
        runbook: known.runbook.clone(),
        status: batch_status(known.batch_status),
        at: timestamp(known.at_ms),
        rows: known.rows.iter().map(row).collect(),
        left_out: known.left_out.iter().map(|(kind, counts)| (row_kind(*kind), counts.clone())).collect(),
    }
}

fn run_change(known: &ObservedRun) -> RunChange {
    RunChange {
        run: known.run.clone(),
        dag: known.dag.clone(),
        status: run_status(known.run_state),
        is_paused: known.is_paused,
        at: timestamp(known.at_ms),
        tasks: known
            .tasks
            .iter()
            .map(|task| TaskChange {
                key: task.key.clone(),
                status: task_status(task.state),
                attempt: task.attempt,
            })
            .collect(),
        left_out: known.left_out.iter().map(|(state, count)| (task_status(*state), *count)).collect(),
    }
}

fn row_kind(kind: events::RowKind) -> RowKind {
    match kind {
        events::RowKind::Batch => RowKind::Batch,
        events::RowKind::Phase => RowKind::Phase,
        events::RowKind::Init => RowKind::Init,
        events::RowKind::Member => RowKind::Member,
        events::RowKind::Step => RowKind::Step,
        events::RowKind::Rollback => RowKind::Rollback,
        events::RowKind::InitRollback => RowKind::InitRollback,
        events::RowKind::Removal => RowKind::Removal,
    }
}

fn kind(kind: ChangeKind) -> wire::ChangeKind {
    match kind {
        ChangeKind::Started => wire::ChangeKind::Started,
        ChangeKind::StatusChanged => wire::ChangeKind::StatusChanged,
        ChangeKind::Paused => wire::ChangeKind::Paused,
        ChangeKind::Resumed => wire::ChangeKind::Resumed,
        ChangeKind::ContinuedAsNew => wire::ChangeKind::ContinuedAsNew,
        ChangeKind::Completed => wire::ChangeKind::Completed,
        ChangeKind::Failed => wire::ChangeKind::Failed,
        ChangeKind::Cancelled => wire::ChangeKind::Cancelled,
    }
}
