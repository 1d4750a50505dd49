//! Calling an activity.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::clock::duration_ms;
use crate::error::Error;
use crate::event::{ActivityOptions, OnExhausted};
use crate::failure::from_engine_error;
use crate::names;
use crate::payload::Payload;
use crate::replay::Request;
use crate::retry::Retry;

use super::Context;
use super::operation::Operation;

/// A call of an activity: set options, then await. Dropping it cancels the activity.
#[must_use = "an activity is scheduled when its call is awaited"]
pub struct ActivityCall<O> {
    operation: Operation,
    output: PhantomData<fn() -> O>,
}

impl<O> ActivityCall<O> {
    pub(super) fn new(ctx: &Context, name: &str, input: Result<Payload, Error>) -> Self {
        let request = names::check_name("activity name", name).and(input).map(|input| Request::Activity {
            name: name.to_owned(),
            input,
            options: ActivityOptions::default(),
            deadline_ms: None,
        });
        let operation = Operation::new(ctx, request.map_err(|error| from_engine_error(&error)));
        ActivityCall { operation, output: PhantomData }
    }

    fn with(mut self, change: impl FnOnce(&mut ActivityOptions, &mut Option<u64>)) -> Self {
        if let Some(Request::Activity { options, deadline_ms, .. }) = self.operation.request_mut() {
            change(options, deadline_ms);
        }
        self
    }

    fn with_name(mut self, what: &str, name: String, set: fn(&mut ActivityOptions, String)) -> Self {
        match names::check_name(what, &name) {
            Ok(()) => self.with(|options, _| set(options, name)),
            Err(error) => {
                self.operation.refuse(&error);
                self
            }
        }
    }

    /// Tries this often in all, with the default pauses; see [`Retry::attempts`].
    pub fn attempts(self, max_attempts: u32) -> Self {
        self.retry(Retry::attempts(max_attempts))
    }

    /// Tries again by this policy.
    pub fn retry(self, retry: Retry) -> Self {
        self.with(|options, _| options.retry = retry)
    }

    /// Each attempt may take this long.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|options, _| options.timeout_ms = Some(duration_ms(timeout)))
    }

    /// All attempts and the waits between them may take this long together, counted from now.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|_, deadline_ms| *deadline_ms = Some(duration_ms(deadline)))
    }

    /// An attempt fails when it is silent for this long; see `ActivityContext::heartbeat`.
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        self.with(|options, _| options.heartbeat_timeout_ms = Some(duration_ms(timeout)))
    }

    /// Only workers with this tag take it.
    pub fn tag(self, tag: impl Into<String>) -> Self {
        self.with_name("tag", tag.into(), |options, tag| options.tag = Some(tag))
    }

    /// All activities of a session run on the same worker while the session lives.
    pub fn session(self, session: impl Into<String>) -> Self {
        self.with_name("session id", session.into(), |options, session| options.session = Some(session))
    }

    /// When the activity fails for good (attempts used up, or a failure that is not retryable), pauses the instance
    /// instead of failing; resuming tries afresh.
    pub fn pause_when_exhausted(self) -> Self {
        self.with(|options, _| options.on_exhausted = OnExhausted::Pause)
    }
}

impl<O: DeserializeOwned> Future for ActivityCall<O> {
    type Output = Result<O, crate::Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.operation.poll_decoded(cx)
    }
}
