//! The workers' protocol: fetch, heartbeat, complete, fail, release.
//!
//! The requests of this group are not in the audit log: there are thousands a second, each is part of a call that its
//! instance's history tells of, and the log would drown in them.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use segno::limits::{MAX_LEASE, MIN_LEASE};
use segno::work::{self as engine, LeasedActivity};
use segno::{Category, Failure};
use segno_actions::functions::{FunctionName, Tag, remote_tag};
use segno_api::work::{
    CompleteWork, FailWork, FailureCategory, FetchWork, FetchedWork, Heartbeat, HeartbeatAction,
    HeartbeatAnswer, ReleaseWork, WorkItem,
};

use super::instances::view;
use crate::access::timestamp;
use crate::app::App;
use crate::extract::{Body, wait_of};
use crate::problem::Refusal;
use crate::scope::{Scope, ScopeParameters};
use crate::work::{HeldLease, call_of, fetch as fetch_for_caller, item, no_call};

/// Most functions that one fetch names.
const MAX_FUNCTIONS: usize = 32;

/// Most tags that one fetch names. With the functions, they make fewer routing tags than a fetch of the engine takes.
const MAX_TAGS: usize = 5;

/// Most calls that one fetch leases.
const MAX_ITEMS: usize = 100;

/// Inputs of one answer have so many bytes in all, unless the first alone has more. Further calls are given back.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Longest name of a worker in bytes.
const MAX_WORKER_BYTES: usize = 128;

/// Leases calls of functions, oldest first, or waits for them.
#[utoipa::path(post, path = "/v1/work/fetch", tag = "work", params(ScopeParameters), request_body = FetchWork, responses(
    (status = 200, body = FetchedWork),
))]
pub async fn fetch(
    State(app): State<App>,
    scope: Scope,
    Body(request): Body<FetchWork>,
) -> Result<Json<FetchedWork>, Refusal> {
    let asked = read(&request, &scope)?;
    app.presence.asks(&scope, &request.worker, &request.functions, &request.tags);
    let fetched = fetch_for_caller(&app.work, &app.clock, &app.stopping, asked).await;
    let fetched = fetched.map_err(|error| Refusal::from_engine(&error, &scope))?;
    let mut items = Vec::with_capacity(fetched.len());
    let mut bytes = 0;
    for leased in fetched {
        bytes += leased.activity.input.as_str().len();
        if bytes > MAX_ANSWER_BYTES && !items.is_empty() {
            give_back(&app, &leased).await;
        } else if let Some(item) = hand_out(&app, &scope, &request.worker, leased).await {
            items.push(item);
        }
    }
    Ok(Json(FetchedWork { items }))
}

/// One of the next fetches gets it.
async fn give_back(app: &App, leased: &LeasedActivity) {
    if let Err(error) = app.work.release(&leased.lease, None).await {
        tracing::debug!(%error, "a call that did not fit into an answer comes back when its lease ends");
    }
}

/// What the engine is asked for.
fn read(request: &FetchWork, scope: &Scope) -> Result<engine::FetchWork, Refusal> {
    check_worker(&request.worker)?;
    let within = |field: &str, count: usize, least: usize, most: usize| match (least..=most).contains(&count)
    {
        true => Ok(()),
        false => Err(Refusal::field(field, format!("must be {least} to {most}, not {count}"))),
    };
    within("functions", request.functions.len(), 1, MAX_FUNCTIONS)?;
    within("tags", request.tags.len(), 0, MAX_TAGS)?;
    within("max_items", request.max_items, 1, MAX_ITEMS)?;
    if !request.untagged && request.tags.is_empty() {
        return Err(Refusal::field(
            "tags",
            "is empty and untagged is false, so nothing could be fetched; name a tag",
        ));
    }
    let owner = scope.for_functions();
    let wrong = |field: &'static str| {
        move |error: segno_actions::functions::FunctionError| Refusal::field(field, error.to_string())
    };
    let tags: Vec<Tag> =
        request.tags.iter().map(Tag::new).collect::<Result<_, _>>().map_err(wrong("tags"))?;
    let mut routing_tags = BTreeSet::new();
    for name in &request.functions {
        let function = FunctionName::new(name).map_err(wrong("functions"))?;
        routing_tags.extend(request.untagged.then(|| remote_tag(&owner, &function, None)));
        routing_tags.extend(tags.iter().map(|tag| remote_tag(&owner, &function, Some(tag))));
    }
    Ok(engine::FetchWork {
        tags: routing_tags,
        max_items: request.max_items,
        lease: lease_of("lease_ms", request.lease_ms)?,
        wait: wait_of(Some(request.wait_ms))?,
    })
}

fn check_worker(name: &str) -> Result<(), Refusal> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if (1..=MAX_WORKER_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    let rule = format!("must be 1 to {MAX_WORKER_BYTES} letters, digits, '-', '_', '.' and ':'");
    Err(Refusal::field("worker", rule))
}

fn lease_of(field: &str, ms: u64) -> Result<Duration, Refusal> {
    let lease = Duration::from_millis(ms);
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        return Ok(lease);
    }
    Err(Refusal::field(field, format!("must be {} to {}", MIN_LEASE.as_millis(), MAX_LEASE.as_millis())))
}

