//! Actions: functions called once, at a time.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_actions::Listed;
use segno_actions::action::{self as core, ActionDb, ActionError};
use segno_actions::functions::{FunctionError, InvokeRequest};
use segno_actions::listing::Place;
use segno_actions::{OrchestrationName, Target};
use segno_api::action::{
    Action, ActionList, ActionStatus, ActionStatusName, ActionTrigger, CreateAction, OnRestart, PatchAction,
};
use segno_api::several;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::instances::view;
use super::paging::{self, Chunk, Found, Row, limit};
use super::partial::{Changes, not_clearable, partial};
use crate::access::{Caller, Need, timestamp};
use crate::app::{App, Tenant};
use crate::extract::{Body, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Which actions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ActionQuery {
    /// Only in one of these states, repeated or with commas: `status=pending&status=running`.
    #[serde(default, deserialize_with = "several::deserialize")]
    #[param(inline)]
    pub status: Vec<ActionStatusName>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Whether what came in over HTTP is shown. It may have secrets of the sender in it.
#[derive(Clone, Copy)]
enum Bodies {
    Shown,
    Hidden,
}

/// Makes an action. Once this has answered it is stored, and will be done.
#[utoipa::path(post, path = "/v1/actions", tag = "actions", params(ScopeParameters), request_body = CreateAction, responses(
    (status = 201, body = Action),
))]
pub async fn create(
    State(app): State<App>,
    tenant: Tenant,
    repeat: RepeatSafe,
    Body(request): Body<CreateAction>,
) -> Result<Response, Refusal> {
    let now = timestamp(app.clock.now_ms());
    let id = repeat.uuid().unwrap_or_else(|| app.ids.new_uuid());
    let trigger = core::ActionTrigger::Scheduled { next_tick_at: request.next_tick_at.unwrap_or(now) };
    let mut action = match (&request.tool_name, &request.orchestration) {
        (Some(function), None) => {
            core::Action::new(id, request.label.as_deref().unwrap_or(function), function, trigger, now)
        }
        (None, Some(name)) => {
            let orchestration = OrchestrationName::new(name.as_str());
            let orchestration = orchestration.map_err(|problem| Refusal::field("orchestration", problem))?;
            let label = request.label.as_deref().unwrap_or(name);
            core::Action::new(id, label, "", trigger, now).starting(orchestration)
        }
        (None, None) => {
            return Err(Refusal::field(
                "function",
                "is missing; name the function to call, or an orchestration",
            ));
        }
        (Some(_), Some(_)) => {
            return Err(Refusal::field("orchestration", "cannot be used with a function; name one of them"));
        }
    };
    if let Some(input) = &request.tool_input {
        action.tool_input = view::payload(&tenant, "input", input).await?;
    }
    action.recurrence = request.recurrence_secs.map(Duration::from_secs);
    action.on_restart = match request.on_restart {
        OnRestart::Fail => core::OnRestart::Fail,
        OnRestart::Resume => core::OnRestart::Resume,
    };
    check_call(&tenant, &action).await?;
    let inserted = match tenant.actions().insert(&action).await {
        // The same request had been worked on and was cut off: what it has stored is due since then, and may have run.
        Err(ActionError::Exists { .. }) if repeat.id().is_some() => {
            tenant.actions().get(id).await.map(|stored| action = stored)
        }
        inserted => inserted,
    };
    inserted.map_err(|error| tenant.refused(error))?;
    let location = tenant.location(&format!("/v1/actions/{id}"));
    Ok((StatusCode::CREATED, location, Json(shown(&tenant, action, Bodies::Shown)?)).into_response())
}

/// Actions, newest first, without the bodies of webhooks.
#[utoipa::path(get, path = "/v1/actions", tag = "actions", params(ScopeParameters, ActionQuery), responses(
    (status = 200, body = ActionList),
))]
pub async fn list(tenant: Tenant, Query(query): Query<ActionQuery>) -> Result<Json<ActionList>, Refusal> {
    let rows = limit(query.limit)?;
    let statuses: Vec<&str> = query.status.iter().copied().map(status_name).collect();
    let is_running_only = query.status == [ActionStatusName::Running];
    let db = tenant.actions();
    let (db, tenant) = (&db, &tenant);
    let read = |after: Option<String>, rows| async move {
        let after = match after {
            Some(cursor) => Some(place(db, &cursor).await?),
            None => None,
        };
        let page = match is_running_only {
            true => db.page_running(after, rows).await,
            false => db.page(after, rows).await,
        };
        Ok(Chunk::of(page.map_err(|error| tenant.refused(error))?, rows))
    };
    let show = |(place, row): (Place, Listed<core::Action>)| match row {
        Listed::Readable(action) => Ok(Row {
            cursor: place.to_string(),
            matches: statuses.is_empty() || statuses.contains(&action.status.name()),
            unshown_bytes: match &action.trigger {
                core::ActionTrigger::Webhook { raw_payload, .. } => raw_payload.len(),
                core::ActionTrigger::Scheduled { .. } => 0,
            },
            shown: Listed::Readable(shown(tenant, action, Bodies::Hidden)?),
        }),
        Listed::Unreadable(row) => Ok(Row::new(place.to_string(), Listed::Unreadable(row))),
    };
    let Found { rows: actions, unreadable, next_cursor } =
        paging::page(rows, query.cursor, read, show).await?;
    Ok(Json(ActionList { actions, unreadable, next_cursor }))
}

