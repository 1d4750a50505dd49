//! What the store, its exchanger and its listener share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use segno::clock::{Clock, SystemClock, timeout};
use segno::store::{ErrorKind, LockToken, ProviderError};
use tokio::sync::{Notify, oneshot};

use crate::due_waits::DueWaits;
use crate::item::{GiveBack, Item};
use crate::lookups::Lookups;
use crate::migrations::quoted;
use crate::notifications::Outbox;
use crate::options::PostgresOptions;
use crate::reader::Reader;
use crate::ticket::Ticket;
use crate::waiting::{Pending, Waiting};

/// Shared state of a store.
pub(crate) struct Core {
    pub(crate) options: PostgresOptions,
    /// The schema of the options, quoted.
    schema: String,
    pub(crate) reader: Reader,
    pub(crate) outbox: Outbox,
    pub(crate) lookups: Lookups,
    /// Wakes an exchanger that rests.
    pub(crate) wake: Notify,
    /// Calls that wait for due records.
    pub(crate) due_waits: DueWaits,
    pub(crate) counts: Counts,
    waiting: Mutex<Waiting>,
    database_time: Mutex<Option<DatabaseTime>>,
}

/// The time of the database in its last answer.
#[derive(Debug, Clone, Copy)]
struct DatabaseTime {
    now_ms: u64,
    /// Steady local time of the answer.
    at_ns: u64,
}

/// How long a steady local clock stands in for that of the database.
const RECENT_NS: u64 = 10_000_000_000;

/// What the store has done since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) exchanges: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) items: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) notifications: AtomicU64,
    pub(crate) reconnects: AtomicU64,
    pub(crate) repetitions: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
}

/// What a store has done since it was opened, for measurements and diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Calls that commit, fetch and answer watches; each is one round trip.
    pub exchanges: u64,
    /// Exchanges that changed something; each is one transaction that is synced.
    pub commits: u64,
    /// Items that were committed or refused.
    pub items: u64,
    /// Other statements; each is one round trip.
    pub reads: u64,
    /// Notifications that were sent.
    pub notifications: u64,
    /// Connections that were made again.
    pub reconnects: u64,
    /// Exchanges whose answer was lost and that turned out to have been done.
    pub repetitions: u64,
    /// Bytes of bodies that were sent.
    pub bytes_out: u64,
    /// Bytes of bodies that came back.
    pub bytes_in: u64,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Statistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            exchanges: read(&self.exchanges),
            commits: read(&self.commits),
            items: read(&self.items),
            reads: read(&self.reads),
            notifications: read(&self.notifications),
            reconnects: read(&self.reconnects),
            repetitions: read(&self.repetitions),
            bytes_out: read(&self.bytes_out),
            bytes_in: read(&self.bytes_in),
        }
    }
}

impl Core {
    pub(crate) fn new(options: PostgresOptions, reader: Reader, outbox: Outbox) -> Arc<Self> {
        Arc::new(Core {
            schema: quoted(&options.schema),
            options,
            reader,
            outbox,
            lookups: Lookups::default(),
            wake: Notify::new(),
            due_waits: DueWaits::default(),
            counts: Counts::default(),
            waiting: Mutex::default(),
            database_time: Mutex::default(),
        })
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.options.clock.as_ref()
    }

    /// The schema as statements name it: in quotes, because its name may be a word of SQL.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// Who waits. Held only for a moment, never across an await.
    pub(crate) fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the time of the database in an answer.
    pub(crate) fn note_time(&self, now_ms: u64) {
        let at_ns = self.clock().monotonic_ns();
        *self.database_time.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(DatabaseTime { now_ms, at_ns });
    }

    /// The time of the database, as far as an answer of it is recent enough to go on counting from: never ahead of it.
    pub(crate) fn recent_now_ms(&self) -> Option<u64> {
        let noted = (*self.database_time.lock().unwrap_or_else(PoisonError::into_inner))?;
        let passed_ns = self.clock().monotonic_ns().saturating_sub(noted.at_ns);
        (passed_ns < RECENT_NS).then(|| noted.now_ms + passed_ns / 1_000_000)
    }

    /// Anything may have changed: everybody who waits looks.
    pub(crate) fn look_at_everything(&self) {
        let mut waiting = self.waiting();
        waiting.turns.look();
        waiting.work.look();
        waiting.check_all();
        self.wake_exchanger(&waiting);
        drop(waiting);
        self.due_waits.all();
    }

    /// Wakes an exchanger if it would send an exchange. If not, those in flight look again when they are answered.
    pub(crate) fn wake_exchanger(&self, waiting: &Waiting) {
        if waiting.is_worth_an_exchange() {
            self.wake.notify_one();
        }
    }

    /// Commits an item together with everything else that waits, and waits for the outcome, for as
    /// long as the options allow. An item that is not sent by then is withdrawn and changes
    /// nothing.
    pub(crate) async fn commit(&self, item: Item) -> Result<Vec<u64>, ProviderError> {
        let operation = item.operation();
        let (answer, outcome) = oneshot::channel();
        let ticket = Ticket::default();
        {
            let mut waiting = self.waiting();
            if waiting.is_closed {
                return Err(closed(operation).nothing_changed());
            }
            waiting.add(Pending { item, held: None, answer: Some(answer), ticket: ticket.clone() });
            self.wake_exchanger(&waiting);
        }
        let retry_for = self.options.retry_for;
        match timeout(&SystemClock, retry_for, outcome).await {
            Some(answered) => answered.unwrap_or_else(|_| Err(closed(operation))),
            None => {
                let text = format!("the database is away: no answer within {retry_for:?}");
                let error = ProviderError::unavailable(operation, text);
                Err(if ticket.withdraw() { error.nothing_changed() } else { error })
            }
        }
    }

    /// Gives locks back that nobody wants, without waiting for the outcome and without counting the attempt.
    pub(crate) fn give_back(&self, tokens: impl IntoIterator<Item = LockToken>, make: fn(GiveBack) -> Item) {
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return;
        }
        for token in tokens {
            let back = GiveBack { token, delay_ms: 0, ignore_attempt: true };
            waiting.add(Pending { item: make(back), held: None, answer: None, ticket: Ticket::default() });
        }
        self.wake_exchanger(&waiting);
    }
}

/// The error of a call on a store that was closed.
pub(crate) fn closed(operation: &'static str) -> ProviderError {
    ProviderError::new(ErrorKind::Closed, operation, "the store has been closed; open it again")
}
