//! The one durable future that all others wrap: opened at its first poll, cancelled when dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::failure::{Failure, from_engine_error};
use crate::payload::Payload;
use crate::replay::{Request, Shared, Token};

use super::Context;

enum State {
    /// Not requested yet; an error found while building is returned at the first poll.
    Building(Box<Result<Request, Failure>>),
    Open(Token),
    Done,
}

/// A durable operation of an orchestration.
pub(super) struct Operation {
    shared: Arc<Shared>,
    shielded: bool,
    state: State,
}

impl Operation {
    pub(super) fn new(ctx: &Context, request: Result<Request, Failure>) -> Self {
        Operation {
            shared: ctx.shared.clone(),
            shielded: ctx.shielded,
            state: State::Building(Box::new(request)),
        }
    }

    /// Changes the request before the first poll.
    pub(super) fn request_mut(&mut self) -> Option<&mut Request> {
        match &mut self.state {
            State::Building(request) => request.as_mut().as_mut().ok(),
            _ => None,
        }
    }

    /// Makes the operation fail at its first poll.
    pub(super) fn refuse(&mut self, error: &Error) {
        if let State::Building(request) = &mut self.state {
            **request = Err(from_engine_error(error));
        }
    }

    pub(super) fn poll_payload(&mut self, cx: &TaskContext<'_>) -> Poll<Result<Payload, Failure>> {
        if let State::Building(_) = self.state {
            let State::Building(request) = std::mem::replace(&mut self.state, State::Done) else {
                unreachable!("it was building a line ago")
            };
            match request.and_then(|request| self.shared.journal().open(request, self.shielded)) {
                Ok(token) => self.state = State::Open(token),
                Err(failure) => return Poll::Ready(Err(self.shared.journal().refuse(failure))),
            }
        }
        let State::Open(token) = self.state else {
            // Polling a finished future again is a defect of the caller; resting is the safe answer.
            return Poll::Pending;
        };
        let polled = self.shared.journal().poll(token, cx);
        if polled.is_ready() {
            self.state = State::Done;
        }
        polled
    }

    pub(super) fn poll_decoded<T: DeserializeOwned>(
        &mut self,
        cx: &TaskContext<'_>,
    ) -> Poll<Result<T, Failure>> {
        self.poll_payload(cx).map(|result| {
            result.and_then(|payload| payload.decode().map_err(|error| from_engine_error(&error)))
        })
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let State::Open(token) = self.state {
            self.shared.journal().release(token);
        }
    }
}

/// Waits for the cancellation of the orchestration; see [`Context::cancelled`].
pub struct Cancelled {
    operation: Operation,
    shared: Arc<Shared>,
}

impl Cancelled {
    pub(super) fn new(ctx: &Context) -> Self {
        let operation = Operation::new(&ctx.shielded(), Ok(Request::Cancellation));
        Cancelled { operation, shared: ctx.shared.clone() }
    }
}

impl Future for Cancelled {
    type Output = String;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<String> {
        {
            let mut journal = self.shared.journal();
            if let Some(reason) = journal.cancelled.clone() {
                return Poll::Ready(journal.refuse(reason));
            }
        }
        self.operation.poll_payload(cx).map(|_| String::new())
    }
}
