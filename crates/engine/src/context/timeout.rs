//! A time limit on a future, kept by a durable timer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::failure::Failure;

use super::combine::{Either, Race, race};
use super::{Context, Sleep};

/// A future with a time limit; see [`Context::timeout`].
#[must_use = "futures do nothing unless awaited"]
pub struct Timeout<F> {
    race: Race<F, Sleep>,
}

impl<F: Future> Timeout<F> {
    pub(super) fn new(ctx: &Context, limit: Duration, future: F) -> Self {
        // A cancellation reaches the future, which may clean up. A timer that the same cancellation
        // ended would cut that off.
        Timeout { race: race(future, Sleep::after(&ctx.shielded(), limit)) }
    }
}

impl<T, F: Future<Output = Result<T, Failure>>> Future for Timeout<F> {
    type Output = Result<Option<T>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.race).poll(cx).map(|first| match first {
            Either::Left(result) => result.map(Some),
            Either::Right(fired) => fired.map(|()| None),
        })
    }
}
