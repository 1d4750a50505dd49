//! What wakes up by itself.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use segno::client::{HistoryBudget, Instance, OpenKind};
use segno::clock;
use segno::store::{ExecutionStatus, QueuePlace};
use segno_api::explain::WaitKind;
use segno_api::timer::{PendingTimer, TimerList};

use super::view;
use crate::access::timestamp;
use crate::app::{App, InstanceFilter, Tenant};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Instances that are looked at.
const MAX_EXAMINED: usize = 300;

/// After this time no further instance is looked at.
const SEARCH_TIME: Duration = Duration::from_secs(5);

/// How much of each history is read.
const BUDGET: HistoryBudget = HistoryBudget { events: 5_000, bytes: 8 * 1024 * 1024 };

/// Timers of an answer.
const MAX_TIMERS: usize = 500;

/// What wakes up by itself in the tenant, soonest first: timers, next attempts of activities, delayed starts. The newest 300
/// instances that run or wait for their start are looked at; `truncated` says when there may be more.
#[utoipa::path(get, path = "/v1/timers", tag = "overview", params(ScopeParameters), responses(
    (status = 200, body = TimerList),
))]
pub async fn timers(State(app): State<App>, tenant: Tenant) -> Result<Json<TimerList>, Refusal> {
    let filter = InstanceFilter {
        statuses: [ExecutionStatus::Pending, ExecutionStatus::Running].into(),
        limit: MAX_EXAMINED,
        ..InstanceFilter::default()
    };
    let page = tenant.instances(filter).await?;
    let until_ms = app.clock.now_ms().saturating_add(clock::duration_ms(SEARCH_TIME));
    let (mut timers, mut examined, mut truncated) = (Vec::new(), 0, page.next.is_some());
    for found in page.instances {
        if app.clock.now_ms() >= until_ms {
            truncated = true;
            break;
        }
        examined += 1;
        match timers_of(&tenant, &found).await {
            Ok((found, is_complete)) => {
                timers.extend(found);
                truncated |= !is_complete;
            }
            // One that has vanished meanwhile waits for nothing; one that cannot be read may.
            Err(refusal) if refusal.code() == segno::Code::NotFound.as_str() => {}
            Err(refusal) if refusal.damage().is_some() => truncated = true,
            Err(refusal) => return Err(refusal),
        }
        tokio::task::yield_now().await;
    }
    timers.sort_by(|one, other| {
        (one.at, &one.instance, one.event).cmp(&(other.at, &other.instance, other.event))
    });
    truncated |= timers.len() > MAX_TIMERS;
    timers.truncate(MAX_TIMERS);
    Ok(Json(TimerList { timers, examined, truncated }))
}

/// What wakes up an instance by itself, and whether that is all.
async fn timers_of(tenant: &Tenant, found: &Instance) -> Result<(Vec<PendingTimer>, bool), Refusal> {
    let view::MadeOf { function, .. } = view::made_of(tenant, &found.labels);
    let timer = |at_ms: u64, kind: WaitKind, since_ms: u64| PendingTimer {
        at: timestamp(at_ms),
        kind,
        instance: found.id.clone(),
        orchestration: found.orchestration.clone(),
        function: function.clone(),
        name: None,
        since: timestamp(since_ms),
        event: None,
    };
    if found.status == ExecutionStatus::Pending {
        let start = found.start_at_ms.map(|at_ms| timer(at_ms, WaitKind::Start, found.created_at_ms));
        return Ok((start.into_iter().collect(), true));
    }
    let waits = tenant.waits_of(found, BUDGET).await?;
    let mut timers = Vec::new();
    for operation in &waits.open.operations {
        let (event, since_ms) = (operation.event_id, operation.since_ms);
        match &operation.kind {
            OpenKind::Timer { fire_at_ms } => {
                let timer = timer(*fire_at_ms, WaitKind::Timer, since_ms);
                timers.push(PendingTimer { event: Some(event), ..timer });
            }
            OpenKind::Activity { name, .. } => {
                if let Some(QueuePlace::Delayed { visible_at_ms }) =
                    waits.queued.get(&event).map(|queued| queued.place)
                {
                    let timer = timer(visible_at_ms, WaitKind::Activity, since_ms);
                    timers.push(PendingTimer { name: Some(name.clone()), event: Some(event), ..timer });
                }
            }
            OpenKind::Message { .. } | OpenKind::Child { .. } => {}
        }
    }
    Ok((timers, waits.open.is_complete))
}
