//! How far a call is, as it goes over the wire, and in words what it waits for.

use segno::client::Instance;
use segno::store::{ExecutionStatus, QueuePlace};
use segno_actions::MadeFor;
use segno_actions::functions::{FailedAttempt, Invocation, PoolName, Route, Tag, Trigger};
use segno_api::call::{self as wire, CallDetails, CallPoolState, CallState};

use super::view;
use crate::access::timestamp;
use crate::app::{CallFound, PoolCondition};
use crate::problem::Refusal;
use crate::work::Announced;

/// Longest message of a failed attempt that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// A call.
///
/// # Errors
/// When what is stored is not JSON.
pub fn details(instance: &Instance, found: CallFound) -> Result<CallDetails, Refusal> {
    let (state, waits_for) = waits_for(instance, &found);
    let pool = pool(&found);
    let throttled_until = pool.as_ref().and_then(|pool| pool.throttled_until);
    let CallFound { status, holder, .. } = found;
    let attempt = status.attempt();
    let (lease_expires_at, delayed_until) = match status.queued.as_ref().map(|queued| queued.place) {
        Some(QueuePlace::Locked { until_ms, .. }) => (Some(timestamp(until_ms)), None),
        Some(QueuePlace::Delayed { visible_at_ms }) => (None, Some(timestamp(visible_at_ms))),
        Some(QueuePlace::Ready) | None => (None, None),
    };
    let failed_attempts = status.attempts.iter().map(failed_attempt).collect::<Result<Vec<_>, _>>()?;
    Ok(CallDetails {
        made_by: made_by(instance, &status.invocation),
        state,
        waits_for,
        waits_until: match state {
            CallState::WaitsForRetry | CallState::Delayed => delayed_until,
            CallState::WaitsForWorker => throttled_until,
            _ => None,
        },
        pool,
        attempt,
        max_attempts: status.invocation.retry.max_attempts(),
        failed_attempts,
        deliveries: status.queued.as_ref().map_or(0, |queued| queued.attempt_count),
        retry_at: delayed_until.filter(|_| state == CallState::WaitsForRetry),
        heartbeat_at: holder.as_ref().map(|holder| timestamp(holder.heard_at_ms)),
        worker: holder.map(|holder| holder.worker),
        lease_expires_at,
        progress: status.progress.as_ref().map(|progress| view::json(&progress.value)).transpose()?,
        progress_at: status.progress.map(|progress| timestamp(progress.stored_at_ms)),
        tag: tag_of(&status.invocation.route).map(ToString::to_string),
        deadline: status.deadline_at_ms.map(timestamp),
        input: view::json(&status.invocation.input)?,
        function: status.invocation.function.to_string(),
    })
}

fn failed_attempt(failed: &FailedAttempt) -> Result<wire::FailedAttempt, Refusal> {
    let mut failure = view::failure(&failed.failure)?;
    if let Some((end, _)) = failure.message.char_indices().nth(MAX_MESSAGE_CHARS) {
        failure.message.truncate(end);
        failure.message.push('…');
    }
    Ok(wire::FailedAttempt {
        attempt: failed.attempt,
        failed_at: timestamp(failed.failed_at_ms),
        failure,
        retry_at: failed.retry_at_ms.map(timestamp),
    })
}

/// What made a call: by its labels, or by whom its end is told if it was made before calls had labels.
fn made_by(instance: &Instance, invocation: &Invocation) -> wire::MadeBy {
    let (trigger, id, time) = match invocation.settle.as_ref().map(MadeFor::of) {
        Some(MadeFor { trigger, id, time }) => (trigger, Some(id), time),
        None => (Trigger::Call, None, None),
    };
    let trigger = Trigger::of(&instance.labels).unwrap_or(trigger);
    wire::MadeBy { kind: view::kind(trigger), id, time }
}

fn tag_of(route: &Route) -> Option<&Tag> {
    match route {
        Route::Local { tag } | Route::Node { tag } | Route::Remote { tag } | Route::Push { tag } => {
            tag.as_ref()
        }
        Route::Pool { .. } => None,
    }
}

/// What a call waits for, and the same in words, which complete "it waits for". Nothing is said that is not known, and times
/// are in fields of their own, so that readers show them in their own zone.
fn waits_for(instance: &Instance, found: &CallFound) -> (CallState, String) {
    let CallFound { status, .. } = found;
    if instance.has_ended() {
        return (CallState::Ended, format!("nothing: it has ended ({})", instance.status));
    }
    let Some(queued) = &status.queued else {
        return match instance.status {
            ExecutionStatus::Paused => paused(instance),
            _ => (CallState::Settling, "the end of an attempt to be recorded".to_owned()),
        };
    };
    match queued.place {
        QueuePlace::Locked { .. } => (CallState::Held, held(found)),
        _ if instance.status == ExecutionStatus::Paused => paused(instance),
        QueuePlace::Delayed { visible_at_ms } => match status.attempts.last() {
            Some(last) if last.retry_at_ms == Some(visible_at_ms) => {
                let text = format!("a retry: attempt {} failed", last.attempt);
                (CallState::WaitsForRetry, text)
            }
            _ => (CallState::Delayed, "its next delivery: it was given back".to_owned()),
        },
        QueuePlace::Ready => (CallState::WaitsForWorker, ready(found)),
    }
}

