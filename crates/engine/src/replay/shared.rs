//! What the `Context` of running code and the engine share.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::epilogue::{self, InstanceEnd, MakeEpilogue, Settler};
use crate::error::Error;
use crate::event::{CarriedMessage, ParentLink, Started};
use crate::failure::Failure;
use crate::payload::Payload;

use super::journal::Journal;

/// The running code of an orchestration.
pub(super) type OrchestrationFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Makes the future of an orchestration from what it shares with the engine and its input.
pub(crate) type OrchestrationHandler = Arc<dyn Fn(Arc<Shared>, Payload) -> OrchestrationFuture + Send + Sync>;

/// The patch that an execution records when it first refuses a payload.
///
/// Histories from before there was a rule about payloads contain commands that break it. Refusing
/// them now would make the replay diverge from the record. So a refusal is recorded as a patch: a
/// history without it was written without the rule, and is replayed without it.
const PAYLOAD_RULE: &str = "segno.payload-rule";

/// Identifies an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecutionId {
    pub(crate) instance: Arc<str>,
    pub(crate) execution_id: u64,
}

impl ExecutionId {
    /// The link by which a child that this event scheduled reports its end.
    pub(super) fn parent_link(&self, event_id: u64) -> ParentLink {
        ParentLink { instance: self.instance.to_string(), execution_id: self.execution_id, event_id }
    }
}

/// What the code's `Context` and the engine share.
pub(crate) struct Shared {
    pub(crate) id: ExecutionId,
    pub(crate) started: Arc<Started>,
    journal: Mutex<Journal>,
    /// Makes the records that the code adds to the commit of its end.
    epilogue: Mutex<Option<MakeEpilogue>>,
}

impl Shared {
    /// The state at the start of an execution, with the messages that were carried over.
    pub(super) fn new(id: ExecutionId, started: Arc<Started>) -> Self {
        let mut journal = Journal::new(&id.instance, id.execution_id, started.seed);
        journal.custom_status = started.custom_status.clone();
        journal.labels = started.labels.clone();
        for CarriedMessage { channel, name, data } in &started.carried {
            journal.receive(*channel, name, data.clone());
        }
        Shared { id, started, journal: Mutex::new(journal), epilogue: Mutex::default() }
    }

    /// The journal. A panic of user code while it holds the lock leaves plain data behind, so
    /// poisoning is ignored.
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own_epilogue(&self) -> MutexGuard<'_, Option<MakeEpilogue>> {
        self.epilogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_epilogue(&self, make: MakeEpilogue) {
        *self.own_epilogue() = Some(make);
    }

    /// Drops the epilogue of the code. It may contain a context, and so a reference to this.
    pub(super) fn clear_epilogue(&self) {
        self.own_epilogue().take();
    }

    /// Makes the records that belong to the end: those of the code, those that the start has asked
    /// for, or both.
    pub(super) fn epilogue(&self, settler: Option<&Settler>) -> Option<MakeEpilogue> {
        let own = self.own_epilogue().clone();
        let settling = settler.zip(self.started.settle.clone()).map(|(settler, settle)| -> MakeEpilogue {
            let (settler, instance) = (settler.clone(), self.id.instance.clone());
            Arc::new(move |outcome| {
                settler(InstanceEnd { instance: instance.clone(), settle: settle.clone(), outcome })
            })
        });
        match (own, settling) {
            (Some(own), Some(settling)) => Some(epilogue::both(own, settling)),
            (own, settling) => own.or(settling),
        }
    }

    /// Encodes a value of the code, so that a replay decides as the first run did.
    pub(crate) fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Payload, Error> {
        match Payload::write(value)? {
            (_, Some(broken)) if self.journal().patched(PAYLOAD_RULE) => Err(broken.into()),
            (payload, _) => Ok(payload),
        }
    }
}
