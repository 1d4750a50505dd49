//! Creating, reading, changing, pausing and deleting recurring actions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use segno_actions::Listed;
use segno_actions::action::ActionError;
use segno_actions::listing::Place;
use segno_actions::recurring::{Pause, RecurringAction as Stored};
use segno_api::recurring::{
    PauseRecurring, RecentOccurrence, RecurringAction, RecurringCreated, RecurringEntry, RecurringFields,
    RecurringList, RecurringRun, RecurringState, RunRecurring,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::paging::{self, Chunk, Found, Row, cursor, limit};
use super::super::partial::{Changes, partial};
use super::{fields, view};
use crate::app::{App, Tenant};
use crate::extract::{Body, OptionalBody, Path, Query, named_key};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Occurrences of each that a list shows, at most.
const MAX_OUTCOMES: usize = 20;

/// Histories that are read at once.
const CONCURRENT_READS: usize = 16;

/// Which recurring actions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RecurringQuery {
    /// Only those that fire, or that do not.
    pub enabled: Option<bool>,
    /// Show also what became of so many last occurrences of each.
    #[param(minimum = 0, maximum = 20)]
    pub outcomes: Option<usize>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Makes a recurring action. Once this has answered it is stored, and will fire.
#[utoipa::path(post, path = "/v1/recurring", tag = "recurring", params(ScopeParameters), request_body = RecurringFields, responses(
    (status = 201, body = RecurringCreated),
))]
pub async fn create(
    tenant: Tenant,
    repeat: RepeatSafe,
    Body(request): Body<RecurringFields>,
) -> Result<Response, Refusal> {
    // What it is called with may be large.
    let mut new = tenant.compute(move || fields::new(request)).await??;
    new.id = repeat.uuid();
    if let Some(name) = &new.action_template.orchestration {
        tenant.check_known(name.as_str()).await?;
    }
    let created = match tenant.create_recurring(new).await {
        // The same request had been worked on and was cut off.
        Err(ActionError::Exists { id, .. }) if repeat.id().is_some() => tenant.recurring(&id).await,
        created => created,
    };
    let created = created.map_err(|error| tenant.refused(error))?;
    let location = tenant.location(&format!("/v1/recurring/{}", created.id));
    let body = Json(view::created(&created, tenant.zones()));
    Ok((StatusCode::CREATED, location, body).into_response())
}

/// Recurring actions, newest first.
#[utoipa::path(get, path = "/v1/recurring", tag = "recurring", params(ScopeParameters, RecurringQuery), responses(
    (status = 200, body = RecurringList),
))]
pub async fn list(
    tenant: Tenant,
    Query(query): Query<RecurringQuery>,
) -> Result<Json<RecurringList>, Refusal> {
    let rows = limit(query.limit)?;
    let outcomes = match query.outcomes.unwrap_or(0) {
        outcomes @ 0..=MAX_OUTCOMES => outcomes,
        _ => return Err(Refusal::field("outcomes", format!("must be at most {MAX_OUTCOMES}"))),
    };
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let after = cursor(after.as_deref(), |text| text.parse().ok())?;
        let page = tenant.recurring_page(after, rows).await;
        Ok(Chunk::of(page.map_err(|error| tenant.refused(error))?, rows))
    };
    let show = |(place, row): (Place, Listed<Stored>)| match row {
        Listed::Readable(action) => Ok(Row {
            cursor: place.to_string(),
            matches: query.enabled.is_none_or(|enabled| enabled == action.enabled),
            // The template, which may be large, is not shown.
            unshown_bytes: paging::json_bytes(&action)?,
            shown: Listed::Readable(view::summary(&action, tenant.zones())),
        }),
        Listed::Unreadable(row) => Ok(Row::new(place.to_string(), Listed::Unreadable(row))),
    };
    let Found { rows: mut recurring_actions, unreadable, next_cursor } =
        paging::page(rows, query.cursor.clone(), read, show).await?;
    if outcomes > 0 {
        let ids: Vec<String> = recurring_actions.iter().map(|action| action.id.clone()).collect();
        let reads = ids.into_iter().map(|id| recent(tenant.clone(), id, outcomes));
        let mut reads = futures_util::stream::iter(reads).buffered(CONCURRENT_READS);
        for action in &mut recurring_actions {
            action.recent = reads.next().await.unwrap_or(Ok(Vec::new()))?;
        }
    }
    Ok(Json(RecurringList { recurring_actions, unreadable, next_cursor }))
}

/// One recurring action.
#[utoipa::path(get, path = "/v1/recurring/{id}", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters,
), responses((status = 200, body = RecurringAction)))]
pub async fn get(tenant: Tenant, Path(id): Path<String>) -> Result<Json<RecurringAction>, Refusal> {
    let found = tenant.recurring(&id).await;
    whole(&tenant, found)
}

