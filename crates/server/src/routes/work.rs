//! The workers' protocol: fetch, heartbeat, complete, fail, release. [`exchange`](super::exchange)
//! does all of it in one request.
//!
//! The requests of this group are not in the audit log: there are thousands a second, each is part of a call that its
//! instance's history tells of, and the log would drown in them.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use segno::limits::{MAX_LEASE, MIN_LEASE};
use segno::work as engine;
use segno::{Category, Failure, Payload};
use segno_actions::functions::limits::MAX_POOL_FUNCTIONS;
use segno_actions::functions::{CallName, FunctionError, FunctionName, PoolName, Tag};
use segno_api::work::{
    CompleteWork, FailWork, FailureCategory, FetchWork, FetchedWork, Heartbeat, HeartbeatAnswer, ReleaseWork,
    WorkItem,
};

use super::instances::view;
use crate::app::{PoolFetch, Tenant};
use crate::extract::{Body, wait_of};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;
use crate::work::Asked;

/// Most functions that one fetch names.
const MAX_FUNCTIONS: usize = 32;

/// Most tags that one fetch names. With the functions, they make fewer routing tags than a fetch of the engine takes.
const MAX_TAGS: usize = 5;

/// Most calls that one fetch leases.
const MAX_ITEMS: usize = 100;

/// Longest name of a worker in bytes.
const MAX_WORKER_BYTES: usize = 128;

/// Leases calls of functions, oldest first, or waits for them.
#[utoipa::path(post, path = "/v1/work/fetch", tag = "work", params(ScopeParameters), request_body = FetchWork, responses(
    (status = 200, body = FetchedWork),
))]
pub async fn fetch(tenant: Tenant, Body(request): Body<FetchWork>) -> Result<Json<FetchedWork>, Refusal> {
    let wanted = wanted(&request, &tenant)?;
    Ok(Json(FetchedWork { items: leased(&tenant, request, wanted).await? }))
}

/// What a fetch asks for, checked.
pub enum Wanted {
    /// Calls of functions.
    Functions(engine::FetchWork),
    /// Calls of a pool.
    Pool(PoolFetch),
}

/// Checks what a fetch asks for.
///
/// # Errors
/// `invalid-request`, with the field.
pub fn wanted(request: &FetchWork, tenant: &Tenant) -> Result<Wanted, Refusal> {
    match &request.pool {
        Some(pool) => read_pool(request, pool).map(Wanted::Pool),
        None => read(request, tenant).map(Wanted::Functions),
    }
}

/// Leases calls, or waits for them.
///
/// # Errors
/// `too-many-waits` when there is no call and no place to wait; those of the engine.
pub async fn leased(
    tenant: &Tenant,
    request: FetchWork,
    mut wanted: Wanted,
) -> Result<Vec<WorkItem>, Refusal> {
    let place = match request.wait_ms {
        0 => None,
        _ => Some(tenant.wait_place()),
    };
    // Without a place the worker gets what is available, and otherwise has to come back later.
    if matches!(place, Some(Err(_))) {
        match &mut wanted {
            Wanted::Functions(asked) => asked.wait = Duration::ZERO,
            Wanted::Pool(asked) => asked.wait = Duration::ZERO,
        }
    }
    let items = match wanted {
        Wanted::Pool(asked) => tenant.fetch_pool_work(&request.worker, asked).await?,
        Wanted::Functions(asked) => {
            let (functions, tags, untagged) = (&request.functions, &request.tags, request.untagged);
            tenant.note_worker(&request.worker, Asked { functions, tags, untagged, pool: None });
            tenant.fetch_work(&request.worker, asked).await?
        }
    };
    match place {
        Some(Err(refusal)) if items.is_empty() => Err(refusal),
        _ => Ok(items),
    }
}

/// What a worker of a pool asks for.
fn read_pool(request: &FetchWork, pool: &str) -> Result<PoolFetch, Refusal> {
    check_worker(&request.worker)?;
    within("functions", request.functions.len(), 0, MAX_POOL_FUNCTIONS)?;
    within("max_items", request.max_items, 1, MAX_ITEMS)?;
    if !request.tags.is_empty() || !request.untagged {
        return Err(Refusal::field("tags", "cannot be used with pool; a worker gets all calls of its pool"));
    }
    let functions: Result<Vec<CallName>, FunctionError> =
        request.functions.iter().map(CallName::new).collect();
    Ok(PoolFetch {
        pool: PoolName::new(pool).map_err(wrong("pool"))?,
        functions: functions.map_err(wrong("functions"))?,
        max_items: request.max_items,
        lease: lease_of("lease_ms", request.lease_ms)?,
        wait: wait_of(Some(request.wait_ms))?,
    })
}

/// Refuses a count that is out of range.
///
/// # Errors
/// `invalid-request`, with the field.
pub fn within(field: &str, count: usize, least: usize, most: usize) -> Result<(), Refusal> {
    match (least..=most).contains(&count) {
        true => Ok(()),
        false => Err(Refusal::field(field, format!("must be {least} to {most}, not {count}"))),
    }
}

fn wrong(field: &'static str) -> impl Fn(FunctionError) -> Refusal {
    move |error| Refusal::field(field, error.to_string())
}

