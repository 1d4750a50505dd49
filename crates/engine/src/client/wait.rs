//! Waiting for instances. A waiting client subscribes: it neither polls nor reads histories.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::{Client, Instance};
use crate::error::{Code, Error};
use crate::event::Output;
use crate::handles::Orchestration;
use crate::names;
use crate::payload::Payload;
use crate::store::WatchUntil;

impl Client {
    /// Waits for the result of an instance.
    ///
    /// # Errors
    /// `instance-failed` with the failure when it failed or was cancelled, `wait-timed-out` after the time-out.
    pub fn result<I, O: DeserializeOwned>(
        &self,
        _orchestration: Orchestration<I, O>,
        instance: impl Into<String>,
    ) -> ResultCall<O> {
        ResultCall::new(self.clone(), instance.into())
    }

    /// Waits until the custom status has a version above `seen`, or the instance has ended.
    pub fn status_change(&self, instance: impl Into<String>, seen: u64) -> StatusCall {
        StatusCall { client: self.clone(), instance: instance.into(), seen, timeout: Duration::MAX }
    }

    /// Waits until an instance has ended, however it ends.
    ///
    /// # Errors
    /// `wait-timed-out` after `timeout`.
    pub async fn wait_until_ended(&self, instance: &str, timeout: Duration) -> Result<Instance, Error> {
        self.watch(instance, WatchUntil::Terminal, timeout).await
    }

    /// Waits until anything has been committed for an instance beyond `revision`.
    ///
    /// # Errors
    /// `wait-timed-out` after `timeout`.
    pub async fn wait_for_revision(
        &self,
        instance: &str,
        revision: u64,
        timeout: Duration,
    ) -> Result<Instance, Error> {
        self.watch(instance, WatchUntil::RevisionAfter(revision), timeout).await
    }

    async fn watch(&self, instance: &str, until: WatchUntil, timeout: Duration) -> Result<Instance, Error> {
        names::check_instance_id(instance)?;
        match self.store.watch_instance(instance, until, timeout).await? {
            Some(info) => Ok(Instance::from_info(info)),
            None => {
                let message =
                    format!("instance {instance:?} did not get there within {timeout:?}; it may still do so");
                Err(Error::new(Code::WaitTimedOut, message))
            }
        }
    }
}

/// A wait for a result: set options, then await.
#[must_use = "the result is waited for when this is awaited"]
pub struct ResultCall<O> {
    client: Client,
    instance: String,
    timeout: Duration,
    output: PhantomData<fn() -> O>,
}

impl<O> ResultCall<O> {
    pub(super) fn new(client: Client, instance: String) -> Self {
        ResultCall { client, instance, timeout: Duration::MAX, output: PhantomData }
    }

    /// Waits at most this long; for ever by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl<O: DeserializeOwned> ResultCall<O> {
    pub(super) async fn wait(self) -> Result<O, Error> {
        let instance = self.client.watch(&self.instance, WatchUntil::Terminal, self.timeout).await?;
        result_of(instance)
    }
}

/// The result of an instance that has ended.
pub(super) fn result_of<O: DeserializeOwned>(instance: Instance) -> Result<O, Error> {
    let Instance { id, output, unreadable, .. } = instance;
    match (output, unreadable) {
        (Some(Output::Completed(result)), _) => result.decode(),
        (Some(Output::Failed(failure)), _) => Err(Error::failed(&id, failure)),
        (_, Some(reason)) => {
            Err(Error::new(Code::StoredDataUnreadable, format!("instance {id:?} has ended, but {reason}")))
        }
        (other, None) => {
            let message = format!("instance {id:?} ended without a result: {other:?}");
            Err(Error::new(Code::StoredDataUnreadable, message))
        }
    }
}

impl<O: DeserializeOwned + 'static> IntoFuture for ResultCall<O> {
    type Output = Result<O, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

/// A custom status and its version.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusChange {
    /// The status; `None` when it was removed or never set.
    pub status: Option<Payload>,
    /// Its version, to wait for the next change.
    pub version: u64,
    /// Whether the instance has ended: there will be no further change.
    pub ended: bool,
}

/// A wait for a change of the custom status: set options, then await.
#[must_use = "the change is waited for when this is awaited"]
pub struct StatusCall {
    client: Client,
    instance: String,
    seen: u64,
    timeout: Duration,
}

impl StatusCall {
    /// Waits at most this long; for ever by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl IntoFuture for StatusCall {
    type Output = Result<StatusChange, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let until = WatchUntil::CustomStatusAfter(self.seen);
            let instance = self.client.watch(&self.instance, until, self.timeout).await?;
            Ok(StatusChange {
                ended: instance.has_ended(),
                version: instance.custom_status_version,
                status: instance.custom_status,
            })
        })
    }
}
