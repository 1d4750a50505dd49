//! Talking to instances: signals, mailbox messages, cancelling, pausing, resuming.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use serde::Serialize;

use super::Client;
use crate::error::{Code, Error};
use crate::event::Channel;
use crate::handles::{Mailbox, Signal};
use crate::names;
use crate::payload::Payload;
use crate::store::{ErrorKind, OrchestratorMessage, StartGuard};
use crate::work_item::WorkItem;

/// A message to an instance: set options, then await.
#[must_use = "the message is sent when this is awaited"]
pub struct SendCall {
    client: Client,
    instance: String,
    channel: Channel,
    name: String,
    data: Result<Payload, Error>,
    message_id: Option<String>,
    guard: StartGuard,
}

impl Client {
    /// Sends a signal, which is stored once this has answered. If the instance has not started yet, it
    /// waits for the start.
    pub fn signal<T: Serialize>(&self, instance: impl Into<String>, signal: Signal<T>, data: T) -> SendCall {
        self.message(instance.into(), Channel::Signal, signal.name(), Payload::encode(&data))
    }

    /// Puts a message into a mailbox. If the instance has not started yet, it waits for it.
    pub fn enqueue<T: Serialize>(
        &self,
        instance: impl Into<String>,
        mailbox: Mailbox<T>,
        data: T,
    ) -> SendCall {
        self.message(instance.into(), Channel::Mailbox, mailbox.name(), Payload::encode(&data))
    }

    fn message(
        &self,
        instance: String,
        channel: Channel,
        name: &str,
        data: Result<Payload, Error>,
    ) -> SendCall {
        let name = name.to_owned();
        SendCall {
            client: self.clone(),
            instance,
            channel,
            name,
            data,
            message_id: None,
            guard: StartGuard::None,
        }
    }

    /// Asks an instance to stop. Its activities and children are cancelled and its code may clean up. Cancelling twice
    /// changes nothing.
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `instance-ended` when it has ended.
    pub async fn cancel(&self, instance: &str, reason: impl Into<String>) -> Result<(), Error> {
        self.refuse_ended(instance).await?;
        self.control(Self::cancel_message(instance, reason)?).await
    }

    /// The message that cancels an instance, for a commit of records
    /// ([`RecordBatch::orchestrator_items`](crate::store::RecordBatch)). It is left out when there is no such instance.
    ///
    /// # Errors
    /// `invalid-instance-id`, or `payload-too-large` for the reason.
    pub fn cancel_message(instance: &str, reason: impl Into<String>) -> Result<OrchestratorMessage, Error> {
        let reason = checked_reason(reason.into())?;
        control_message(instance, &WorkItem::CancelInstance { reason })
    }

    /// Pauses an instance: nothing more is delivered to its code until it is resumed. Running activities continue.
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `instance-ended` when it has ended.
    pub async fn pause(&self, instance: &str, reason: impl Into<String>) -> Result<(), Error> {
        let reason = checked_reason(reason.into())?;
        self.refuse_ended(instance).await?;
        self.control(control_message(instance, &WorkItem::PauseInstance { reason })?).await
    }

    /// Resumes a paused instance. Activities that ran out of attempts get fresh ones.
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `instance-ended` when it has ended.
    pub async fn resume(&self, instance: &str) -> Result<(), Error> {
        self.refuse_ended(instance).await?;
        self.control(control_message(instance, &WorkItem::ResumeInstance)?).await
    }

    async fn control(&self, message: OrchestratorMessage) -> Result<(), Error> {
        let instance = message.instance.clone();
        match self.store.enqueue_for_orchestrator(message, None).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::new(Code::NotFound, format!("there is no instance with the id {instance:?}")))
            }
            other => Ok(other?),
        }
    }

    /// Messages to an instance that has ended would be lost, so they are refused.
    async fn refuse_ended(&self, instance: &str) -> Result<(), Error> {
        match self.store.get_instance_info(instance).await {
            Ok(info) if info.status.is_terminal() => {
                let status = info.status;
                let message =
                    format!("instance {instance:?} has ended ({status}) and takes no more messages");
                Err(Error::new(Code::InstanceEnded, message))
            }
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// A message to an instance that must be there.
fn control_message(instance: &str, item: &WorkItem) -> Result<OrchestratorMessage, Error> {
    names::check_instance_id(instance)?;
    let mut message = item.for_orchestrator(instance);
    message.guard = StartGuard::IfPresent;
    Ok(message)
}

/// A reason ends up in the history, so it is held to the limit of payloads.
fn checked_reason(reason: String) -> Result<String, Error> {
    Payload::encode(&reason).map(|_| reason)
}

impl SendCall {
    /// Names the message: a second one with the same id is dropped, so sending is safe to repeat. A new unique id by
    /// default.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// Refuses the message with `not-found` when there is no such instance, instead of keeping it for its start.
    pub fn only_if_present(mut self) -> Self {
        self.guard = StartGuard::IfPresent;
        self
    }

    async fn send(self) -> Result<(), Error> {
        names::check_instance_id(&self.instance)?;
        names::check_name("signal or mailbox name", &self.name)?;
        let data = self.data?;
        let id = self.message_id.unwrap_or_else(|| self.client.ids.new_uuid().to_string());
        names::check_name("message id", &id)?;
        self.client.refuse_ended(&self.instance).await?;
        let item = WorkItem::message(self.channel, self.name, data, Some(id));
        let mut message = item.for_orchestrator(self.instance);
        message.guard = self.guard;
        self.client.control(message).await
    }
}

impl IntoFuture for SendCall {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