/// One action, from the archive if it is no longer in the store. What came in over HTTP is shown to callers that may change it.
#[utoipa::path(get, path = "/v1/actions/{id}", tag = "actions", params(
    ("id" = String, Path, description = "Id of the action"), ScopeParameters,
), responses((status = 200, body = Action)))]
pub async fn get(
    Extension(caller): Extension<Caller>,
    tenant: Tenant,
    Path(id): Path<String>,
) -> Result<Json<Action>, Refusal> {
    let (found, archived) = tenant.action_or_archived(parse_id(&id)?).await?;
    let bodies = if caller.may(Need::Operate) { Bodies::Shown } else { Bodies::Hidden };
    Ok(Json(Action { archived, ..shown(&tenant, found, bodies)? }))
}

/// One action that is in the store, without the body of its webhook.
///
/// # Errors
/// `unknown-action` when there is none.
pub async fn get_live_without_body(tenant: Tenant, Path(id): Path<String>) -> Result<Json<Action>, Refusal> {
    let found = tenant.actions().get(parse_id(&id)?).await;
    Ok(Json(without_body(&tenant, found.map_err(|error| tenant.refused(error))?)?))
}

/// An action as it is shown without the body of its webhook.
///
/// # Errors
/// When its input or result has no JSON form.
pub fn without_body(tenant: &Tenant, action: core::Action) -> Result<Action, Refusal> {
    shown(tenant, action, Bodies::Hidden)
}

/// Changes an action. What is left out stays; `recurrence_secs: null` ends the recurrence.
#[utoipa::path(patch, path = "/v1/actions/{id}", tag = "actions", params(
    ("id" = String, Path, description = "Id of the action"), ScopeParameters,
), request_body = PatchAction, responses((status = 200, body = Action)))]
pub async fn patch(
    tenant: Tenant,
    Path(id): Path<String>,
    Body(body): Body<Changes>,
) -> Result<Json<Action>, Refusal> {
    let (changes, cleared) = partial::<PatchAction>(body)?;
    if let Some(field) = cleared.iter().find(|field| *field != "recurrence_secs") {
        return Err(not_clearable(field));
    }
    let change = |action: &mut core::Action| {
        if let Some(label) = &changes.label {
            action.label.clone_from(label);
        }
        if changes.recurrence_secs.is_some() || cleared.contains("recurrence_secs") {
            action.recurrence = changes.recurrence_secs.map(Duration::from_secs);
        }
        if let Some(next_tick_at) = changes.next_tick_at {
            must_be_pending(action, "be moved to another time")?;
            action.trigger = core::ActionTrigger::Scheduled { next_tick_at };
        }
        Ok(())
    };
    let changed = tenant.actions().update(parse_id(&id)?, change).await;
    let changed = changed.map_err(|error| tenant.refused(error))?;
    Ok(Json(shown(&tenant, changed, Bodies::Shown)?))
}

/// Deletes an action. What runs of it goes on.
#[utoipa::path(delete, path = "/v1/actions/{id}", tag = "actions", params(
    ("id" = String, Path, description = "Id of the action"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn delete(tenant: Tenant, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    let deleted = tenant.actions().delete(parse_id(&id)?).await;
    match deleted.map_err(|error| tenant.refused(error))? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(tenant.refused(ActionError::Unknown { what: "action", id })),
    }
}

/// Cancels an action. One that waits has failed, "cancelled"; one that runs is told to stop.
#[utoipa::path(post, path = "/v1/actions/{id}/cancel", tag = "actions", params(
    ("id" = String, Path, description = "Id of the action"), ScopeParameters,
), responses((status = 200, body = Action)))]
pub async fn cancel(tenant: Tenant, Path(id): Path<String>) -> Result<Json<Action>, Refusal> {
    let cancelled = tenant.actions().cancel(parse_id(&id)?, "cancelled").await;
    let cancelled = cancelled.map_err(|error| tenant.refused(error))?;
    Ok(Json(shown(&tenant, cancelled, Bodies::Shown)?))
}

