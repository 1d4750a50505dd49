//! The built-in bus over HTTP: peek-lock delivery for workers, and what people see of it.
//!
//! Workers receive jobs and send results. Other messages change batches, so they need what changing
//! a batch needs.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_actions::{Listed, Unreadable};
use segno_api::bus::{
    BusDeadLetter, BusDeadLetterList, BusMessageList, BusSubscription, BusSubscriptionList, LockRenewed,
    MessagesSent, ReceiveMessages, ReceivedMessages, RenewLock, SendMessages, SettleMessage,
    StoredBusMessage,
};
use segno_runbook::bus::{BusError, JOBS, RESULTS, SubscriptionName, TopicName};

use super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use crate::access::{Caller, Need};
use crate::app::Tenant;
use crate::audit::Unaudited;
use crate::extract::{Body, Path, Query, wait_of};
use crate::problem::{Code, Refusal};
use crate::scope::ScopeParameters;

/// Most messages of one request.
const MAX_MESSAGES: usize = 100;

/// Sends messages to a topic. Each goes to every subscription whose filter matches. Workers may send
/// to `results`; other topics need an operator's key.
#[utoipa::path(post, path = "/v1/bus/{topic}/messages", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"), ScopeParameters,
), request_body = SendMessages, responses((status = 200, body = MessagesSent)))]
pub async fn send(
    Extension(caller): Extension<Caller>,
    tenant: Tenant,
    Path(topic): Path<String>,
    Body(request): Body<SendMessages>,
) -> Result<Response, Refusal> {
    let topic = TopicName::new(&topic).map_err(|error| tenant.refused(error))?;
    let is_of_workers = topic.as_str() == RESULTS;
    if !is_of_workers && !caller.may(Need::Operate) {
        let detail = format!(
            "workers send to the topic {RESULTS:?}; use an operator's or administrator's key for {:?}",
            topic.as_str()
        );
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    within("messages", request.messages.len())?;
    let sent = request.messages.len();
    tenant.send_messages(&topic, request.messages).await?;
    let mut answer = Json(MessagesSent { sent }).into_response();
    if is_of_workers {
        answer.extensions_mut().insert(Unaudited);
    }
    Ok(answer)
}

/// Locks messages of a subscription for a minute, oldest first, or waits for them. Workers may
/// receive from `jobs`.
#[utoipa::path(post, path = "/v1/bus/{topic}/{subscription}/receive", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters,
), request_body = ReceiveMessages, responses((status = 200, body = ReceivedMessages)))]
pub async fn receive(
    Extension(caller): Extension<Caller>,
    tenant: Tenant,
    Path(from): Path<(String, String)>,
    Body(request): Body<ReceiveMessages>,
) -> Result<Json<ReceivedMessages>, Refusal> {
    let from = taken_from(&caller, &tenant, &from)?;
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
    Extension(caller): Extension<Caller>,
    tenant: Tenant,
    Path(from): Path<(String, String)>,
    Body(request): Body<SettleMessage>,
) -> Result<StatusCode, Refusal> {
    let from = taken_from(&caller, &tenant, &from)?;
    tenant.settle_message(&from, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Extends the lock of a message to a minute from now.
#[utoipa::path(post, path = "/v1/bus/{topic}/{subscription}/renew", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters,
), request_body = RenewLock, responses((status = 200, body = LockRenewed)))]
pub async fn renew(
    Extension(caller): Extension<Caller>,
    tenant: Tenant,
    Path(from): Path<(String, String)>,
    Body(request): Body<RenewLock>,
) -> Result<Json<LockRenewed>, Refusal> {
    let from = taken_from(&caller, &tenant, &from)?;
    Ok(Json(LockRenewed { locked_until: tenant.renew_lock(&from, &request.lock).await? }))
}

/// Subscriptions, by topic and name.
#[utoipa::path(get, path = "/v1/bus", tag = "bus", params(ScopeParameters, Page), responses(
    (status = 200, body = BusSubscriptionList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<BusSubscriptionList>, Refusal> {
    let name = |text: &str| {
        let (topic, name) = text.split_once('/')?;
        SubscriptionName::new(topic, name).ok()
    };
    cursor(page.cursor.as_deref(), name)?;
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let after = after.as_deref().and_then(name);
        Ok(Chunk::of(tenant.bus_subscriptions(after.as_ref(), rows).await?, rows))
    };
    let show = |row: Listed<BusSubscription>| {
        let cursor = match &row {
            Listed::Readable(row) => format!("{}/{}", row.topic, row.subscription),
            Listed::Unreadable(Unreadable { id, .. }) => id.clone(),
        };
        Ok(Row::new(cursor, row))
    };
    let Found { rows: subscriptions, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(BusSubscriptionList { subscriptions, unreadable, next_cursor }))
}

/// One subscription, and how long its oldest message waits.
#[utoipa::path(get, path = "/v1/bus/{topic}/{subscription}", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters,
), responses((status = 200, body = BusSubscription)))]
pub async fn get(
    tenant: Tenant,
    Path(name): Path<(String, String)>,
) -> Result<Json<BusSubscription>, Refusal> {
    let name = subscription(&tenant, &name)?;
    Ok(Json(tenant.bus_subscription(&name).await?))
}

/// Messages of a subscription that are neither completed nor dead, oldest first. Looking at them
/// neither locks nor counts them.
#[utoipa::path(get, path = "/v1/bus/{topic}/{subscription}/messages", tag = "bus", params(
    ("topic" = String, Path, description = "The topic"),
    ("subscription" = String, Path, description = "The subscription"), ScopeParameters, Page,
), responses((status = 200, body = BusMessageList)))]
pub async fn messages(
    tenant: Tenant,
    Path(of): Path<(String, String)>,
    Query(page): Query<Page>,
) -> Result<Json<BusMessageList>, Refusal> {
    let of = subscription(&tenant, &of)?;
    let first = cursor(page.cursor.as_deref(), number)?;
    let (tenant, of) = (&tenant, &of);
    let read = |after: Option<String>, rows| async move {
        Ok(Chunk::of(tenant.bus_messages(of, after.as_deref(), rows).await?, rows))
    };
    let show = |row: Listed<StoredBusMessage>| {
        let id = match &row {
            Listed::Readable(message) => message.id.clone(),
            Listed::Unreadable(Unreadable { id, .. }) => id.clone(),
        };
        Ok(Row::new(id, row))
    };
    let Found { rows: messages, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, first, read, show).await?;
    Ok(Json(BusMessageList { messages, unreadable, next_cursor }))
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
    let first = cursor(page.cursor.as_deref(), number)?;
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

/// The subscription of a delivery. Those to other topics than `jobs` are not for workers.
fn taken_from(
    caller: &Caller,
    tenant: &Tenant,
    name: &(String, String),
) -> Result<SubscriptionName, Refusal> {
    let from = subscription(tenant, name)?;
    if from.topic.as_str() == JOBS || caller.may(Need::Operate) {
        return Ok(from);
    }
    let detail = format!("workers receive from the topic {JOBS:?}; use an administrator's key for {from}");
    Err(Refusal::new(Code::Forbidden, detail))
}

/// The number of a message in its subscription.
fn number(text: &str) -> Option<String> {
    let is_number = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| text.to_owned())
}

fn within(field: &str, count: usize) -> Result<(), Refusal> {
    if (1..=MAX_MESSAGES).contains(&count) {
        return Ok(());
    }
    Err(Refusal::field(field, format!("must be 1 to {MAX_MESSAGES}")))
}
