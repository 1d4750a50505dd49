//! Durable timers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::clock::duration_ms;
use crate::failure::Failure;
use crate::limits::MAX_TIMER;
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
        let request = if duration > MAX_TIMER {
            Err(Failure::configuration(
                "timer-too-long",
                format!(
                    "a timer of {} days is too long, the limit is ten years",
                    duration.as_secs() / 86_400
                ),
            ))
        } else {
            Ok(Request::Timer { at: TimerAt::After(duration_ms(duration)) })
        };
        Sleep { operation: Operation::new(ctx, request) }
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
