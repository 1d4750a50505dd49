//! Queries from outside: a place, a thread, and pages of tables for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt as _;
use segno::clock::{self, Clock};
use tokio::sync::{mpsc, oneshot};

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
        self.0.store(true, Relaxed);
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
        self.run_into(tenant, query, tables, Ok).await
    }

    /// Runs a query of a tenant, and writes its answer in a form of the caller's on the thread of the query, in its
    /// place and its time. It ends when this is dropped.
    ///
    /// # Errors
    /// Those of [`SqlError`].
    pub async fn run_into<T: Send + 'static>(
        &self,
        tenant: &str,
        query: Query,
        tables: &Tables,
        write: impl Fn(Answer) -> Result<T, SqlError> + Clone + Send + 'static,
    ) -> Result<T, SqlError> {
        let timeout = query.timeout.min(MAX_TIMEOUT);
        let seconds = timeout.as_secs().max(1);
        let at_ms = clock::deadline_ms(&*self.clock, timeout);
        let has_begun = AtomicBool::new(false);
        let timed_out = || match has_begun.load(Relaxed) {
            true => SqlError::TimedOut { seconds },
            false => SqlError::NotBegun { seconds },
        };
        let running = async {
            let place = self.admission.take(tenant).await?;
            has_begun.store(true, Relaxed);
            match self.attempt(place, &query, tables, at_ms, write.clone()).await {
                // Perhaps another query took the memory: alone, each query has all of it.
                Err(SqlError::OutOfMemory) => {
                    let place = self.admission.take(tenant).await?.alone().await?;
                    self.attempt(place, &query, tables, at_ms, write).await
                }
                answer => answer,
            }
        };
        match clock::timeout(&*self.clock, timeout, running).await.ok_or_else(timed_out)? {
            Err(SqlError::TimedOut { .. }) => Err(timed_out()),
            answer => answer,
        }
    }

    async fn attempt<T: Send + 'static>(
        &self,
        place: Place,
        query: &Query,
        tables: &Tables,
        at_ms: u64,
        write: impl Fn(Answer) -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, SqlError> {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let _cancel = Cancel(Arc::clone(&is_cancelled));
        let (orders, mut received) = mpsc::channel(1);
        let (done, answer) = oneshot::channel();
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
            // A caller that has gone needs no answer.
            let _ = done.send(job.run(write));
        });
        started.map_err(|error| SqlError::Internal(format!("no thread can be started: {error}")))?;
        while let Some(Order { table, scan, pages }) = received.recv().await {
            deliver(tables, table, scan, pages).await;
        }
        let failed = |_| SqlError::Internal("the thread of the query has failed".to_owned());
        answer.await.map_err(failed)?
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
