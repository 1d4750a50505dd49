//! Creating, reading, changing, pausing and deleting recurring actions.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use segno_actions::action::ActionError;
use segno_actions::recurring::{Pause, RecurringAction as Stored};
use segno_api::recurring::{
    PauseRecurring, RecurringAction, RecurringCreated, RecurringFields, RecurringList, RecurringState,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::super::paging::{Row, limit, search};
use super::super::partial::partial;
use super::{fields, view};
use crate::app::App;
use crate::extract::{Body, OptionalBody, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::{Scope, ScopeParameters};

/// Which recurring actions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RecurringQuery {
    /// Only those that fire, or that do not.
    pub enabled: Option<bool>,
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
    State(app): State<App>,
    scope: Scope,
    repeat: RepeatSafe,
    Body(request): Body<RecurringFields>,
) -> Result<Response, Refusal> {
    let mut new = fields::new(request)?;
    new.id = repeat.uuid();
    let created = match app.recurring.create(&scope.for_functions(), new).await {
        // The same request had been worked on and was cut off.
        Err(ActionError::Exists { id, .. }) if repeat.id().is_some() => {
            app.recurring.get(&scope.for_functions(), &id).await
        }
        created => created,
    };
    let created = created.map_err(|error| Refusal::from_action(&error, &scope))?;
    let location = format!("/v1/recurring/{}", created.id);
    let body = Json(view::created(&created, app.recurring.zones()));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], body).into_response())
}

/// Recurring actions, those made first first.
#[utoipa::path(get, path = "/v1/recurring", tag = "recurring", params(ScopeParameters, RecurringQuery), responses(
    (status = 200, body = RecurringList),
))]
pub async fn list(
    State(app): State<App>,
    scope: Scope,
    Query(query): Query<RecurringQuery>,
) -> Result<Json<RecurringList>, Refusal> {
    let rows = limit(query.limit)?;
    let owner = scope.for_functions();
    let (recurring, owner, scope) = (&app.recurring, &owner, &scope);
    let read = |after: Option<String>| async move {
        let page = recurring.page(owner, after.as_deref(), rows).await;
        page.map_err(|error| Refusal::from_action(&error, scope))
    };
    let row = |action: &Stored| Row {
        cursor: action.id.clone(),
        matches: query.enabled.is_none_or(|enabled| enabled == action.enabled),
    };
    let (found, next_cursor) = search(rows, query.cursor.clone(), read, row).await?;
    let zones = recurring.zones();
    let recurring_actions = found.iter().map(|action| view::summary(action, zones)).collect();
    Ok(Json(RecurringList { recurring_actions, next_cursor }))
}

/// One recurring action.
#[utoipa::path(get, path = "/v1/recurring/{id}", tag = "recurring", params(
    ("id" = String, Path, description = "Id of the recurring action"), ScopeParameters,
), responses((status = 200, body = RecurringAction)))]
pub async fn get(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<Json<RecurringAction>, Refusal> {
    let found = app.recurring.get(&scope.for_functions(), &id).await;
    whole(&app, &scope, found)
}

/// Changes a recurring action. What is left out stays; `null` clears a field. If the schedule changes, the next time is
/// found again.
#[utoipa::path(put, path = "/v1/recurring/{id}", tag = "recurring", params(
    ("id" = String, Path, description = "Id of the recurring action"), ScopeParameters,
), request_body = RecurringFields, responses((status = 200, body = RecurringAction)))]
pub async fn update(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    Body(mut body): Body<Map<String, Value>>,
) -> Result<Json<RecurringAction>, Refusal> {
    for named in ["namespace", "tenant"] {
        body.remove(named);
    }
    let (changes, cleared) = partial::<RecurringFields>(body)?;
    // What is wrong with the request itself is found here, in the words of the request.
    let before = app.recurring.get(&scope.for_functions(), &id).await;
    let before = before.map_err(|error| Refusal::from_action(&error, &scope))?;
    fields::apply(changes.clone(), &cleared, &mut fields::draft_of(&before))?;
    let change = |action: &mut Stored| {
        let mut draft = fields::draft_of(action);
        fields::apply(changes.clone(), &cleared, &mut draft)
            .map_err(|refusal| ActionError::State { problem: refusal.to_string() })?;
        fields::put_back(draft, action);
        Ok(())
    };
    let updated = app.recurring.update(&scope.for_functions(), &id, change).await;
    whole(&app, &scope, updated)
}

/// Deletes a recurring action. What runs of it goes on.
#[utoipa::path(delete, path = "/v1/recurring/{id}", tag = "recurring", params(
    ("id" = String, Path, description = "Id of the recurring action"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn delete(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    let deleted = app.recurring.delete(&scope.for_functions(), &id).await;
    deleted.map_err(|error| Refusal::from_action(&error, &scope))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pauses a recurring action. What runs goes on. Pausing again is fine.
#[utoipa::path(post, path = "/v1/recurring/{id}/pause", tag = "recurring", params(
    ("id" = String, Path, description = "Id of the recurring action"), ScopeParameters,
), request_body(content = Option<PauseRecurring>), responses((status = 200, body = RecurringState)))]
pub async fn pause(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<PauseRecurring>,
) -> Result<Json<RecurringState>, Refusal> {
    let pause = Pause { note: request.note, resumes_at: request.resumes_at };
    let paused = app.recurring.pause(&scope.for_functions(), &id, pause).await;
    Ok(Json(view::state(paused.map_err(|error| Refusal::from_action(&error, &scope))?)))
}

/// Lets a paused recurring action go on, from the next occurrence after now. Resuming again is fine.
#[utoipa::path(post, path = "/v1/recurring/{id}/resume", tag = "recurring", params(
    ("id" = String, Path, description = "Id of the recurring action"), ScopeParameters,
), responses((status = 200, body = RecurringState)))]
pub async fn resume(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<Json<RecurringState>, Refusal> {
    let resumed = app.recurring.resume(&scope.for_functions(), &id).await;
    Ok(Json(view::state(resumed.map_err(|error| Refusal::from_action(&error, &scope))?)))
}

fn whole(
    app: &App,
    scope: &Scope,
    found: Result<Stored, ActionError>,
) -> Result<Json<RecurringAction>, Refusal> {
    let found = found.map_err(|error| Refusal::from_action(&error, scope))?;
    Ok(Json(view::whole(scope, found, app.recurring.zones())?))
}