/// What a call waits for that a worker or node holds.
fn held(found: &CallFound) -> String {
    match (&found.status.invocation.route, &found.holder) {
        (Route::Remote { .. } | Route::Pool { .. }, Some(holder)) => {
            format!("worker `{}`, which holds it", holder.worker)
        }
        (Route::Remote { .. } | Route::Pool { .. }, None) => {
            "a worker that this node does not know of, which holds it".to_owned()
        }
        (Route::Push { .. }, _) => "its worker, to whose URL it was sent".to_owned(),
        (Route::Local { .. } | Route::Node { .. }, _) => "its function, which runs on a node".to_owned(),
    }
}

/// What a call waits for that may be handed out.
fn ready(found: &CallFound) -> String {
    let (route, function) = (&found.status.invocation.route, &found.status.invocation.function);
    let with_tag = tag_of(route).map(|tag| format!(" with the tag `{tag}`")).unwrap_or_default();
    match (route, &found.announced) {
        (Route::Remote { .. }, Some(announced)) => match (announced.workers, announced.is_bound) {
            (0, false) => format!("a worker: none has announced `{function}`{with_tag}"),
            (0, true) => {
                format!("a worker: none of those that were looked at has announced `{function}`{with_tag}")
            }
            (1, _) => format!("a worker: 1 has announced `{function}`{with_tag} and has not fetched it"),
            (count, _) => {
                format!("a worker: {count} have announced `{function}`{with_tag} and have not fetched it")
            }
        },
        (Route::Remote { .. }, None) => format!("a worker of `{function}`{with_tag}"),
        (Route::Pool { pool }, announced) => match &found.pool {
            None | Some(PoolCondition::Active) => worker_of_pool(pool, *announced),
            Some(PoolCondition::Paused(pause)) => match &pause.reason {
                Some(reason) => format!("the pool `{pool}` to be resumed: it is paused ({reason})"),
                None => format!("the pool `{pool}` to be resumed: it is paused"),
            },
            Some(PoolCondition::Throttled { .. }) => {
                format!("the pool `{pool}`, which hands out no calls because its workers were throttled")
            }
            Some(PoolCondition::Missing) => {
                format!("a worker that fetches for the pool `{pool}`: there is no such pool any more")
            }
        },
        (Route::Push { .. }, _) => format!("a node{with_tag} that sends it to its worker"),
        (Route::Local { .. } | Route::Node { .. }, _) => format!("a free node{with_tag}"),
    }
}

fn worker_of_pool(pool: &PoolName, announced: Option<Announced>) -> String {
    match announced.map(|announced| (announced.workers, announced.is_bound)) {
        Some((0, false)) => format!("a worker: none fetches for the pool `{pool}`"),
        Some((0, true)) => {
            format!("a worker: none of those that were looked at fetches for the pool `{pool}`")
        }
        Some((1, _)) => format!("a worker: 1 fetches for the pool `{pool}` and has not got it"),
        Some((count, _)) => format!("a worker: {count} fetch for the pool `{pool}` and have not got it"),
        None => format!("a worker of the pool `{pool}`"),
    }
}

fn paused(instance: &Instance) -> (CallState, String) {
    let why = instance.pause_reason().unwrap_or("no reason was given");
    (CallState::Paused, format!("a resume: it is paused ({why})"))
}

/// The pool of a call.
fn pool(found: &CallFound) -> Option<wire::CallPool> {
    let Route::Pool { pool } = &found.status.invocation.route else { return None };
    let (state, pause, throttled_until) = match found.pool.as_ref()? {
        PoolCondition::Active => (CallPoolState::Active, None, None),
        PoolCondition::Paused(pause) => (CallPoolState::Paused, Some(pause), None),
        PoolCondition::Throttled { until_ms } => (CallPoolState::Throttled, None, Some(timestamp(*until_ms))),
        PoolCondition::Missing => (CallPoolState::Missing, None, None),
    };
    let reason = pause.and_then(|pause| pause.reason.clone());
    let paused_at = pause.map(|pause| pause.at);
    Some(wire::CallPool { name: pool.to_string(), state, reason, paused_at, throttled_until })
}
