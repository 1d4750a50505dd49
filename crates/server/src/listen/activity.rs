//! What a connection is doing, and since when it keeps the server waiting: the time limits of a
//! connection.
//!
//! | the peer | ends the connection after |
//! |---|---|
//! | has no request under way: sends nothing, sends a head slowly, is idle between requests | the header time-out |
//! | sends a body slowly | the time for bodies, which the reader of the body counts (`extract`) |
//! | does not read: a write, or the next part of an answer, makes no progress | the write time-out |
//!
//! The first rule covers the first byte, the detection of the protocol, the head and idle HTTP/1
//! and HTTP/2 connections alike. A stream that is silent because nothing happens is a request under
//! way with nothing to write, so no rule ends it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use segno::clock::{Clock, duration_ms};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// No write is blocked.
const NEVER: u64 = 0;

/// Between the notice to an idle peer and the end of its connection.
const NOTICE: Duration = Duration::from_secs(1);

/// How long a peer may keep the server waiting.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Without a request under way.
    pub quiet: Duration,
    /// For the peer to read.
    pub write: Duration,
}

/// Why a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    /// There was no request for too long.
    Quiet,
    /// The peer does not read.
    NotReading,
}

/// What a connection is doing. Times are those of the injected clock.
pub struct Activity {
    clock: Arc<dyn Clock>,
    /// Requests from their head to the end of their answer.
    requests: AtomicUsize,
    has_served: AtomicBool,
    quiet_since_ms: AtomicU64,
    blocked_since_ms: AtomicU64,
    /// Answers of which a part was taken over for sending, and nothing asked for since.
    handed_over: AtomicUsize,
    progress_ms: AtomicU64,
    /// Requests whose bodies are awaited.
    arriving: AtomicUsize,
    arriving_since_ms: AtomicU64,
    /// What has come of those bodies, in bytes.
    arriving_bytes: AtomicUsize,
    /// Bytes of large answers that the peer has not read.
    unread_bytes: AtomicUsize,
    unread_since_ms: AtomicU64,
    /// Whether nothing was left to read since the last request.
    has_caught_up: AtomicBool,
    /// Whether a request was answered before its body had come.
    has_unread_body: AtomicBool,
    /// What the server waited for when the connection had to give way, as [`WaitsFor::number`].
    displaced: AtomicU8,
}

/// What the server waits for on a connection, in the order in which connections give way to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitsFor {
    /// A request.
    Request,
    /// The peer to read its answers.
    Reader,
    /// The bodies of all its requests.
    Bodies,
}

impl WaitsFor {
    const ALL: [WaitsFor; 3] = [WaitsFor::Request, WaitsFor::Reader, WaitsFor::Bodies];

    /// Its number, from 1.
    fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The peer does not read, so there is nothing to wait for.
    AtOnce,
    /// All requests that were read are answered.
    InOrder,
    /// It gives way to another one while no request is under way. One may be on its way.
    WithoutRequest,
    /// It gives way to another one before its request has come whole.
    WithoutAnswer,
}

