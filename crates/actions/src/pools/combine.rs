//! Flat combining of admissions: fetches of one pool that come at the same time on a node share one commit.
//!
//! The rate of a pool is one record, which every admission reads and replaces. Sixteen fetchers that each did so by themselves
//! would win once in sixteen tries. So requests wait in a queue for each pool, and the one that has the lock of the pool decides for
//! all that wait: nodes contend with each other, the fetchers of a node do not. A request that is given up with a decision under way
//! leaves what it was granted unused, which is less than the rate, never more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, error::TryRecvError};

use super::admission::Admission;
use crate::functions::FunctionError;

/// Most pools without a request that are remembered.
const MAX_IDLE_DESKS: usize = 1_024;

/// What is decided for a request.
type Answer = Result<Admission, FunctionError>;

/// A request of another caller, or one's own, that waits for a decision.
pub(super) struct Waiting {
    /// So many calls are wanted.
    pub(super) wanted: usize,
    answer: oneshot::Sender<Answer>,
}

impl Waiting {
    /// Answers the request. It may have been given up.
    pub(super) fn answer(self, answer: Answer) {
        self.answer.send(answer).ok();
    }
}

/// A request, as its caller has it.
pub(super) struct Request(oneshot::Receiver<Answer>);

/// How a request stands.
pub(super) enum Standing {
    /// It was decided.
    Answered(Answer),
    /// It waits.
    Open,
    /// The caller that had it to decide has given up.
    Lost,
}

impl Request {
    pub(super) fn standing(&mut self) -> Standing {
        match self.0.try_recv() {
            Ok(answer) => Standing::Answered(answer),
            Err(TryRecvError::Empty) => Standing::Open,
            Err(TryRecvError::Closed) => Standing::Lost,
        }
    }
}

/// The requests of a pool.
#[derive(Default)]
pub(super) struct Desk {
    waiting: Mutex<Vec<Waiting>>,
    deciding: tokio::sync::Mutex<()>,
}

impl Desk {
    /// Adds a request.
    pub(super) fn request(&self, wanted: usize) -> Request {
        let (answer, answered) = oneshot::channel();
        self.waiting().push(Waiting { wanted, answer });
        Request(answered)
    }

    /// Waits for the right to decide, which one caller has at a time.
    pub(super) async fn lock(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.deciding.lock().await
    }

    /// All requests that wait and were not given up, for the caller with the lock to answer.
    pub(super) fn take(&self) -> Vec<Waiting> {
        let mut waiting = std::mem::take(&mut *self.waiting());
        waiting.retain(|request| !request.answer.is_closed());
        waiting
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests of all pools, by record id. Shared by clones.
#[derive(Clone, Default)]
pub(super) struct Combiner(Arc<Mutex<HashMap<String, Arc<Desk>>>>);

impl Combiner {
    /// The requests of a pool.
    pub(super) fn desk(&self, id: &str) -> Arc<Desk> {
        let mut desks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if desks.len() >= MAX_IDLE_DESKS {
            desks.retain(|_, desk| Arc::strong_count(desk) > 1);
        }
        Arc::clone(desks.entry(id.to_owned()).or_default())
    }
}
