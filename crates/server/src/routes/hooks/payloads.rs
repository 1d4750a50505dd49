//! What came in: listed, inspected, replayed, deleted.
//!
//! Whoever may read sees what came when and what became of it. Bodies and headers may have secrets of the sender in them,
//! so an operator's key is needed for those.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use segno_actions::Listed;
use segno_actions::action::ActionError;
use segno_actions::hooks::{HookError, ListPayloads, Payload};
use segno_api::hook as wire;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;
use uuid::Uuid;

use super::super::paging::{self, Chunk, Found, Row, cursor, limit};
use super::view;
use crate::app::{App, Tenant};
use crate::extract::{Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::TenantParameter;

/// Payloads of a page when a request does not say.
const DEFAULT_ROWS: usize = 100;

/// Which payloads.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Not before this time.
    since: Option<Timestamp>,
    /// Not after this time.
    until: Option<Timestamp>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// What came in at a route, newest first, without bodies.
#[utoipa::path(get, path = "/v1/hooks/{namespace}/{route}/payloads", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"), TenantParameter, Which,
), responses(
    (status = 200, body = wire::HookPayloadList),
))]
pub async fn list(
    tenant: Tenant,
    Path((_, route)): Path<(String, String)>,
    Query(which): Query<Which>,
) -> Result<Json<wire::HookPayloadList>, Refusal> {
    let rows = limit(which.limit.or(Some(DEFAULT_ROWS)))?;
    let (since, until, name) = (which.since, which.until, view::name(&route, &tenant)?);
    let (tenant, name) = (&tenant, &name);
    let read = |after: Option<String>, rows| async move {
        let after = cursor(after.as_deref(), |id| id.parse().ok())?;
        let page = tenant.payloads(name, &ListPayloads { since, until, after, limit: rows }).await;
        let page = page.map_err(|error| tenant.refused(error))?;
        Ok(Chunk { rows: page.payloads, is_last: !page.more, damaged: None })
    };
    let show = |row: Listed<Payload>| match row {
        Listed::Readable(payload) => {
            let texts = payload.headers.iter().chain(&payload.params);
            let unshown_bytes = texts.map(|(name, value)| name.len() + value.len()).sum();
            let row = Row::new(payload.id.to_string(), Listed::Readable(view::payload(&payload)));
            Ok(Row { unshown_bytes, ..row })
        }
        Listed::Unreadable(row) => Ok(Row::new(row.id.clone(), Listed::Unreadable(row))),
    };
    let Found { rows: payloads, unreadable, next_cursor } =
        paging::page(rows, which.cursor, read, show).await?;
    Ok(Json(wire::HookPayloadList { payloads, unreadable, next_cursor }))
}

/// All of a payload: its body byte for byte, its headers, and what became of its actions.
#[utoipa::path(get, path = "/v1/hooks/{namespace}/{route}/payloads/{id}", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"),
    ("id" = String, Path, description = "Id of the payload"), TenantParameter,
), responses(
    (status = 200, body = wire::HookPayloadDetail),
))]
pub async fn get(
    tenant: Tenant,
    Path((_, route, id)): Path<(String, String, String)>,
) -> Result<Json<wire::HookPayloadDetail>, Refusal> {
    let found = tenant.payload(&view::name(&route, &tenant)?, view::id("id", &id)?).await;
    let (payload, body) = found.map_err(|error| tenant.refused(error))?;
    let db = tenant.actions();
    let mut actions = Vec::new();
    for id in &payload.actions {
        let action = match db.get(*id).await {
            Ok(action) => Some(action),
            // One that cannot be read is in the listing of actions, with the reason.
            Err(ActionError::Unknown { .. } | ActionError::Unreadable { .. }) => None,
            Err(error) => return Err(tenant.refused(HookError::from(error))),
        };
        actions.push(view::action(*id, action, &tenant)?);
    }
    Ok(Json(wire::HookPayloadDetail {
        body_base64: STANDARD.encode(body),
        actions,
        headers: payload.headers.clone(),
        params: payload.params.clone(),
        payload: view::payload(&payload),
    }))
}

/// Calls the function of a payload again, as a new action, with the route as it is declared now.
#[utoipa::path(post, path = "/v1/hooks/{namespace}/{route}/payloads/{id}/replay", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"),
    ("id" = String, Path, description = "Id of the payload"), TenantParameter,
), responses(
    (status = 202, body = wire::Replayed),
))]
pub async fn replay(
    State(app): State<App>,
    tenant: Tenant,
    repeat: RepeatSafe,
    Path((_, route, id)): Path<(String, String, String)>,
) -> Result<(StatusCode, Json<wire::Replayed>), Refusal> {
    // A repeated request must find what its first try made, so its action follows from the idempotency key.
    let action = repeat.id().map_or_else(|| app.ids.new_uuid(), action_of);
    let (name, payload) = (view::name(&route, &tenant)?, view::id("id", &id)?);
    let replayed = tenant.replay_payload(&name, payload, action).await;
    replayed.map_err(|error| tenant.refused(error))?;
    Ok((StatusCode::ACCEPTED, Json(wire::Replayed { id: payload.to_string(), action: action.to_string() })))
}

/// Deletes a payload. Actions that were made of it go on.
#[utoipa::path(delete, path = "/v1/hooks/{namespace}/{route}/payloads/{id}", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"),
    ("id" = String, Path, description = "Id of the payload"), TenantParameter,
), responses(
    (status = 204, description = "It is deleted"),
))]
pub async fn delete(
    tenant: Tenant,
    Path((_, route, id)): Path<(String, String, String)>,
) -> Result<StatusCode, Refusal> {
    let (name, id) = (view::name(&route, &tenant)?, view::id("id", &id)?);
    tenant.delete_payload(&name, id).await.map_err(|error| tenant.refused(error))?;
    Ok(StatusCode::NO_CONTENT)
}

/// An action's id that follows from an idempotency key.
fn action_of(key: &str) -> Uuid {
    let hash = Sha256::digest(key.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