impl Activity {
    /// A connection that has just been accepted.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let now_ms = clock.now_ms();
        Arc::new(Activity {
            clock,
            requests: AtomicUsize::new(0),
            has_served: AtomicBool::new(false),
            quiet_since_ms: AtomicU64::new(now_ms),
            blocked_since_ms: AtomicU64::new(NEVER),
            handed_over: AtomicUsize::new(0),
            progress_ms: AtomicU64::new(now_ms),
            arriving: AtomicUsize::new(0),
            arriving_since_ms: AtomicU64::new(now_ms),
            arriving_bytes: AtomicUsize::new(0),
            unread_bytes: AtomicUsize::new(0),
            unread_since_ms: AtomicU64::new(now_ms),
            has_caught_up: AtomicBool::new(true),
            has_unread_body: AtomicBool::new(false),
            displaced: AtomicU8::new(0),
        })
    }

    /// Since when there is no request under way; `None` while there is one.
    pub fn quiet_since_ms(&self) -> Option<u64> {
        match self.requests.load(Ordering::Acquire) {
            0 => Some(self.quiet_since_ms.load(Ordering::Acquire)),
            _ => None,
        }
    }

    /// What the server waits for, and since when; `None` while it works on a request.
    pub fn waits_since_ms(&self) -> Option<(WaitsFor, u64)> {
        let requests = self.requests.load(Ordering::Acquire);
        if requests == 0 {
            return Some((WaitsFor::Request, self.quiet_since_ms.load(Ordering::Acquire)));
        }
        let arriving = self.arriving.load(Ordering::Acquire);
        if arriving >= requests {
            return Some((WaitsFor::Bodies, self.arriving_since_ms.load(Ordering::Acquire)));
        }
        let (handed_over, blocked_ms) =
            (self.handed_over.load(Ordering::Acquire), self.blocked_since_ms.load(Ordering::Acquire));
        let waits = arriving + handed_over >= requests && blocked_ms != NEVER;
        waits.then_some((WaitsFor::Reader, blocked_ms))
    }

    /// Since when there are answers that the peer has not read; `None` when there are none that count.
    pub fn unread_since_ms(&self) -> Option<u64> {
        let has_some = self.unread_bytes.load(Ordering::Acquire) > 0;
        has_some.then(|| self.unread_since_ms.load(Ordering::Acquire))
    }

    /// The connection has to give way to another one.
    pub fn displace(&self, waits_for: WaitsFor) {
        self.displaced.store(waits_for.number(), Ordering::Release);
    }

    /// How the connection ends, when it does.
    pub fn ending(&self) -> Ending {
        let number = self.displaced.load(Ordering::Acquire);
        let displaced = WaitsFor::ALL.into_iter().find(|waits_for| waits_for.number() == number);
        match displaced {
            Some(WaitsFor::Reader) => Ending::AtOnce,
            Some(WaitsFor::Request) => Ending::WithoutRequest,
            Some(WaitsFor::Bodies) => Ending::WithoutAnswer,
            None if self.blocked_since_ms.load(Ordering::Acquire) != NEVER => Ending::AtOnce,
            None => Ending::InOrder,
        }
    }

    /// The clock of the connection.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// A request was answered before its body had come.
    pub fn leave_body(&self) {
        self.has_unread_body.store(true, Ordering::Release);
    }

    /// Whether a request was answered before its body had come.
    pub fn has_unread_body(&self) -> bool {
        self.has_unread_body.load(Ordering::Acquire)
    }

    /// An answer is to be read by the peer.
    pub fn add_unread(&self, bytes: usize) {
        if self.unread_bytes.fetch_add(bytes, Ordering::AcqRel) == 0 {
            self.unread_since_ms.store(self.clock.now_ms(), Ordering::Release);
        }
    }

    /// An answer was read; returns how much of it still counted.
    pub fn remove_unread(&self, bytes: usize) -> usize {
        remove(&self.unread_bytes, bytes)
    }

    /// No answer counts any more; returns how many bytes did.
    pub fn forget_unread(&self) -> usize {
        self.unread_bytes.swap(0, Ordering::AcqRel)
    }

    /// A body is awaited.
    pub fn begin_arrival(&self) {
        if self.arriving.fetch_add(1, Ordering::AcqRel) == 0 {
            self.arriving_since_ms.store(self.clock.now_ms(), Ordering::Release);
        }
    }

    /// A body that was awaited is there, or will not come.
    pub fn end_arrival(&self) {
        self.arriving.fetch_sub(1, Ordering::AcqRel);
    }

    /// A part of a body has come.
    pub fn add_arriving(&self, bytes: usize) {
        self.arriving_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The parts of a body are no longer kept; returns how much of that still counted.
    pub fn remove_arriving(&self, bytes: usize) -> usize {
        remove(&self.arriving_bytes, bytes)
    }

    /// Nothing of what has come counts any more; returns how much did.
    pub fn forget_arriving(&self) -> usize {
        self.arriving_bytes.swap(0, Ordering::AcqRel)
    }

    /// Gives an idle peer a moment to take note that the connection ends; `false` when it never had
    /// a request.
    pub fn give_notice(&self, patience: Patience) -> bool {
        if !self.has_served.load(Ordering::Acquire) {
            return false;
        }
        let since_ms = self.clock.now_ms().saturating_sub(duration_ms(patience.quiet.saturating_sub(NOTICE)));
        self.quiet_since_ms.store(since_ms, Ordering::Release);
        true
    }

    /// Whether the next request was there before the answer to the last one was (pipelining).
    pub fn is_pipelined(&self) -> bool {
        !self.has_caught_up.swap(false, Ordering::AcqRel)
    }

    /// A request has arrived; it is under way until the guard is dropped.
    pub fn begin(self: &Arc<Self>) -> UnderWay {
        self.has_served.store(true, Ordering::Release);
        self.requests.fetch_add(1, Ordering::AcqRel);
        UnderWay { activity: Arc::clone(self), handed_over: false }
    }

    /// Resolves when the peer has kept the server waiting for too long.
    pub async fn overdue(&self, patience: Patience) -> Overdue {
        let pause_ms = duration_ms(patience.quiet.min(patience.write));
        loop {
            let now_ms = self.clock.now_ms();
            let (at_ms, why) = match self.deadline(patience) {
                Some(deadline) => deadline,
                // Nothing is waited for. What begins later is not due before the next look.
                None => (now_ms.saturating_add(pause_ms), Overdue::Quiet),
            };
            if at_ms <= now_ms {
                return why;
            }
            self.clock.sleep_until_ms(at_ms.min(now_ms.saturating_add(pause_ms))).await;
        }
    }

    fn deadline(&self, patience: Patience) -> Option<(u64, Overdue)> {
        let not_reading = |since_ms: u64| (since_ms + duration_ms(patience.write), Overdue::NotReading);
        let blocked_ms = Some(self.blocked_since_ms.load(Ordering::Acquire)).filter(|ms| *ms != NEVER);
        let untaken_ms =
            (self.handed_over.load(Ordering::Acquire) > 0).then(|| self.progress_ms.load(Ordering::Acquire));
        let quiet = self.quiet_since_ms().map(|ms| (ms + duration_ms(patience.quiet), Overdue::Quiet));
        [blocked_ms.map(not_reading), untaken_ms.map(not_reading), quiet]
            .into_iter()
            .flatten()
            .min_by_key(|due| due.0)
    }

    fn blocked(&self) {
        let now_ms = self.clock.now_ms().max(NEVER + 1);
        // Only the first time counts.
        let _ = self.blocked_since_ms.compare_exchange(NEVER, now_ms, Ordering::AcqRel, Ordering::Acquire);
    }

    fn progressed(&self) {
        if self.blocked_since_ms.swap(NEVER, Ordering::AcqRel) != NEVER {
            self.progress_ms.store(self.clock.now_ms(), Ordering::Release);
        }
    }
}