/// Runs an action now. One that waits does so no more; one that runs already is shown as it is; one that has ended is done once
/// more, as a new one.
#[utoipa::path(post, path = "/v1/actions/{id}/run", tag = "actions", params(
    ("id" = String, Path, description = "Id of the action"), ScopeParameters,
), responses(
    (status = 200, body = Action, description = "It is due now, or has just become so"),
    (status = 201, body = Action, description = "A new one is due now"),
))]
pub async fn run(
    State(app): State<App>,
    tenant: Tenant,
    repeat: RepeatSafe,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let refused = |error: ActionError| tenant.refused(error);
    let (db, id) = (tenant.actions(), parse_id(&id)?);
    let now = timestamp(app.clock.now_ms());
    let trigger = core::ActionTrigger::Scheduled { next_tick_at: now };
    let found = db.get(id).await.map_err(refused)?;
    if found.status.is_final() {
        let fresh = repeat.uuid().unwrap_or_else(|| app.ids.new_uuid());
        let again = core::Action {
            tool_input: found.tool_input,
            orchestration: found.orchestration,
            on_restart: found.on_restart,
            ..core::Action::new(fresh, &found.label, &found.tool_name, trigger, now)
        };
        match db.insert(&again).await {
            Err(ActionError::Exists { .. }) if repeat.id().is_some() => {}
            inserted => inserted.map_err(refused)?,
        }
        return Ok((StatusCode::CREATED, Json(shown(&tenant, again, Bodies::Shown)?)).into_response());
    }
    let change = |action: &mut core::Action| {
        must_be_pending(action, "be started again")?;
        action.trigger = trigger.clone();
        Ok(())
    };
    let changed = match db.update(id, change).await {
        // Its time has come meanwhile, or had before: what is asked for happens, and not twice.
        Err(error @ ActionError::State { .. }) => {
            let found = db.get(id).await;
            found.and_then(|action| if action.status.is_pending() { Err(error) } else { Ok(action) })
        }
        changed => changed,
    };
    Ok(Json(shown(&tenant, changed.map_err(refused)?, Bodies::Shown)?).into_response())
}

fn must_be_pending(action: &core::Action, what: &str) -> Result<(), ActionError> {
    match action.status {
        core::ActionStatus::Pending => Ok(()),
        _ => {
            let problem = format!("action {} is {} and cannot {what}", action.id, action.status.name());
            Err(ActionError::State { problem })
        }
    }
}

/// Refuses an action whose call could not be made.
async fn check_call(tenant: &Tenant, action: &core::Action) -> Result<(), Refusal> {
    action.check().map_err(|error| tenant.refused(error))?;
    let function = match action.target().map_err(|error| tenant.refused(error))? {
        Target::Function(function) => function,
        Target::Orchestration(name) => return tenant.check_known(name.as_str()).await.map(drop),
    };
    match tenant.prepare(InvokeRequest::new(function, action.tool_input.clone())).await {
        Ok(_) => Ok(()),
        Err(error @ FunctionError::Unknown { .. }) => Err(Refusal::field("function", error.to_string())),
        Err(error) => Err(tenant.refused(error)),
    }
}

fn parse_id(id: &str) -> Result<Uuid, Refusal> {
    id.parse().map_err(|_| Refusal::not_found("action", id))
}

/// The place that a cursor is. Earlier versions gave the id of an action.
async fn place(db: &ActionDb, cursor: &str) -> Result<Place, Refusal> {
    if let Ok(place) = cursor.parse() {
        return Ok(place);
    }
    let id: Uuid = cursor.parse().map_err(|_| Refusal::broken_cursor())?;
    Ok(db.get(id).await.map_err(|_| Refusal::broken_cursor())?.place())
}

fn status_name(status: ActionStatusName) -> &'static str {
    match status {
        ActionStatusName::Pending => "pending",
        ActionStatusName::Running => "running",
        ActionStatusName::Completed => "completed",
        ActionStatusName::Failed => "failed",
    }
}

fn shown(tenant: &Tenant, action: core::Action, bodies: Bodies) -> Result<Action, Refusal> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    Ok(Action {
        id: action.id.to_string(),
        label: action.label,
        tool_name: action.tool_name,
        orchestration: action.orchestration.map(String::from),
        tool_input: view::json(&action.tool_input)?,
        trigger: match action.trigger {
            core::ActionTrigger::Scheduled { next_tick_at } => ActionTrigger::Scheduled { next_tick_at },
            core::ActionTrigger::Webhook { raw_payload, received_at } => {
                let raw_payload = match bodies {
                    Bodies::Shown => Some(STANDARD.encode(raw_payload)),
                    Bodies::Hidden => None,
                };
                ActionTrigger::Webhook { raw_payload, received_at }
            }
        },
        status: match action.status {
            core::ActionStatus::Pending => ActionStatus::Pending,
            core::ActionStatus::Running => ActionStatus::Running,
            core::ActionStatus::Completed { result } => {
                ActionStatus::Completed { result: view::json(&result)? }
            }
            core::ActionStatus::Failed { reason } => ActionStatus::Failed { reason },
        },
        recurrence: action.recurrence.map(|recurrence| recurrence.as_secs()),
        created_at: action.created_at,
        updated_at: action.updated_at,
        on_restart: match action.on_restart {
            core::OnRestart::Fail => OnRestart::Fail,
            core::OnRestart::Resume => OnRestart::Resume,
        },
        instance: tenant.shown_instance(action.instance.as_deref()),
        note: action.note,
        archived: false,
    })
}
