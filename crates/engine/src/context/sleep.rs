//! Durable timers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::clock::duration_ms;
use crate::failure::Failure;
use crate::replay::{Request, TimerAt};

use super::Context;
use super::operation::Operation;

/// A durable timer. Dropping it takes it back.
#[must_use = "a timer is set when it is awaited"]
pub struct Sleep {
    operation: Operation,
}

impl Sleep {
    pub(super) fn after(ctx: &Context, duration: Duration) -> Self {
        let at = TimerAt::After(duration_ms(duration));
        Sleep { operation: Operation::new(ctx, Ok(Request::Timer { at })) }
    }

    pub(super) fn until(ctx: &Context, at_ms: u64) -> Self {
        Sleep { operation: Operation::new(ctx, Ok(Request::Timer { at: TimerAt::Time(at_ms) })) }
    }
}

impl Future for Sleep {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.operation.poll_payload(cx).map(|result| result.map(|_| ()))
    }
}
