//! Inline steps.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, from_engine_error};
use crate::names;
use crate::payload::Payload;
use crate::replay::{Request, StepFuture};
use crate::retry::Retry;

use super::Context;
use super::operation::Operation;

type MakeStep = Box<dyn Fn() -> StepFuture + Send>;

/// An inline step: set options, then await. Dropping it before it has run takes it back.
#[must_use = "a step runs when its call is awaited"]
pub struct RunCall<T> {
    state: State<T>,
}

enum State<T> {
    Building { ctx: Context, name: String, make: MakeStep, retry: Retry },
    Running(Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>),
    Done,
}

impl<T> RunCall<T>
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    pub(super) fn new<F, Fut>(ctx: Context, name: String, step: F) -> Self
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        // The closure is called when the step runs, not when it is requested: a replay must not call it.
        let step = Arc::new(Mutex::new(step));
        let make: MakeStep = Box::new(move || {
            let step = step.clone();
            Box::pin(async move {
                let work = (step.lock().unwrap_or_else(PoisonError::into_inner))();
                let value = work.await?;
                Payload::encode(&value).map_err(|error| from_engine_error(&error))
            })
        });
        RunCall { state: State::Building { ctx, name, make, retry: Retry::never() } }
    }

    /// Tries this often in all, with the default pauses. The pauses are durable timers.
    pub fn attempts(self, max_attempts: u32) -> Self {
        self.retry(Retry::attempts(max_attempts))
    }

    /// Tries again by this policy. The pauses are durable timers.
    pub fn retry(mut self, policy: Retry) -> Self {
        if let State::Building { retry, .. } = &mut self.state {
            *retry = policy;
        }
        self
    }
}

async fn run<T: DeserializeOwned>(
    ctx: Context,
    name: String,
    make: MakeStep,
    retry: Retry,
) -> Result<T, Failure> {
    names::check_name("step name", &name).map_err(|error| from_engine_error(&error))?;
    let mut attempt = 1;
    loop {
        let request = Request::Step { name: name.clone(), run: make() };
        let mut operation = Operation::new(&ctx, Ok(request));
        let result = std::future::poll_fn(|cx| operation.poll_decoded(cx)).await;
        let failure = match result {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        let seed = ctx.random();
        let Some(delay_ms) = retry.next_delay_ms(attempt, &failure, seed) else { return Err(failure) };
        ctx.sleep(std::time::Duration::from_millis(delay_ms)).await?;
        attempt += 1;
    }
}

impl<T> Future for RunCall<T>
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        if let State::Building { .. } = self.state {
            let State::Building { ctx, name, make, retry } = std::mem::replace(&mut self.state, State::Done)
            else {
                unreachable!("it was building a line ago")
            };
            self.state = State::Running(Box::pin(run(ctx, name, make, retry)));
        }
        let State::Running(running) = &mut self.state else { return Poll::Pending };
        let polled = running.as_mut().poll(cx);
        if polled.is_ready() {
            self.state = State::Done;
        }
        polled
    }
}

impl<T> Unpin for RunCall<T> {}
