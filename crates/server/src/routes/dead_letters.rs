//! What was given up, and the way back.

use axum::Json;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use segno::GivenUp;
use segno_actions::Listed;
use segno_api::dead_letter::{self as wire, DeadLetter, DeadLetterList, ListDeadLetters, Resubmitted};

use super::instances::view::json;
use super::paging::{self, Chunk, Found, Row, limit, newest_first};
use crate::access::timestamp;
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Dead letters, newest first: messages that could not be taken, and turns and activities that were given up. They are kept
/// for 30 days.
#[utoipa::path(get, path = "/v1/dead-letters", tag = "dead-letters", params(ScopeParameters, ListDeadLetters), responses(
    (status = 200, body = DeadLetterList),
))]
pub async fn list(
    tenant: Tenant,
    Query(request): Query<ListDeadLetters>,
) -> Result<Json<DeadLetterList>, Refusal> {
    let rows = limit(request.limit)?;
    let first = newest_first(request.cursor.as_deref())?.map(str::to_owned);
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        Ok(Chunk::of(tenant.dead_letters(after.as_deref(), rows).await?, rows))
    };
    let show = |row: Listed<segno::DeadLetter>| match row {
        Listed::Readable(letter) => Ok(Row {
            cursor: letter.id.clone(),
            matches: request.instance.as_ref().is_none_or(|instance| *instance == letter.instance)
                && request.what.is_none_or(|wanted| wanted == what(letter.what)),
            unshown_bytes: 0,
            shown: Listed::Readable(shown(letter)),
        }),
        Listed::Unreadable(row) => Ok(Row::new(row.id.clone(), Listed::Unreadable(row))),
    };
    let Found { rows: dead_letters, unreadable, next_cursor } = paging::page(rows, first, read, show).await?;
    let dead_letters = tenant.named_letters(dead_letters).await?;
    Ok(Json(DeadLetterList { dead_letters, unreadable, next_cursor }))
}

/// One dead letter, with what it carried.
#[utoipa::path(get, path = "/v1/dead-letters/{id}", tag = "dead-letters", params(
    ("id" = String, Path, description = "Id of the dead letter"), ScopeParameters,
), responses((status = 200, body = DeadLetter)))]
pub async fn get(tenant: Tenant, Path(id): Path<String>) -> Result<Json<DeadLetter>, Refusal> {
    let (letter, contents) = tenant.dead_letter(&id).await?;
    let letter = shown(letter);
    Ok(Json(DeadLetter {
        name: contents.name.or(letter.name),
        payload: contents.payload.as_ref().map(json).transpose()?,
        raw: contents.raw.map(|raw| STANDARD.encode(raw)),
        ..letter
    }))
}

/// Puts back what was given up, once, and removes the letter. A message is sent again; for a turn or an activity the next
/// execution of its instance begins, as by a restart.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/resubmit", tag = "dead-letters", params(
    ("id" = String, Path, description = "Id of the dead letter"), ScopeParameters,
), responses((status = 200, body = Resubmitted)))]
pub async fn resubmit(tenant: Tenant, Path(id): Path<String>) -> Result<Json<Resubmitted>, Refusal> {
    let done = tenant.resubmit(&id).await?;
    Ok(Json(Resubmitted { id, instance: done.instance, execution: done.execution_id }))
}

/// Deletes a dead letter, with what it carried.
#[utoipa::path(delete, path = "/v1/dead-letters/{id}", tag = "dead-letters", params(
    ("id" = String, Path, description = "Id of the dead letter"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn discard(tenant: Tenant, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    tenant.discard(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn what(what: GivenUp) -> wire::GivenUp {
    match what {
        GivenUp::Message => wire::GivenUp::Message,
        GivenUp::Turn => wire::GivenUp::Turn,
        GivenUp::Activity => wire::GivenUp::Activity,
    }
}

fn shown(letter: segno::DeadLetter) -> DeadLetter {
    DeadLetter {
        what: what(letter.what),
        id: letter.id,
        instance: letter.instance,
        execution: letter.execution_id,
        name: letter.name,
        reason: letter.reason,
        deliveries: letter.deliveries,
        given_up_at: timestamp(letter.parked_at_ms),
        expires_at: letter.expires_at_ms.map(timestamp),
        payload: None,
        raw: None,
    }
}
