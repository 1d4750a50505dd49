//! Children and detached starts.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::event::EventKind;
use crate::failure::{Failure, from_engine_error};
use crate::names;
use crate::payload::Payload;
use crate::replay::Request;

use super::Context;
use super::operation::Operation;

fn check(name: &str, version: Option<&str>) -> Result<(), Error> {
    names::check_name("orchestration name", name)?;
    version.map_or(Ok(()), |version| names::check_version(version).map(|_| ()))
}

/// A child orchestration: set options, then await. Dropping it cancels the child.
#[must_use = "a child is started when this is awaited"]
pub struct ChildCall<O> {
    operation: Operation,
    output: PhantomData<fn() -> O>,
}

impl<O> ChildCall<O> {
    pub(super) fn new(
        ctx: &Context,
        name: &str,
        version: Option<String>,
        input: Result<Payload, Error>,
    ) -> Self {
        let request = check(name, version.as_deref())
            .and(input)
            .map(|input| Request::Child { name: name.to_owned(), version, instance: None, input })
            .map_err(|error| from_engine_error(&error));
        ChildCall { operation: Operation::new(ctx, request), output: PhantomData }
    }

    /// Gives the child this instance id. If an instance of that id exists, the call fails, unless it is a child of an earlier
    /// execution of this instance that has ended: then it begins again.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        if let Some(Request::Child { instance, .. }) = self.operation.request_mut() {
            *instance = Some(id.into());
        }
        self
    }
}

impl<O: DeserializeOwned> Future for ChildCall<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.operation.poll_decoded(cx)
    }
}

/// A start that is not waited for; awaiting it gives the instance id.
#[must_use = "the instance is started when this is awaited"]
pub struct DetachedStart {
    ctx: Context,
    name: String,
    version: Option<String>,
    instance: Option<String>,
    input: Result<Payload, Error>,
}

impl DetachedStart {
    pub(super) fn new(
        ctx: Context,
        name: &str,
        version: Option<String>,
        input: Result<Payload, Error>,
    ) -> Self {
        DetachedStart { ctx, name: name.to_owned(), version, instance: None, input }
    }

    /// Gives the instance this id. If an instance of that id exists, nothing is started.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.instance = Some(id.into());
        self
    }
}

impl Future for DetachedStart {
    type Output = Result<String, Failure>;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut journal = this.ctx.shared.journal();
        if let Some(reason) = journal.cancelled.clone().filter(|_| !this.ctx.shielded) {
            return Poll::Ready(Err(journal.refuse(Failure::cancelled(reason))));
        }
        let instance = this.instance.take().unwrap_or_else(|| journal.next_detached_id());
        let checked = check(&this.name, this.version.as_deref())
            .and_then(|()| names::check_instance_id(&instance))
            .and(this.input.clone());
        let input = match checked {
            Ok(input) => input,
            Err(error) => return Poll::Ready(Err(journal.refuse(from_engine_error(&error)))),
        };
        journal.command(EventKind::OrchestrationChained {
            name: std::mem::take(&mut this.name),
            version: this.version.take(),
            instance: instance.clone(),
            input,
        });
        Poll::Ready(Ok(instance))
    }
}
