//! Waiting for the first of several, or for all: deterministic, and losers are cancelled by being dropped.
//!
//! The combinators of the `futures` crate work too: durable futures use wakers properly, and the engine wakes them in
//! recorded order. `tokio::select!` without `biased` does not: it polls in random order.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

/// One of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first.
    Left(A),
    /// The second.
    Right(B),
}

/// Waits for the first of two; the loser is dropped and so cancelled. When both are ready the left one wins.
pub fn race<A: Future, B: Future>(left: A, right: B) -> Race<A, B> {
    Race { futures: Some((Box::pin(left), Box::pin(right))) }
}

/// The future of [`race`].
#[must_use = "futures do nothing unless awaited"]
pub struct Race<A, B> {
    futures: Option<Racers<A, B>>,
}

type Racers<A, B> = (Pin<Box<A>>, Pin<Box<B>>);

impl<A: Future, B: Future> Future for Race<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Some((left, right)) = &mut self.futures else { return Poll::Pending };
        let output = match left.as_mut().poll(cx) {
            Poll::Ready(output) => Either::Left(output),
            Poll::Pending => match right.as_mut().poll(cx) {
                Poll::Ready(output) => Either::Right(output),
                Poll::Pending => return Poll::Pending,
            },
        };
        self.futures = None;
        Poll::Ready(output)
    }
}

/// Waits for the first of many and gives its place and output; the others are dropped and so cancelled. When several are
/// ready the earliest in the list wins. An empty list never ends.
pub fn race_all<F: Future>(futures: impl IntoIterator<Item = F>) -> RaceAll<F> {
    RaceAll { futures: futures.into_iter().map(Box::pin).collect() }
}

/// The future of [`race_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct RaceAll<F> {
    futures: Vec<Pin<Box<F>>>,
}

impl<F: Future> Future for RaceAll<F> {
    type Output = (usize, F::Output);

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let ready =
            self.futures.iter_mut().enumerate().find_map(|(at, future)| match future.as_mut().poll(cx) {
                Poll::Ready(output) => Some((at, output)),
                Poll::Pending => None,
            });
        match ready {
            Some(winner) => {
                self.futures.clear();
                Poll::Ready(winner)
            }
            None => Poll::Pending,
        }
    }
}

/// Waits for the first of several futures and runs its arm; the losers are cancelled before the arm runs.
///
/// When several are ready, the first in the list wins, so the outcome is the same on every replay.
///
/// ```
/// # use segno::{Context, Failure, Signal, race};
/// # const APPROVED: Signal<String> = Signal::new("approved");
/// # const REJECTED: Signal<String> = Signal::new("rejected");
/// async fn decision(ctx: Context, _: ()) -> Result<String, Failure> {
///     race! {
///         by = ctx.signal(APPROVED) => Ok(format!("approved by {}", by?)),
///         by = ctx.signal(REJECTED) => Ok(format!("rejected by {}", by?)),
///     }
/// }
/// ```
///
/// For a time limit, use [`Context::timeout`](crate::Context::timeout): an arm of a race that ignores
/// the result of a timer takes a cancellation for a time-out.
#[macro_export]
macro_rules! race {
    ($($pattern:pat = $future:expr => $body:expr),+ $(,)?) => {{
        let winner = $crate::race!(@future $($future,)+).await;
        $crate::race!(@arms winner, $($pattern => $body,)+)
    }};
    (@future $future:expr,) => { $future };
    (@future $future:expr, $($rest:expr,)+) => { $crate::context::race($future, $crate::race!(@future $($rest,)+)) };
    (@arms $winner:expr, $pattern:pat => $body:expr,) => {
        match $winner { $pattern => $body }
    };
    (@arms $winner:expr, $pattern:pat => $body:expr, $($rest:tt)+) => {
        match $winner {
            $crate::context::Either::Left($pattern) => $body,
            $crate::context::Either::Right(winner) => $crate::race!(@arms winner, $($rest)+),
        }
    };
}
