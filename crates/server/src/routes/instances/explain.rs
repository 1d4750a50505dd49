//! What an instance waits for.

use axum::Json;
use jiff::Timestamp;
use segno::client::{HistoryBudget, Instance, OpenKind, OpenOperation};
use segno::event::Channel;
use segno::store::{ExecutionStatus, QueuePlace};
use segno_api::call::{CallDetails, CallState};
use segno_api::explain::{InstanceExplanation, InstanceWait, WaitKind, WaitState};

use super::{call, view};
use crate::access::timestamp;
use crate::app::{Tenant, Waits};
use crate::extract::Path;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// How much of a history is read to find what is open.
const BUDGET: HistoryBudget = HistoryBudget { events: 60_000, bytes: 64 * 1024 * 1024 };

/// Most waits of an answer.
const MAX_WAITS: usize = 200;

/// Waits that the sentence names.
const NAMED_WAITS: usize = 3;

/// What an instance waits for: timers, signals, activities with their workers, children; and when
/// it wakes up by itself.
#[utoipa::path(get, path = "/v1/instances/{id}/explain", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance; a slash in it is written %2F"), ScopeParameters,
), responses((status = 200, body = InstanceExplanation)))]
pub async fn explain(tenant: Tenant, Path(id): Path<String>) -> Result<Json<InstanceExplanation>, Refusal> {
    let mut found = tenant.instance_in_store(&id).await?;
    let call = tenant.call_of_instance(&mut found).await?;
    let call = call.map(|call| call::details(&found, call)).transpose()?;
    let (mut waits, mut complete) = (Vec::new(), true);
    if !found.has_ended() {
        waits.extend(paused(&found));
        match (&call, found.status) {
            (Some(call), _) => waits.extend(of_call(&found, call)),
            (None, ExecutionStatus::Pending) => waits.push(start(&found)),
            (None, _) => {
                let open = tenant.waits_of(&found, BUDGET).await?;
                complete = open.open.is_complete;
                waits.extend(open.open.operations.iter().map(|operation| of_operation(operation, &open)));
                if waits.is_empty() {
                    waits.push(turn(&found));
                }
            }
        }
    }
    let next_wake_up = waits.iter().filter(|wait| wakes(wait)).filter_map(|wait| wait.until).min();
    let in_words = in_words(&found, &waits);
    complete &= waits.len() <= MAX_WAITS;
    waits.truncate(MAX_WAITS);
    let (status, execution) = (view::status(found.status), found.execution_id);
    let id = found.id;
    Ok(Json(InstanceExplanation { id, status, execution, waits, next_wake_up, in_words, complete }))
}

/// Whether something happens by itself when a wait is over.
fn wakes(wait: &InstanceWait) -> bool {
    match wait.kind {
        WaitKind::Start | WaitKind::Timer => true,
        // The end of a lease is no wake-up: it is extended while the worker lives.
        WaitKind::Activity => wait.state == Some(WaitState::Delayed),
        _ => false,
    }
}

fn wait(kind: WaitKind, since: Timestamp, detail: impl Into<String>) -> InstanceWait {
    InstanceWait {
        kind,
        name: None,
        since,
        until: None,
        event: None,
        attempt: None,
        worker: None,
        state: None,
        tag: None,
        child: None,
        detail: detail.into(),
    }
}

fn paused(found: &Instance) -> Option<InstanceWait> {
    if found.status != ExecutionStatus::Paused {
        return None;
    }
    let why = found.pause_reason().unwrap_or("no reason was given");
    Some(wait(WaitKind::Resume, timestamp(found.updated_at_ms), format!("a resume: it is paused ({why})")))
}

fn start(found: &Instance) -> InstanceWait {
    let until = found.start_at_ms.map(timestamp);
    let detail = match until {
        Some(_) => "its start, which lies ahead",
        None => "its start: no node that looked at it has its code, or its start has not been read yet",
    };
    InstanceWait { until, ..wait(WaitKind::Start, timestamp(found.created_at_ms), detail) }
}

