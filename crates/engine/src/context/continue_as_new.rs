//! Going on with a fresh history.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use crate::error::Error;
use crate::failure::{Failure, from_engine_error};
use crate::names;
use crate::payload::Payload;
use crate::replay::NextExecution;

use super::Context;

/// Ends the execution when awaited; see [`Context::continue_as_new`]. It resolves only with a failure: when the input
/// cannot be stored, or when the orchestration was cancelled and the context is not shielded.
#[must_use = "the execution goes on as new when this is awaited"]
pub struct ContinueAsNew<T> {
    ctx: Context,
    input: Option<Result<Payload, Error>>,
    version: Option<String>,
    output: PhantomData<fn() -> T>,
}

impl<T> ContinueAsNew<T> {
    pub(super) fn new(ctx: Context, input: Result<Payload, Error>) -> Self {
        ContinueAsNew { ctx, input: Some(input), version: None, output: PhantomData }
    }

    /// Continues with exactly this version; without it the registry's policy decides.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        let version = version.into();
        if let Err(error) = names::check_version(&version) {
            self.input = Some(Err(error));
        }
        self.version = Some(version);
        self
    }
}

impl<T> Future for ContinueAsNew<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Some(input) = self.input.take() else { return Poll::Pending };
        let version = self.version.take();
        let mut journal = self.ctx.shared.journal();
        // The next execution would know nothing of the cancellation.
        let cancelled = journal.cancelled.clone().filter(|_| !self.ctx.shielded);
        match (cancelled, input) {
            (Some(reason), _) => Poll::Ready(Err(journal.refuse(Failure::cancelled(reason)))),
            (None, Err(error)) => Poll::Ready(Err(journal.refuse(from_engine_error(&error)))),
            (None, Ok(input)) => {
                journal.next_execution = Some(NextExecution { input, version });
                Poll::Pending
            }
        }
    }
}
