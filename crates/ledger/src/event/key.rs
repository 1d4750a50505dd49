//! Idempotency keys: two events with one key are one fact. Keys join escaped segments, so no key of
//! a run or task can make two facts look like one. A segment that stands alone, or before a digest
//! of fixed length, is not escaped.

use std::sync::Arc;

use super::{Attempt, EvalSource, EventData, TaskHeartbeat};
use crate::ids::{escape, fingerprint};

impl EventData {
    /// Its idempotency key.
    pub fn idempotency_key(&self) -> String {
        match self {
            EventData::RunTriggered(event) => {
                format!("run:{}", event.run_key.as_deref().unwrap_or(&event.run_id))
            }
            EventData::PlanCreated(event) => format!("plan:{}", event.run_id),
            EventData::RunCancelRequested(event) if event.generation > 0 => {
                format!("cancel_req:{}:{}", escape(&event.run_id), event.generation)
            }
            EventData::RunCancelRequested(event) => format!("cancel_req:{}", escape(&event.run_id)),
            EventData::RunPaused(event) => requested("pause", &event.run_id, &event.request_id),
            EventData::RunResumed(event) => requested("resume", &event.run_id, &event.request_id),
            EventData::TasksAdded(event) => {
                let (run, task) = (escape(&event.run_id), escape(&event.task_key));
                format!("tasks_added:{run}:{task}:{}", event.attempt)
            }
            EventData::TaskCleared(event) => requested("clear", &event.run_id, &event.request_id),
            EventData::TaskMarked(event) => requested("mark", &event.run_id, &event.request_id),
            EventData::TaskStarted(event) => attempt("started", &event.attempt),
            EventData::TaskHeartbeat(event) => heartbeat(event),
            EventData::TaskFinished(event) => attempt("finished", &event.attempt),
            EventData::TaskCompletionRecorded(event) => attempt("finished", &event.finished.attempt),
            EventData::TaskOutputVisibilityChanged(event) => format!(
                "{}:{}",
                attempt("output_visibility", &event.attempt),
                event.visibility.visibility_state.text()
            ),
            EventData::DispatchRequested(event) => format!("dispatch_req:{}", event.dispatch_id),
            EventData::DispatchEnqueued(event) if event.repair > 0 => {
                format!("dispatch_ack:{}:repair:{}", event.dispatch_id, event.repair)
            }
            EventData::DispatchEnqueued(event) => format!("dispatch_ack:{}", event.dispatch_id),
            EventData::TimerRequested(event) => format!("timer_req:{}", event.timer_id),
            EventData::TimerEnqueued(event) => format!("timer_ack:{}", event.timer_id),
            EventData::TimerFired(event) => format!("timer_fired:{}", event.timer_id),
            _ => self.key_beyond_runs(),
        }
    }

    /// Keys of events that are not about a run that exists.
    fn key_beyond_runs(&self) -> String {
        match self {
            EventData::ScheduleDefinitionUpserted(event) => {
                let content = serde_json::to_string(event).unwrap_or_default();
                format!("sched_def:{}:{}", escape(&event.schedule_id), fingerprint(&content))
            }
            EventData::ScheduleTicked(event) => format!("sched_tick:{}", event.tick_id),
            EventData::SensorEvaluated(event) => {
                let sensor = escape(&event.sensor_id);
                match &event.trigger_source {
                    EvalSource::Push { message_id } => {
                        format!("sensor_eval:{sensor}:msg:{}", escape(message_id))
                    }
                    EvalSource::Poll { poll_epoch } => {
                        let cursor = event.cursor_before.as_deref().map(fingerprint);
                        let cursor = cursor.as_deref().unwrap_or("none");
                        format!("sensor_eval:{sensor}:poll:{poll_epoch}:{cursor}")
                    }
                }
            }
            EventData::RunRequested(event) => {
                format!("runreq:{}:{}", event.run_key, fingerprint(&event.request_fingerprint))
            }
            EventData::BackfillCreated(event) => {
                format!("backfill_create:{}", event.client_request_id)
            }
            EventData::BackfillChunkPlanned(event) => {
                format!("backfill_chunk:{}:{}", escape(&event.backfill_id), event.chunk_index)
            }
            EventData::BackfillStateChanged(event) => {
                let to_state = event.to_state.text();
                format!("backfill_state:{}:{}:{to_state}", escape(&event.backfill_id), event.state_version)
            }
            EventData::PoolDefined(event) => {
                format!("pool:{}:{}", escape(&event.pool), escape(&event.request_id))
            }
            _ => String::new(),
        }
    }

    /// The run that it is about, if it is about one that exists or begins with it.
    pub fn run_id(&self) -> Option<&Arc<str>> {
        match self {
            EventData::RunTriggered(event) => Some(&event.run_id),
            EventData::PlanCreated(event) => Some(&event.run_id),
            EventData::RunCancelRequested(event) => Some(&event.run_id),
            EventData::RunPaused(event) => Some(&event.run_id),
            EventData::RunResumed(event) => Some(&event.run_id),
            EventData::TasksAdded(event) => Some(&event.run_id),
            EventData::TaskCleared(event) => Some(&event.run_id),
            EventData::TaskMarked(event) => Some(&event.run_id),
            EventData::TaskStarted(event) => Some(&event.attempt.run_id),
            EventData::TaskHeartbeat(event) => Some(&event.attempt.run_id),
            EventData::TaskFinished(event) => Some(&event.attempt.run_id),
            EventData::TaskCompletionRecorded(event) => Some(&event.finished.attempt.run_id),
            EventData::TaskOutputVisibilityChanged(event) => Some(&event.attempt.run_id),
            EventData::DispatchRequested(event) => Some(&event.run_id),
            EventData::DispatchEnqueued(event) => event.run_id.as_ref(),
            EventData::TimerRequested(event) => event.run_id.as_ref(),
            EventData::TimerEnqueued(event) => event.run_id.as_ref(),
            EventData::TimerFired(event) => event.run_id.as_ref(),
            _ => None,
        }
    }

    /// Whether the rows of the attempt that it is about show whether it was applied. Such an event
    /// needs no row in `idempotency_keys`, which would otherwise hold several for every attempt of
    /// a month.
    pub fn is_bound_to_attempt(&self) -> bool {
        matches!(
            self,
            EventData::TaskStarted(_)
                | EventData::TaskHeartbeat(_)
                | EventData::TaskFinished(_)
                | EventData::TaskCompletionRecorded(_)
                | EventData::TaskOutputVisibilityChanged(_)
                | EventData::DispatchRequested(_)
                | EventData::DispatchEnqueued(_)
                | EventData::TasksAdded(_)
        )
    }
}

fn requested(verb: &str, run_id: &str, request_id: &str) -> String {
    format!("{verb}:{}:{}", escape(run_id), escape(request_id))
}

fn attempt(verb: &str, attempt: &Attempt) -> String {
    format!("{verb}:{}:{}:{}", escape(&attempt.run_id), escape(&attempt.task_key), attempt.attempt)
}

fn heartbeat(event: &TaskHeartbeat) -> String {
    let attempt_id = escape(&event.attempt.attempt_id);
    let key = format!("{}:{attempt_id}", attempt("heartbeat", &event.attempt));
    match event.heartbeat_at {
        Some(at) => format!("{key}:{}", at.as_millisecond()),
        None => key,
    }
}
