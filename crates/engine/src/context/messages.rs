//! Waiting for signals and reading mailboxes.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use serde::de::DeserializeOwned;

use crate::event::Channel;
use crate::failure::{Failure, from_engine_error};
use crate::handles::Mailbox;
use crate::names;
use crate::replay::Request;

use super::Context;
use super::operation::Operation;

fn subscribe(ctx: &Context, channel: Channel, name: &str) -> Operation {
    let request = names::check_name("signal or mailbox name", name)
        .map(|()| Request::Message { channel, name: name.to_owned() })
        .map_err(|error| from_engine_error(&error));
    Operation::new(ctx, request)
}

/// Waits for a signal; see [`Context::signal`]. A signal that a dropped wait did not take goes to the next one.
#[must_use = "a signal is waited for when this is awaited"]
pub struct WaitForSignal<T> {
    operation: Operation,
    data: PhantomData<fn() -> T>,
}

impl<T> WaitForSignal<T> {
    pub(super) fn new(ctx: &Context, name: &str) -> Self {
        WaitForSignal { operation: subscribe(ctx, Channel::Signal, name), data: PhantomData }
    }
}

impl<T: DeserializeOwned> Future for WaitForSignal<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.operation.poll_decoded(cx)
    }
}

/// Reads a mailbox; see [`Context::mailbox`].
pub struct MailboxReader<T> {
    ctx: Context,
    mailbox: Mailbox<T>,
}

impl<T: DeserializeOwned> MailboxReader<T> {
    pub(super) fn new(ctx: Context, mailbox: Mailbox<T>) -> Self {
        MailboxReader { ctx, mailbox }
    }

    /// Waits for the next message.
    pub fn receive(&self) -> Receive<T> {
        let operation = subscribe(&self.ctx, Channel::Mailbox, self.mailbox.name());
        Receive { operation, data: PhantomData }
    }

    /// Takes the next message if one is there.
    ///
    /// # Errors
    /// A configuration failure when the message does not fit the type; it is taken all the same.
    pub fn try_receive(&self) -> Result<Option<T>, Failure> {
        let message = self.ctx.shared.journal().try_take(Channel::Mailbox, self.mailbox.name());
        message.map(|data| data.decode()).transpose().map_err(|error| from_engine_error(&error))
    }
}

/// Waits for the next message of a mailbox.
#[must_use = "a message is waited for when this is awaited"]
pub struct Receive<T> {
    operation: Operation,
    data: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Future for Receive<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.operation.poll_decoded(cx)
    }
}