/// Takes bytes off a count, which may have been forgotten; returns how many it still had.
fn remove(count: &AtomicUsize, bytes: usize) -> usize {
    let counted = count
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |counted| Some(counted.saturating_sub(bytes)));
    counted.unwrap_or_else(|counted| counted).min(bytes)
}

/// A request under way.
pub struct UnderWay {
    activity: Arc<Activity>,
    handed_over: bool,
}

impl UnderWay {
    /// The connection.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    pub(super) fn set_handed_over(&mut self, now: bool) {
        if now {
            self.activity.progress_ms.store(self.activity.clock.now_ms(), Ordering::Release);
        }
        match (std::mem::replace(&mut self.handed_over, now), now) {
            (false, true) => drop(self.activity.handed_over.fetch_add(1, Ordering::AcqRel)),
            (true, false) => drop(self.activity.handed_over.fetch_sub(1, Ordering::AcqRel)),
            _ => {}
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.set_handed_over(false);
        self.activity.quiet_since_ms.store(self.activity.clock.now_ms(), Ordering::Release);
        self.activity.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A stream whose writes are watched.
pub struct WatchedStream<S> {
    inner: S,
    activity: Arc<Activity>,
}

impl<S> WatchedStream<S> {
    /// Watches the writes to a stream.
    pub fn new(inner: S, activity: Arc<Activity>) -> Self {
        WatchedStream { inner, activity }
    }

    fn watched<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &polled {
            Poll::Pending => self.activity.blocked(),
            Poll::Ready(_) => self.activity.progressed(),
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if polled.is_pending() {
            self.activity.has_caught_up.store(true, Ordering::Release);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.watched(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.watched(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Flushing a socket is always ready, which is no progress of a write that is blocked.
        match Pin::new(&mut self.inner).poll_flush(context) {
            Poll::Pending => {
                self.activity.blocked();
                Poll::Pending
            }
            ready => ready,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Runs a future unless the time is over first.
pub async fn within<T>(
    activity: &Activity,
    patience: Patience,
    work: impl Future<Output = T>,
) -> Result<T, Overdue> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        overdue = activity.overdue(patience) => Err(overdue),
    }
}