/// Changes a recurring action. What is left out stays; `null` clears a field. If the schedule changes, the next time is
/// found again.
#[utoipa::path(put, path = "/v1/recurring/{id}", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters,
), request_body = RecurringFields, responses((status = 200, body = RecurringAction)))]
pub async fn update(
    tenant: Tenant,
    Path(id): Path<String>,
    Body(mut body): Body<Changes>,
) -> Result<Json<RecurringAction>, Refusal> {
    for named in ["namespace", "tenant"] {
        body.remove(named);
    }
    let (changes, cleared) = partial::<RecurringFields>(body)?;
    // What is wrong with the request itself is found here, in the words of the request.
    let before = tenant.recurring(&id).await;
    let before = before.map_err(|error| tenant.refused(error))?;
    fields::apply(changes.clone(), &cleared, &mut fields::draft_of(&before))?;
    if let Some(name) = &changes.orchestration {
        tenant.check_known(name).await?;
    }
    let change = |action: &mut Stored| {
        let mut draft = fields::draft_of(action);
        fields::apply(changes.clone(), &cleared, &mut draft)
            .map_err(|refusal| ActionError::State { problem: refusal.to_string() })?;
        fields::put_back(draft, action);
        Ok(())
    };
    let updated = tenant.update_recurring(&id, change).await;
    whole(&tenant, updated)
}

/// Deletes a recurring action. What runs of it goes on.
#[utoipa::path(delete, path = "/v1/recurring/{id}", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn delete(tenant: Tenant, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    let deleted = tenant.delete_recurring(&id).await;
    deleted.map_err(|error| tenant.refused(error))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pauses a recurring action. What runs goes on. Pausing again is fine.
#[utoipa::path(post, path = "/v1/recurring/{id}/pause", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters,
), request_body(content = Option<PauseRecurring>), responses((status = 200, body = RecurringState)))]
pub async fn pause(
    tenant: Tenant,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<PauseRecurring>,
) -> Result<Json<RecurringState>, Refusal> {
    let pause = Pause { note: request.note, resumes_at: request.resumes_at };
    let paused = tenant.pause_recurring(&id, pause).await;
    Ok(Json(view::state(paused.map_err(|error| tenant.refused(error))?)))
}

/// Runs a recurring action now, out of schedule and whether or not it is paused. The same key is the same run; without one the
/// `Idempotency-Key` of the request is taken for it.
#[utoipa::path(post, path = "/v1/recurring/{id}/run", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters,
), request_body(content = Option<RunRecurring>), responses(
    (status = 201, body = RecurringRun, description = "It was run"),
    (status = 200, body = RecurringRun, description = "It had been run under this key"),
))]
pub async fn run(
    State(app): State<App>,
    tenant: Tenant,
    repeat: RepeatSafe,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<RunRecurring>,
) -> Result<Response, Refusal> {
    let key = named_key(request.key)?.or_else(|| repeat.id().map(str::to_owned));
    let key = key.unwrap_or_else(|| app.ids.new_uuid().to_string());
    let answer = tenant.run_recurring(&id, &key).await.map_err(|error| tenant.refused(error))?;
    let status = if answer.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(view::run(answer))).into_response())
}

/// Lets a paused recurring action go on, from the next occurrence after now. Resuming again is fine.
#[utoipa::path(post, path = "/v1/recurring/{id}/resume", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters,
), responses((status = 200, body = RecurringState)))]
pub async fn resume(tenant: Tenant, Path(id): Path<String>) -> Result<Json<RecurringState>, Refusal> {
    let resumed = tenant.resume_recurring(&id).await;
    Ok(Json(view::state(resumed.map_err(|error| tenant.refused(error))?)))
}

/// What became of the last occurrences of a recurring action; nothing of one that was deleted meanwhile.
async fn recent(tenant: Tenant, id: String, outcomes: usize) -> Result<Vec<RecentOccurrence>, Refusal> {
    let entries = match tenant.recurring_history(&id, None, outcomes).await {
        Err(error) if error.kind() == segno::store::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| tenant.refused(error))?,
    };
    let entries = entries.into_iter().filter_map(Listed::readable).map(view::entry);
    let short = |entry: RecurringEntry| RecentOccurrence {
        time: entry.time,
        decision: entry.decision,
        outcome: entry.outcome,
        instance: entry.instance,
    };
    Ok(entries.map(short).collect())
}

fn whole(tenant: &Tenant, found: Result<Stored, ActionError>) -> Result<Json<RecurringAction>, Refusal> {
    let found = found.map_err(|error| tenant.refused(error))?;
    Ok(Json(view::whole(tenant, found)?))
}
