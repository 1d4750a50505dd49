//! What a process wants committed: one item per call of the store's interface.

use std::sync::Arc;

use segno::store::{
    AckOrchestrationItem, AckWorkItem, ErrorKind, LockToken, OrchestratorMessage, ProviderError, RecordBatch,
    RecordWrite, StartGuard, StoredEvent, TurnLock, WorkerMessage,
};

/// One thing to commit, all or nothing.
#[derive(Debug)]
pub(crate) enum Item {
    /// A turn.
    Turn(Arc<AckOrchestrationItem>),
    /// The end of an activity.
    Work(AckWorkItem),
    /// A message for the orchestrator queue, shown after a delay if there is one.
    Message { message: OrchestratorMessage, delay_ms: Option<i64> },
    /// An activity for the worker queue.
    Activity(WorkerMessage),
    /// Changes of records.
    Records(RecordBatch),
    /// A turn that is given back.
    GiveBackTurn(GiveBack),
    /// An activity that is given back.
    GiveBackActivity(GiveBack),
    /// A turn whose lock is extended.
    RenewTurn { token: LockToken, for_ms: i64 },
    /// An activity whose lock is extended.
    RenewActivity { token: LockToken, for_ms: i64 },
    /// Events outside a turn.
    Append { instance: String, execution_id: u64, events: Vec<StoredEvent> },
}

/// What is given back, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GiveBack {
    pub(crate) token: LockToken,
    pub(crate) delay_ms: i64,
    pub(crate) ignore_attempt: bool,
}

/// What two items have in common when their order matters: they never are in two calls at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key<'a> {
    Token(u64),
    Record(&'a str, &'a str),
    Instance(&'a str),
}

impl Key<'_> {
    /// Whether it must not occur twice in one call either, because the items of a call are judged side by side.
    pub(crate) fn is_exclusive(&self) -> bool {
        !matches!(self, Key::Instance(_))
    }
}

