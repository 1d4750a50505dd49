//! What was given up of a tenant. Ids and instances are the caller's.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno::client::{DeadLetterQuery, ResubmittedLetter};
use segno::event::Channel;
use segno::work_item::WorkItem;
use segno::{DeadLetter, GivenUp, Payload};
use segno_actions::functions::{Call, FUNCTION, INVOKE, Invocation};
use segno_actions::{Listed, Unreadable};
use segno_api::dead_letter as wire;

use super::Tenant;
use crate::problem::Refusal;

/// Instances that are read at once to name the letters of a page.
const CONCURRENT_READS: usize = 16;

/// What a letter carried.
#[derive(Default)]
pub struct Contents {
    /// What it was: the activity or function, or the message.
    pub name: Option<String>,
    /// Its data.
    pub payload: Option<Payload>,
    /// All of it, if it cannot be read.
    pub raw: Option<Bytes>,
}

impl Tenant {
    /// Letters after one of them, newest first.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn dead_letters(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed<DeadLetter>>, Refusal> {
        let query = DeadLetterQuery {
            id_prefix: self.scope.prefix().to_owned(),
            after_id: after.map(|after| self.stored(after)),
            limit,
        };
        let page = self.resources().client.dead_letters(query).await;
        let page = page.map_err(|error| self.refused(error))?;
        let shown = page.letters.into_iter().map(|letter| match letter {
            Ok(letter) => Listed::Readable(self.shown_letter(letter)),
            Err(letter) => {
                let id = self.scope.shown(&letter.id).unwrap_or_default().to_owned();
                Listed::Unreadable(Unreadable { id, reason: letter.reason })
            }
        });
        Ok(shown.collect())
    }

    /// The same letters with the name of what was given up where the letter itself has none: the function of a call, or the
    /// orchestration of a turn.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn named_letters(
        &self,
        letters: Vec<wire::DeadLetter>,
    ) -> Result<Vec<wire::DeadLetter>, Refusal> {
        let named = letters.into_iter().map(|letter| self.named_letter(letter));
        stream::iter(named).buffered(CONCURRENT_READS).try_collect().await
    }

    async fn named_letter(&self, letter: wire::DeadLetter) -> Result<wire::DeadLetter, Refusal> {
        // Of a call the engine knows the activity that all calls have in common.
        let is_named = letter.name.as_ref().is_some_and(|name| *name != FUNCTION.name());
        if is_named || letter.what == wire::GivenUp::Message {
            return Ok(letter);
        }
        match self.resources().client.instance(&self.stored(&letter.instance)).await {
            Ok(instance) => {
                let function = self.function_of(&instance.labels).map(str::to_owned);
                Ok(wire::DeadLetter { name: function.or(instance.orchestration).or(letter.name), ..letter })
            }
            // Its instance is gone; what it carried may be there still.
            Err(error) if error.code() == segno::Code::NotFound => match self.dead_letter(&letter.id).await {
                Ok((_, contents)) => Ok(wire::DeadLetter { name: contents.name.or(letter.name), ..letter }),
                Err(_) => Ok(letter),
            },
            Err(error) => Err(self.refused(error)),
        }
    }

    /// One letter, and what it carried.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn dead_letter(&self, id: &str) -> Result<(DeadLetter, Contents), Refusal> {
        let found = self.resources().client.dead_letter(&self.stored(id)).await;
        let (letter, body) = found.map_err(|error| self.refused(error))?;
        let contents = match (letter.what, body) {
            (GivenUp::Turn, _) => self.contents_of_instance(&letter.instance).await,
            (_, Some(body)) => read(body),
            (_, None) => Contents::default(),
        };
        Ok((self.shown_letter(letter), contents))
    }

    /// Puts back what was given up, once. An execution that begins is checked as a restart is.
    ///
    /// # Errors
    /// `not-found` when there is none, `dead-letter-settled` when its instance has gone on, and those of a restart.
    pub async fn resubmit(&self, id: &str) -> Result<ResubmittedLetter, Refusal> {
        let client = &self.resources().client;
        let stored = self.stored(id);
        let found = client.dead_letter(&stored).await;
        let (letter, _) = found.map_err(|error| self.refused(error))?;
        let mut call = client.resubmit_dead_letter(stored);
        if letter.what != GivenUp::Message {
            let instance = self.shown_instance(Some(&letter.instance)).unwrap_or_default();
            let started = self.in_store(&instance, self.started_anew(&instance, None)).await?;
            call = call.begin_with(started);
        }
        let done = call.await.map_err(|error| self.refused(error))?;
        let instance = self.shown_instance(Some(&done.instance)).unwrap_or_default();
        Ok(ResubmittedLetter { instance, ..done })
    }

    /// Deletes a letter.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn discard(&self, id: &str) -> Result<(), Refusal> {
        let discarded = self.resources().client.discard_dead_letter(&self.stored(id)).await;
        discarded.map_err(|error| self.refused(error))
    }

    fn shown_letter(&self, letter: DeadLetter) -> DeadLetter {
        let shown = |stored: &str| self.scope.shown(stored).unwrap_or_default().to_owned();
        DeadLetter {
            id: shown(&letter.id),
            instance: shown(&letter.instance),
            reason: self.shown_text(&letter.reason),
            ..letter
        }
    }

    /// What an instance was started with, as far as it is there and can be read.
    async fn contents_of_instance(&self, stored: &str) -> Contents {
        let Ok(started) = self.resources().client.started_with(stored).await else {
            return Contents::default();
        };
        let call = started.input.decode::<Invocation>().ok().filter(|_| started.name == INVOKE.name());
        match call {
            Some(call) => named(call.function.to_string(), call.input),
            None => named(started.name.clone(), started.input.clone()),
        }
    }
}

fn named(name: String, payload: Payload) -> Contents {
    Contents { name: Some(name), payload: Some(payload), raw: None }
}

/// What a body says, if it can be read.
fn read(body: Bytes) -> Contents {
    let item = match WorkItem::decode(&body) {
        Ok(item) => item,
        Err(_) => return Contents { raw: Some(body), ..Contents::default() },
    };
    let told = |name: &str| Contents { name: Some(name.to_owned()), ..Contents::default() };
    match item {
        WorkItem::ActivityExecute(activity) => {
            let call = activity.input.decode::<Call>().ok().filter(|_| activity.name == FUNCTION.name());
            match call {
                Some(call) => named(call.function.to_string(), call.input),
                None => named(activity.name.clone(), activity.input.clone()),
            }
        }
        WorkItem::ExternalRaised { name, data, .. } => named(channel(Channel::Signal, &name), data),
        WorkItem::QueueMessage { name, data, .. } => named(channel(Channel::Mailbox, &name), data),
        WorkItem::StartOrchestration(start) => named(format!("start {}", start.orchestration), start.input),
        WorkItem::ActivityCompleted { result, .. } => named("result of an activity".to_owned(), result),
        WorkItem::SubOrchCompleted { result, .. } => named("result of a child".to_owned(), result),
        WorkItem::ActivityFailed { .. } => told("failure of an activity"),
        WorkItem::SubOrchFailed { .. } => told("failure of a child"),
        WorkItem::TimerFired { .. } => told("timer"),
        WorkItem::CancelInstance { .. } | WorkItem::CancelChild { .. } => told("cancel"),
        WorkItem::PauseInstance { .. } => told("pause"),
        WorkItem::ResumeInstance => told("resume"),
        _ => told("message"),
    }
}

fn channel(channel: Channel, name: &str) -> String {
    match channel {
        Channel::Signal => format!("signal {name}"),
        Channel::Mailbox => format!("mailbox {name}"),
    }
}