/// A call for the worker to see. One that cannot be read fails, as trying again would not help.
async fn hand_out(app: &App, scope: &Scope, worker: &str, leased: LeasedActivity) -> Option<WorkItem> {
    let owner = scope.for_functions();
    let shown = call_of(&leased).and_then(|call| {
        if call.scope() != owner {
            return Err(no_call("it was queued for workers of another namespace and tenant"));
        }
        let held = HeldLease::new(&owner, Some(worker), leased.lease.clone());
        item(&leased, &call, app.seal.seal(&held)).map_err(no_call)
    });
    match shown {
        Ok(item) => {
            app.presence.holds(scope, worker, &leased.lease);
            Some(item)
        }
        Err(failure) => {
            if let Err(error) = app.work.fail(&leased.lease, failure).await {
                tracing::warn!(%error, "work that is no call could not be given up; it will be delivered again");
            }
            None
        }
    }
}

/// Shows that a call is being worked on, extends its lease, and says whether to go on. Show the new lease from then on.
#[utoipa::path(post, path = "/v1/work/heartbeat", tag = "work", params(ScopeParameters), request_body = Heartbeat, responses(
    (status = 200, body = HeartbeatAnswer),
))]
pub async fn heartbeat(
    State(app): State<App>,
    scope: Scope,
    Body(request): Body<Heartbeat>,
) -> Result<Json<HeartbeatAnswer>, Refusal> {
    let held = app.seal.open(&scope, &request.lease)?;
    let extend = lease_of("extend_ms", request.extend_ms)?;
    let progress = request.progress.map(|progress| view::payload("progress", &progress)).transpose()?;
    match app.work.heartbeat(&held.lease, extend, progress).await {
        Ok(engine::Heartbeat::GoOn(lease)) => {
            if let Some(worker) = &held.worker {
                app.presence.holds(&scope, worker, &lease);
            }
            let expires_at = timestamp(lease.expires_at_ms);
            Ok(Json(HeartbeatAnswer {
                action: HeartbeatAction::Continue,
                lease: Some(app.seal.seal(&held.extended(lease))),
                lease_expires_at: Some(expires_at),
                reason: None,
            }))
        }
        Ok(engine::Heartbeat::Stop(reason)) => {
            app.presence.ended(&scope, &held);
            let (action, reason) = (HeartbeatAction::Cancel, Some(reason.to_string()));
            Ok(Json(HeartbeatAnswer { action, lease: None, lease_expires_at: None, reason }))
        }
        Err(error) => Err(refused(&app, &scope, &held, &error)),
    }
}

/// Answers a call with its result.
#[utoipa::path(post, path = "/v1/work/complete", tag = "work", params(ScopeParameters), request_body = CompleteWork, responses(
    (status = 204, description = "The result is stored"),
))]
pub async fn complete(
    State(app): State<App>,
    scope: Scope,
    Body(request): Body<CompleteWork>,
) -> Result<StatusCode, Refusal> {
    let held = app.seal.open(&scope, &request.lease)?;
    let result = view::payload("result", &request.result)?;
    ended(&app, &scope, &held, app.work.complete(&held.lease, result).await)
}

/// Answers a call with a failure. The retry policy of the call decides what follows.
#[utoipa::path(post, path = "/v1/work/fail", tag = "work", params(ScopeParameters), request_body = FailWork, responses(
    (status = 204, description = "The failure is stored"),
))]
pub async fn fail(
    State(app): State<App>,
    scope: Scope,
    Body(request): Body<FailWork>,
) -> Result<StatusCode, Refusal> {
    let held = app.seal.open(&scope, &request.lease)?;
    let failure = failure(request)?;
    ended(&app, &scope, &held, app.work.fail(&held.lease, failure).await)
}

/// Gives a call back, to be handed out again. It counts neither as an attempt nor as a delivery.
#[utoipa::path(post, path = "/v1/work/release", tag = "work", params(ScopeParameters), request_body = ReleaseWork, responses(
    (status = 204, description = "It is back in the queue"),
))]
pub async fn release(
    State(app): State<App>,
    scope: Scope,
    Body(request): Body<ReleaseWork>,
) -> Result<StatusCode, Refusal> {
    let held = app.seal.open(&scope, &request.lease)?;
    let delay = request.delay_ms.map(Duration::from_millis);
    if delay.is_some_and(|delay| delay > MAX_LEASE) {
        return Err(Refusal::field("delay_ms", format!("must be at most {}", MAX_LEASE.as_millis())));
    }
    ended(&app, &scope, &held, app.work.release(&held.lease, delay).await)
}

fn failure(request: FailWork) -> Result<Failure, Refusal> {
    let category = match request.category {
        FailureCategory::Application => Category::Application,
        FailureCategory::Timeout => Category::Timeout,
        FailureCategory::Cancelled => Category::Cancelled,
        FailureCategory::Configuration => Category::Configuration,
        FailureCategory::Infrastructure => Category::Infrastructure,
    };
    let mut failure = Failure::new(category, request.message);
    failure.code = request.code;
    failure.retryable = request.retryable.unwrap_or(failure.retryable);
    failure.details = match request.details {
        None => None,
        Some(details) => Some(
            serde_json::from_str(details.text())
                .map_err(|error| Refusal::field("details", format!("cannot be read: {error}")))?,
        ),
    };
    Ok(failure)
}

fn ended(
    app: &App,
    scope: &Scope,
    held: &HeldLease,
    outcome: Result<(), segno::Error>,
) -> Result<StatusCode, Refusal> {
    match outcome {
        Ok(()) => {
            app.presence.ended(scope, held);
            Ok(StatusCode::NO_CONTENT)
        }
        Err(error) => Err(refused(app, scope, held, &error)),
    }
}

fn refused(app: &App, scope: &Scope, held: &HeldLease, error: &segno::Error) -> Refusal {
    if error.code() == segno::Code::LeaseLost {
        app.presence.ended(scope, held);
    }
    Refusal::from_engine(error, scope)
}