impl Item {
    /// The method of the store that asked for it.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Item::Turn(_) => "ack_orchestration_item",
            Item::Work(_) => "ack_work_item",
            Item::Message { .. } => "enqueue_for_orchestrator",
            Item::Activity(_) => "enqueue_for_worker",
            Item::Records(_) => "commit_records",
            Item::GiveBackTurn(_) => "abandon_orchestration_item",
            Item::GiveBackActivity(_) => "abandon_work_item",
            Item::RenewTurn { .. } => "renew_orchestration_item_lock",
            Item::RenewActivity { .. } => "renew_work_item_lock",
            Item::Append { .. } => "append_with_execution",
        }
    }

    /// The number of its kind in the database's function.
    pub(crate) fn kind(&self) -> i16 {
        match self {
            Item::Turn(turn) if matches!(turn.lock, TurnLock::Activity { .. }) => 11,
            Item::Turn(_) => 1,
            Item::Work(_) => 2,
            Item::Message { .. } => 3,
            Item::Activity(_) => 4,
            Item::Records(_) => 5,
            Item::GiveBackTurn(_) => 6,
            Item::GiveBackActivity(_) => 7,
            Item::RenewTurn { .. } => 8,
            Item::RenewActivity { .. } => 9,
            Item::Append { .. } => 10,
        }
    }

    /// The lock that it relies on.
    pub(crate) fn token(&self) -> Option<LockToken> {
        match self {
            Item::Turn(turn) => Some(turn.lock_token),
            Item::Work(ack) => Some(ack.lock_token),
            Item::GiveBackTurn(back) | Item::GiveBackActivity(back) => Some(back.token),
            Item::RenewTurn { token, .. } | Item::RenewActivity { token, .. } => Some(*token),
            Item::Message { .. } | Item::Activity(_) | Item::Records(_) | Item::Append { .. } => None,
        }
    }

    /// Records that it writes.
    pub(crate) fn records(&self) -> &[RecordWrite] {
        match self {
            Item::Turn(turn) => &turn.records,
            Item::Work(ack) => &ack.records,
            Item::Records(batch) => &batch.writes,
            _ => &[],
        }
    }

    /// Messages that it enqueues.
    pub(crate) fn messages(&self) -> &[OrchestratorMessage] {
        match self {
            Item::Turn(turn) => &turn.orchestrator_items,
            Item::Work(ack) => ack.completion.as_slice(),
            Item::Message { message, .. } => std::slice::from_ref(message),
            Item::Records(batch) => &batch.orchestrator_items,
            _ => &[],
        }
    }

    /// Activities that it enqueues.
    pub(crate) fn activities(&self) -> &[WorkerMessage] {
        match self {
            Item::Turn(turn) => &turn.worker_items,
            Item::Activity(message) => std::slice::from_ref(message),
            Item::Records(batch) => &batch.worker_items,
            _ => &[],
        }
    }

    /// What it has in common with items whose order to it matters.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        let token = self.token().map(|token| Key::Token(token.0));
        let records = self.records().iter().map(|write| {
            let (kind, id) = write.key();
            Key::Record(kind, id)
        });
        let appended = match self {
            Item::Append { instance, .. } => Some(Key::Instance(instance)),
            _ => None,
        };
        let receivers = self.messages().iter().map(|message| Key::Instance(&message.instance));
        token.into_iter().chain(records).chain(appended).chain(receivers)
    }

    /// How many turns there may be to fetch because of it: of those that get messages, and of the one whose lock ends.
    pub(crate) fn turns_shown(&self) -> usize {
        self.messages().len() + usize::from(matches!(self, Item::Turn(_) | Item::GiveBackTurn(_)))
    }

    /// How many activities there may be to fetch because of it.
    pub(crate) fn activities_shown(&self) -> usize {
        self.activities().len() + usize::from(matches!(self, Item::GiveBackActivity(_)))
    }

    /// Whether it goes alone: appended events may meet those of any other item.
    pub(crate) fn goes_alone(&self) -> bool {
        matches!(self, Item::Append { .. })
    }

    /// About how many bytes it takes to send.
    pub(crate) fn size(&self) -> usize {
        let events = match self {
            Item::Turn(turn) => &turn.history_delta,
            Item::Append { events, .. } => events,
            _ => return self.small_size(),
        };
        self.small_size() + events.iter().map(|event| event.data.len()).sum::<usize>()
    }

    fn small_size(&self) -> usize {
        let messages: usize = self.messages().iter().map(|message| message.body.len()).sum();
        let activities: usize = self.activities().iter().map(|activity| activity.body.len()).sum();
        let records: usize = self
            .records()
            .iter()
            .map(|write| match write {
                RecordWrite::Put { body, .. } => body.len(),
                RecordWrite::Delete { .. } => 0,
            })
            .sum();
        messages + activities + records
    }

    /// Whether turns may be there to fetch because of it.
    pub(crate) fn shows_turns(&self) -> bool {
        self.turns_shown() > 0
    }

    /// Whether activities may be there to fetch because of it.
    pub(crate) fn shows_activities(&self) -> bool {
        self.activities_shown() > 0
    }

    /// Kind and id of records that may be due earlier because of it.
    pub(crate) fn due_records(&self) -> impl Iterator<Item = (&str, &str)> {
        let timed = |write: &&RecordWrite| matches!(write, RecordWrite::Put { due_at_ms: Some(_), .. });
        self.records().iter().filter(timed).map(RecordWrite::key)
    }

    /// The error for what the database's function says came of it.
    pub(crate) fn refusal(&self, outcome: i64) -> ProviderError {
        let operation = self.operation();
        let (kind, text) = match outcome {
            1 => return ProviderError::lock_lost(operation),
            2 => {
                (ErrorKind::Conflict, "an event of this turn comes too late; fetch the item again".to_owned())
            }
            3 => {
                let keys: Vec<String> = self
                    .records()
                    .iter()
                    .map(|write| format!("{} {}", write.key().0, write.key().1))
                    .collect();
                let text = format!("a record is not as expected ({}); read it again", keys.join(", "));
                (ErrorKind::Conflict, text)
            }
            4 => (
                ErrorKind::Conflict,
                format!("{} exists already or is about to start; use another id", self.target()),
            ),
            5 => (
                ErrorKind::NotFound,
                format!("there is no instance {}, and no start for it waits", self.target()),
            ),
            other => (ErrorKind::Internal, format!("the database answered {other}; please report this")),
        };
        ProviderError::new(kind, operation, text)
    }

    fn target(&self) -> &str {
        self.messages().first().map_or("", |message| message.instance.as_str())
    }
}

/// The number of a guard in the database's function.
pub(crate) fn guard_code(guard: StartGuard) -> i16 {
    match guard {
        StartGuard::None => 0,
        StartGuard::IfAbsent => 1,
        StartGuard::IfPresent => 2,
    }
}