/// What the engine is asked for.
fn read(request: &FetchWork, tenant: &Tenant) -> Result<engine::FetchWork, Refusal> {
    check_worker(&request.worker)?;
    within("functions", request.functions.len(), 1, MAX_FUNCTIONS)?;
    within("tags", request.tags.len(), 0, MAX_TAGS)?;
    within("max_items", request.max_items, 1, MAX_ITEMS)?;
    if !request.untagged && request.tags.is_empty() {
        return Err(Refusal::field(
            "tags",
            "is empty and untagged is false, so nothing could be fetched; name a tag",
        ));
    }
    let tags: Vec<Tag> =
        request.tags.iter().map(Tag::new).collect::<Result<_, _>>().map_err(wrong("tags"))?;
    let mut routing_tags = BTreeSet::new();
    for name in &request.functions {
        let function = FunctionName::new(name).map_err(wrong("functions"))?;
        routing_tags.extend(request.untagged.then(|| tenant.routing_tag(&function, None)));
        routing_tags.extend(tags.iter().map(|tag| tenant.routing_tag(&function, Some(tag))));
    }
    Ok(engine::FetchWork {
        tags: engine::TagFilter::Tags(routing_tags),
        max_items: request.max_items,
        lease: lease_of("lease_ms", request.lease_ms)?,
        wait: wait_of(Some(request.wait_ms))?,
        life: engine::LockLife::Durable,
    })
}

/// Refuses a name that no worker has.
///
/// # Errors
/// `invalid-request`, with the field.
pub fn check_worker(name: &str) -> Result<(), Refusal> {
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

/// Shows that a call is being worked on, extends its lease, and says whether to go on. Show the new lease from then on.
#[utoipa::path(post, path = "/v1/work/heartbeat", tag = "work", params(ScopeParameters), request_body = Heartbeat, responses(
    (status = 200, body = HeartbeatAnswer),
))]
pub async fn heartbeat(
    tenant: Tenant,
    Body(request): Body<Heartbeat>,
) -> Result<Json<HeartbeatAnswer>, Refusal> {
    Ok(Json(extended(&tenant, &request).await?))
}

/// Extends a lease.
///
/// # Errors
/// `lease-lost`; those of a field.
pub async fn extended(tenant: &Tenant, request: &Heartbeat) -> Result<HeartbeatAnswer, Refusal> {
    let extend = lease_of("extend_ms", request.extend_ms)?;
    let progress = match &request.progress {
        Some(progress) => Some(view::payload(tenant, "progress", progress).await?),
        None => None,
    };
    tenant.heartbeat(&request.lease, extend, progress).await
}

/// Answers a call with its result.
#[utoipa::path(post, path = "/v1/work/complete", tag = "work", params(ScopeParameters), request_body = CompleteWork, responses(
    (status = 204, description = "The result is stored"),
))]
pub async fn complete(tenant: Tenant, Body(request): Body<CompleteWork>) -> Result<StatusCode, Refusal> {
    let result = result_of(&tenant, &request).await?;
    tenant.complete_work(&request.lease, result).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The result of a request.
///
/// # Errors
/// Those of the rule for payloads.
pub async fn result_of(tenant: &Tenant, request: &CompleteWork) -> Result<Payload, Refusal> {
    view::payload(tenant, "result", &request.result).await
}

/// Answers a call with a failure. The retry policy of the call decides what follows.
#[utoipa::path(post, path = "/v1/work/fail", tag = "work", params(ScopeParameters), request_body = FailWork, responses(
    (status = 204, description = "The failure is stored"),
))]
pub async fn fail(tenant: Tenant, Body(request): Body<FailWork>) -> Result<StatusCode, Refusal> {
    let (lease, failure) = failure_of(&tenant, request).await?;
    tenant.fail_work(&lease, failure).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The lease and the failure of a request.
///
/// # Errors
/// Those of the rule for payloads, and of a field that is out of range.
pub async fn failure_of(tenant: &Tenant, mut request: FailWork) -> Result<(String, Failure), Refusal> {
    let details = match &request.details {
        Some(details) => Some(view::payload(tenant, "details", details).await?),
        None => None,
    };
    let lease = std::mem::take(&mut request.lease);
    Ok((lease, Failure { details, ..failure(request)? }))
}

/// Gives a call back, to be handed out again. It counts neither as an attempt nor as a delivery.
#[utoipa::path(post, path = "/v1/work/release", tag = "work", params(ScopeParameters), request_body = ReleaseWork, responses(
    (status = 204, description = "It is back in the queue"),
))]
pub async fn release(tenant: Tenant, Body(request): Body<ReleaseWork>) -> Result<StatusCode, Refusal> {
    released(&tenant, &request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a call back.
///
/// # Errors
/// `lease-lost`; `invalid-request` when the delay is too long.
pub async fn released(tenant: &Tenant, request: &ReleaseWork) -> Result<(), Refusal> {
    let delay = request.delay_ms.map(Duration::from_millis);
    if delay.is_some_and(|delay| delay > MAX_LEASE) {
        return Err(Refusal::field("delay_ms", format!("must be at most {}", MAX_LEASE.as_millis())));
    }
    tenant.release_work(&request.lease, delay).await
}

/// The failure of a request, without its details.
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
    if let Some(after_ms) = request.retry_after_ms {
        let after = Duration::from_millis(after_ms);
        if after > MAX_LEASE {
            return Err(Refusal::field(
                "retry_after_ms",
                format!("must be at most {}", MAX_LEASE.as_millis()),
            ));
        }
        failure = failure.retry_after(after);
    }
    Ok(failure)
}
