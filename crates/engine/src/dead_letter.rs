//! Messages that could not be taken: parked where they can be seen, with the reason and a way back.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec;
use crate::ids::IdSource;
use crate::limits::DEAD_LETTER_RETENTION;
use crate::store::{Expect, RecordWrite, ScheduledActivityIdentifier, WorkerMessage};

/// Kind of the records that hold dead letters.
pub(crate) const DEAD_LETTER_KIND: &str = "segno.dead-letter";

/// Which queue a dead letter came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// Messages for orchestrations.
    Orchestrator,
    /// Activities.
    Worker,
}

/// A parked message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id, for resubmitting.
    pub id: String,
    /// Where it came from.
    pub queue: Queue,
    /// The instance it was for, or that scheduled the activity.
    pub instance: String,
    /// Why it was parked.
    pub reason: String,
    /// When it was parked, in Unix milliseconds.
    pub parked_at_ms: u64,
    /// The body as it was queued.
    pub body: Bytes,
    pub(crate) route: Route,
}

/// What is needed to put an activity back into its queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Route {
    execution_id: u64,
    activity_id: u64,
    session_id: Option<String>,
    tag: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    queue: Queue,
    instance: String,
    reason: String,
    at_ms: u64,
    body: Bytes,
    route: Route,
}

impl DeadLetter {
    pub(crate) fn of_orchestrator(
        ids: &dyn IdSource,
        instance: &str,
        body: Bytes,
        reason: String,
        now_ms: u64,
    ) -> Self {
        DeadLetter {
            id: ids.new_uuid().to_string(),
            queue: Queue::Orchestrator,
            instance: instance.to_owned(),
            reason,
            parked_at_ms: now_ms,
            body,
            route: Route::default(),
        }
    }

    pub(crate) fn of_worker(
        ids: &dyn IdSource,
        message: &WorkerMessage,
        reason: String,
        now_ms: u64,
    ) -> Self {
        DeadLetter {
            id: ids.new_uuid().to_string(),
            queue: Queue::Worker,
            instance: message.activity.instance.clone(),
            reason,
            parked_at_ms: now_ms,
            body: message.body.clone(),
            route: Route {
                execution_id: message.activity.execution_id,
                activity_id: message.activity.activity_id,
                session_id: message.session_id.clone(),
                tag: message.tag.clone(),
            },
        }
    }

    pub(crate) fn to_write(&self) -> RecordWrite {
        let stored = Stored {
            queue: self.queue,
            instance: self.instance.clone(),
            reason: self.reason.clone(),
            at_ms: self.parked_at_ms,
            body: self.body.clone(),
            route: self.route.clone(),
        };
        RecordWrite::Put {
            kind: DEAD_LETTER_KIND.to_owned(),
            id: self.id.clone(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(DEAD_LETTER_RETENTION),
            body: codec::encode(&stored),
        }
    }

    pub(crate) fn from_record(id: &str, body: &[u8]) -> Result<Self, String> {
        let stored: Stored = codec::decode(body)?;
        Ok(DeadLetter {
            id: id.to_owned(),
            queue: stored.queue,
            instance: stored.instance,
            reason: stored.reason,
            parked_at_ms: stored.at_ms,
            body: stored.body,
            route: stored.route,
        })
    }

    /// The message that puts an activity back into its queue.
    pub(crate) fn worker_message(&self) -> WorkerMessage {
        WorkerMessage {
            activity: ScheduledActivityIdentifier {
                instance: self.instance.clone(),
                execution_id: self.route.execution_id,
                activity_id: self.route.activity_id,
            },
            session_id: self.route.session_id.clone(),
            tag: self.route.tag.clone(),
            visible_at_ms: None,
            body: self.body.clone(),
        }
    }
}
