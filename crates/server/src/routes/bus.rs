//! The built-in bus over HTTP: peek-lock delivery for workers, and its dead letters.

use axum::Json;
use axum::http::StatusCode;
use segno_actions::{Listed, Unreadable};
use segno_api::bus::{
    BusDeadLetter, BusDeadLetterList, LockRenewed, MessagesSent, ReceiveMessages, ReceivedMessages,
    RenewLock, SendMessages, SettleMessage,
};
use segno_runbook::bus::{BusError, SubscriptionName, TopicName};

use super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use crate::app::Tenant;
use crate::extract::{Body, Path, Query, wait_of};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Most messages of one request.
const MAX_MESSAGES: usize = 100;

/// Sends messages to a topic. Each goes to every subscription whose filter matches.
#[utoipa::path(post, path = "/v1/bus/{topic}/messages", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"), ScopeParameters,
), request_body = SendMessages, responses((status = 200, body = MessagesSent)))]
pub async fn send(
    tenant: Tenant,
    Path(topic): Path<String>,
    Body(request): Body<SendMessages>,
) -> Result<Json<MessagesSent>, Refusal> {
    let topic = TopicName::new(&topic).map_err(|error| tenant.refused(error))?;
    within("messages", request.messages.len())?;
    let sent = request.messages.len();
    tenant.send_messages(&topic, request.messages).await?;
    Ok(Json(MessagesSent { sent }))
}

/// Locks messages of a subscription for a minute, oldest first, or waits for them.
#[utoipa::path(post, path = "/v1/bus/{topic}/{subscription}/receive", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters,
), request_body = ReceiveMessages, responses((status = 200, body = ReceivedMessages)))]
pub async fn receive(
    tenant: Tenant,
    Path(from): Path<(String, String)>,
    Body(request): Body<ReceiveMessages>,
) -> Result<Json<ReceivedMessages>, Refusal> {
    let from = subscription(&tenant, &from)?;
    let max_messages = request.max_messages.unwrap_or(1);
    within("max_messages", max_messages)?;
    let place = match request.wait_ms.unwrap_or(0) {
        0 => None,
        _ => Some(tenant.wait_place()),
    };
    // Without a place the receiver gets what is available, and otherwise has to come back later.
    let wait_ms = if matches!(place, Some(Err(_))) { None } else { request.wait_ms };
    let messages = tenant.receive_messages(&from, max_messages, wait_of(wait_ms)?).await?;
    match place {
        Some(Err(refusal)) if messages.is_empty() => Err(refusal),
        _ => Ok(Json(ReceivedMessages { messages })),
    }
}

/// Ends a delivery: the message is completed, redelivered, or becomes a dead letter.
#[utoipa::path(post, path = "/v1/bus/{topic}/{subscription}/settle", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters,
), request_body = SettleMessage, responses((status = 204, description = "It has ended")))]
pub async fn settle(
    tenant: Tenant,
    Path(from): Path<(String, String)>,
    Body(request): Body<SettleMessage>,
) -> Result<StatusCode, Refusal> {
    let from = subscription(&tenant, &from)?;
    tenant.settle_message(&from, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Extends the lock of a message to a minute from now.
#[utoipa::path(post, path = "/v1/bus/{topic}/{subscription}/renew", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters,
), request_body = RenewLock, responses((status = 200, body = LockRenewed)))]
pub async fn renew(
    tenant: Tenant,
    Path(from): Path<(String, String)>,
    Body(request): Body<RenewLock>,
) -> Result<Json<LockRenewed>, Refusal> {
    let from = subscription(&tenant, &from)?;
    Ok(Json(LockRenewed { locked_until: tenant.renew_lock(&from, &request.lock).await? }))
}

/// Dead letters of a subscription, oldest first. They are kept for 90 days.
#[utoipa::path(get, path = "/v1/bus/{topic}/{subscription}/dead-letters", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters, Page,
), responses((status = 200, body = BusDeadLetterList)))]
pub async fn dead_letters(
    tenant: Tenant,
    Path(from): Path<(String, String)>,
    Query(page): Query<Page>,
) -> Result<Json<BusDeadLetterList>, Refusal> {
    let from = subscription(&tenant, &from)?;
    let is_id = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let first = cursor(page.cursor.as_deref(), |text| is_id(text).then(|| text.to_owned()))?;
    let (tenant, from) = (&tenant, &from);
    let read = |after: Option<String>, rows| async move {
        Ok(Chunk::of(tenant.bus_dead_letters(from, after.as_deref(), rows).await?, rows))
    };
    let show = |row: Listed<BusDeadLetter>| {
        let id = match &row {
            Listed::Readable(letter) => letter.id.clone(),
            Listed::Unreadable(Unreadable { id, .. }) => id.clone(),
        };
        Ok(Row::new(id, row))
    };
    let Found { rows: dead_letters, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, first, read, show).await?;
    Ok(Json(BusDeadLetterList { dead_letters, unreadable, next_cursor }))
}

/// Sends a dead letter to its subscription again, as a new message, and removes the letter.
#[utoipa::path(post, path = "/v1/bus/{topic}/{subscription}/dead-letters/{id}/resubmit", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"),
    ("id" = String, Path, description = "Id of the dead letter"), ScopeParameters,
), responses((status = 204, description = "It is sent again")))]
pub async fn resubmit(
    tenant: Tenant,
    Path((topic, name, id)): Path<(String, String, String)>,
) -> Result<StatusCode, Refusal> {
    let from = subscription(&tenant, &(topic, name))?;
    tenant.resubmit_message(&from, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a dead letter.
#[utoipa::path(delete, path = "/v1/bus/{topic}/{subscription}/dead-letters/{id}", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"),
    ("id" = String, Path, description = "Id of the dead letter"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn discard(
    tenant: Tenant,
    Path((topic, name, id)): Path<(String, String, String)>,
) -> Result<StatusCode, Refusal> {
    let from = subscription(&tenant, &(topic, name))?;
    tenant.discard_message(&from, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn subscription(tenant: &Tenant, (topic, name): &(String, String)) -> Result<SubscriptionName, Refusal> {
    SubscriptionName::new(topic, name).map_err(|error: BusError| tenant.refused(error))
}

fn within(field: &str, count: usize) -> Result<(), Refusal> {
    if (1..=MAX_MESSAGES).contains(&count) {
        return Ok(());
    }
    Err(Refusal::field(field, format!("must be 1 to {MAX_MESSAGES}")))
}
