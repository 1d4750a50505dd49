//! One instance, with the type of its result: what a start returns.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;

use super::{Client, Instance, ResultCall, SendCall, StatusCall};
use crate::error::Error;
use crate::handles::{Mailbox, Signal};
use crate::store::ExecutionStatus;

/// An instance whose orchestration returns `O`: its id, and the calls of [`Client`] that take an id.
/// Cheap to clone. Dropping it does nothing to the instance.
pub struct InstanceHandle<O> {
    client: Client,
    id: String,
    created: bool,
    output: PhantomData<fn() -> O>,
}

impl Client {
    /// The handle of an instance by its id, also of one that does not exist yet. `O` is what its
    /// orchestration returns. The store is not read.
    ///
    /// ```
    /// # async fn example(client: segno::Client) -> Result<(), segno::Error> {
    /// let order = client.handle::<String>("order-7");
    /// order.cancel("sold out").await?;
    /// let receipt = order.result().await?;
    /// # drop(receipt);
    /// # Ok(())
    /// # }
    /// ```
    pub fn handle<O>(&self, instance: impl Into<String>) -> InstanceHandle<O> {
        InstanceHandle::new(self.clone(), instance.into())
    }
}

impl<O> InstanceHandle<O> {
    fn new(client: Client, id: String) -> Self {
        InstanceHandle { client, id, created: false, output: PhantomData }
    }

    /// The answer to a start, which created the instance or found it.
    pub(super) fn started(client: Client, id: String, created: bool) -> Self {
        InstanceHandle { created, ..Self::new(client, id) }
    }

    /// The id of the instance.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the start that returned this handle created the instance or, with
    /// [`OnConflict::Replace`](super::OnConflict::Replace), its current execution. `false` for a
    /// handle of [`Client::handle`].
    pub fn created(&self) -> bool {
        self.created
    }

    /// Waits for the result; see [`Client::result`].
    pub fn result(&self) -> ResultCall<O> {
        ResultCall::new(self.client.clone(), self.id.clone())
    }

    /// Waits until the instance has ended, however it ends; see [`Client::wait_until_ended`].
    ///
    /// # Errors
    /// `wait-timed-out` after `timeout`.
    pub async fn wait_until_ended(&self, timeout: Duration) -> Result<Instance, Error> {
        self.client.wait_until_ended(&self.id, timeout).await
    }

    /// The state of the current execution. [`InstanceHandle::instance`] has the rest.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn status(&self) -> Result<ExecutionStatus, Error> {
        Ok(self.instance().await?.status)
    }

    /// What is known of the instance; see [`Client::instance`].
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn instance(&self) -> Result<Instance, Error> {
        self.client.instance(&self.id).await
    }

    /// Waits until the custom status has a version above `seen`; see [`Client::status_change`].
    pub fn status_change(&self, seen: u64) -> StatusCall {
        self.client.status_change(self.id.as_str(), seen)
    }

    /// Sends a signal; see [`Client::signal`].
    pub fn signal<T: Serialize>(&self, signal: Signal<T>, data: T) -> SendCall {
        self.client.signal(self.id.as_str(), signal, data)
    }

    /// Puts a message into a mailbox; see [`Client::enqueue`].
    pub fn enqueue<T: Serialize>(&self, mailbox: Mailbox<T>, data: T) -> SendCall {
        self.client.enqueue(self.id.as_str(), mailbox, data)
    }

    /// Requests cancellation; see [`Client::cancel`].
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `instance-ended` when it has ended.
    pub async fn cancel(&self, reason: impl Into<String>) -> Result<(), Error> {
        self.client.cancel(&self.id, reason).await
    }

    /// Pauses the instance; see [`Client::pause`].
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `instance-ended` when it has ended.
    pub async fn pause(&self, reason: impl Into<String>) -> Result<(), Error> {
        self.client.pause(&self.id, reason).await
    }

    /// Resumes a paused instance; see [`Client::resume`].
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `instance-ended` when it has ended.
    pub async fn resume(&self) -> Result<(), Error> {
        self.client.resume(&self.id).await
    }
}

impl<O> Clone for InstanceHandle<O> {
    fn clone(&self) -> Self {
        Self::started(self.client.clone(), self.id.clone(), self.created)
    }
}

impl<O> fmt::Debug for InstanceHandle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceHandle")
            .field("id", &self.id)
            .field("created", &self.created)
            .finish_non_exhaustive()
    }
}