fn turn(found: &Instance) -> InstanceWait {
    let detail = "a turn: nothing is open, so its code runs, or no node is up that has it";
    wait(WaitKind::Turn, timestamp(found.updated_at_ms), detail)
}

/// What a call waits for: its pause is told before.
fn of_call(found: &Instance, call: &CallDetails) -> Option<InstanceWait> {
    let state = match call.state {
        CallState::Paused | CallState::Ended => return None,
        CallState::Held => WaitState::Held,
        CallState::WaitsForWorker => WaitState::Ready,
        CallState::WaitsForRetry | CallState::Delayed => WaitState::Delayed,
        CallState::Settling => WaitState::Settling,
    };
    let since = wait(WaitKind::Activity, timestamp(found.updated_at_ms), call.waits_for.clone());
    Some(InstanceWait {
        name: Some(call.function.clone()),
        until: call.waits_until.or(call.lease_expires_at),
        attempt: Some(call.attempt),
        worker: call.worker.clone(),
        state: Some(state),
        tag: call.tag.clone(),
        ..since
    })
}

fn of_operation(operation: &OpenOperation, waits: &Waits) -> InstanceWait {
    let (event, since) = (operation.event_id, timestamp(operation.since_ms));
    let shown = match &operation.kind {
        OpenKind::Timer { fire_at_ms } => {
            let until = Some(timestamp(*fire_at_ms));
            InstanceWait { until, ..wait(WaitKind::Timer, since, "a timer") }
        }
        OpenKind::Message { channel, name } => {
            let (kind, what) = match channel {
                Channel::Signal => (WaitKind::Signal, "the signal"),
                Channel::Mailbox => (WaitKind::Mailbox, "a message of the mailbox"),
            };
            InstanceWait { name: Some(name.clone()), ..wait(kind, since, format!("{what} `{name}`")) }
        }
        OpenKind::Child { name, instance } => InstanceWait {
            name: Some(name.clone()),
            child: (!instance.is_empty()).then(|| instance.clone()),
            ..wait(
                WaitKind::Child,
                since,
                match instance.as_str() {
                    "" => format!("a child (`{name}`) outside of this tenant"),
                    instance => format!("the child `{instance}`"),
                },
            )
        },
        OpenKind::Activity { name, attempt, retry_at_ms, is_exhausted, tag } => {
            let worker = waits.holders.get(&event).cloned();
            let place = waits.queued.get(&event).map(|queued| queued.place);
            let (state, until, how) = match place {
                _ if *is_exhausted => {
                    (WaitState::Exhausted, None, "whose attempts are used up: resume the instance".to_owned())
                }
                Some(QueuePlace::Locked { until_ms, .. }) => {
                    let how = match &worker {
                        Some(worker) => format!("which worker `{worker}` holds"),
                        None => "which runs on a node".to_owned(),
                    };
                    (WaitState::Held, Some(until_ms), how)
                }
                Some(QueuePlace::Delayed { visible_at_ms }) => {
                    (WaitState::Delayed, Some(visible_at_ms), "which is tried again".to_owned())
                }
                Some(QueuePlace::Ready) => {
                    (WaitState::Ready, None, "which no worker has taken yet".to_owned())
                }
                None => (
                    WaitState::Settling,
                    *retry_at_ms,
                    "which has ended and is about to be recorded".to_owned(),
                ),
            };
            InstanceWait {
                name: Some(name.clone()),
                until: until.map(timestamp),
                attempt: Some(*attempt),
                worker,
                state: Some(state),
                tag: tag.clone(),
                ..wait(WaitKind::Activity, since, format!("the activity `{name}`, {how}"))
            }
        }
    };
    InstanceWait { event: Some(event), ..shown }
}

fn in_words(found: &Instance, waits: &[InstanceWait]) -> String {
    if found.has_ended() {
        return format!("It has ended ({}).", found.status);
    }
    let named: Vec<&str> = waits.iter().take(NAMED_WAITS).map(|wait| wait.detail.as_str()).collect();
    let rest = waits.len() - named.len();
    match rest {
        0 => format!("Waits for {}.", named.join("; and ")),
        rest => format!("Waits for {}; and {rest} more.", named.join("; and ")),
    }
}
