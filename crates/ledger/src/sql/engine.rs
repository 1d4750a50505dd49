//! Queries from outside: a place, a thread, and pages of tables for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt as _;
use segno::clock::{self, Clock};
use tokio::sync::mpsc;

use super::admission::{Admission, Place};
use super::answer::Answer;
use super::error::SqlError;
use super::limits::{DEFAULT_ROWS, DEFAULT_TIMEOUT, MAX_ROWS, MAX_TIMEOUT, STACK_BYTES};
use super::table::{Scan, TableInfo, Tables};
use super::worker::{Deadline, Job, Order, Page};

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its text.
    pub text: String,
    /// Most rows of the answer, up to [`MAX_ROWS`].
    pub max_rows: usize,
    /// Time that it may take with its wait for a place, up to [`MAX_TIMEOUT`].
    pub timeout: Duration,
}

impl Query {
    /// A query with the default limits.
    pub fn new(text: impl Into<String>) -> Self {
        Query { text: text.into(), max_rows: DEFAULT_ROWS, timeout: DEFAULT_TIMEOUT }
    }
}

/// Runs queries. Cheap to clone; clones share their places.
#[derive(Clone)]
pub struct Engine {
    clock: Arc<dyn Clock>,
    admission: Admission,
}

/// Ends the thread of a query whose caller has gone.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Engine {
    /// An engine with places of its own.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Engine { clock, admission: Admission::default() }
    }

    /// Runs a query of a tenant. It ends when this is dropped.
    ///
    /// # Errors
    /// Those of [`SqlError`].
    pub async fn run(&self, tenant: &str, query: Query, tables: &Tables) -> Result<Answer, SqlError> {
        let timeout = query.timeout.min(MAX_TIMEOUT);
        let timed_out = || SqlError::TimedOut { seconds: timeout.as_secs().max(1) };
        let at_ms = clock::deadline_ms(&*self.clock, timeout);
        let answer = clock::timeout(&*self.clock, timeout, self.admitted(tenant, query, tables, at_ms)).await;
        match answer.ok_or_else(timed_out)? {
            Err(SqlError::TimedOut { .. }) => Err(timed_out()),
            answer => answer,
        }
    }

    async fn admitted(
        &self,
        tenant: &str,
        query: Query,
        tables: &Tables,
        at_ms: u64,
    ) -> Result<Answer, SqlError> {
        let place = self.admission.take(tenant).await?;
        match self.attempt(place, &query, tables, at_ms).await {
            // Perhaps another query took the memory: alone, each query has all of it.
            Err(SqlError::OutOfMemory) => {
                let place = self.admission.take(tenant).await?.alone().await?;
                self.attempt(place, &query, tables, at_ms).await
            }
            answer => answer,
        }
    }

    async fn attempt(
        &self,
        place: Place,
        query: &Query,
        tables: &Tables,
        at_ms: u64,
    ) -> Result<Answer, SqlError> {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let _cancel = Cancel(Arc::clone(&is_cancelled));
        let (orders, mut received) = mpsc::channel(1);
        let job = Job {
            text: query.text.clone(),
            tables: tables.clone(),
            max_rows: query.max_rows.min(MAX_ROWS),
            deadline: Deadline { clock: self.clock.clone(), at_ms, is_cancelled },
            orders,
        };
        let thread = thread::Builder::new().name("segno-sql".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            // Held as long as the thread computes, whether or not its caller waits.
            let _place = place;
            job.run();
        });
        started.map_err(|error| SqlError::Internal(format!("no thread can be started: {error}")))?;
        while let Some(order) = received.recv().await {
            match order {
                Order::Scan { table, scan, pages } => deliver(tables, table, scan, pages).await,
                Order::Done(answer) => return *answer,
            }
        }
        Err(SqlError::Internal("the thread of the query has failed".to_owned()))
    }
}

/// Sends the pages of a table until there are no more or the thread needs no more.
async fn deliver(tables: &Tables, table: &'static TableInfo, scan: Scan, pages: mpsc::Sender<Page>) {
    let Some(table) = tables.get(table) else { return };
    let mut rows = table.scan(scan);
    loop {
        // A thread that has ended closes the channel, also while the table is slow.
        let page = tokio::select! {
            page = rows.next() => page,
            () = pages.closed() => return,
        };
        let Some(page) = page else { return };
        let is_last = page.is_err();
        if pages.send(page).await.is_err() || is_last {
            return;
        }
    }
}
