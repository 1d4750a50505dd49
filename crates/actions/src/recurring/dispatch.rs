//! The call that an occurrence becomes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use segno::client::StartCall;
use segno::store::{ErrorKind, OrchestratorMessage, Store};
use segno::{Client, Payload};
use serde::Serialize;
use serde_json::json;

use super::history::{Decision, HistoryEntry, SkipReason};
use super::model::RecurringAction;
use super::plan::Plan;
use super::record::{DEDUP_KIND, dedup_id};
use super::settle::settle;
use crate::action::ActionError;
use crate::ended::SUPERSEDED;
use crate::functions::{FunctionName, Functions, Trigger};
use crate::options::ActionOptions;
use crate::schedule::Note;
use crate::target::{Target, WantedStart};
use crate::telemetry::{self, CurrentTrace};
use crate::template::Template;

/// Label of the instances of recurring actions.
pub(crate) const RECURRING_LABEL: &str = "recurring";

/// Longest error that is kept, in characters.
const MAX_DETAIL_CHARS: usize = 1_000;

/// An occurrence that is to be fired.
#[derive(Debug, Clone)]
pub(crate) struct Firing {
    pub(crate) time: Timestamp,
    pub(crate) note: Option<Note>,
    /// Whether those that run are cancelled.
    pub(crate) cancels: bool,
    /// Whether a caller wants it, out of schedule.
    pub(crate) is_manual: bool,
}

/// What is needed to fire.
pub(crate) struct Dispatcher<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) client: &'a Client,
    pub(crate) functions: &'a Functions,
    pub(crate) options: &'a ActionOptions,
    pub(crate) current_trace: Option<CurrentTrace>,
}

impl Dispatcher<'_> {
    /// Adds the call of an occurrence to a plan. A dedup key that was seen suppresses it; a call that can never be made is
    /// a failure of the action, not of the scheduler.
    pub(crate) async fn fire(
        &self,
        action: &mut RecurringAction,
        firing: Firing,
        now: Timestamp,
        plan: &mut Plan,
    ) -> Result<HistoryEntry, ActionError> {
        let time = firing.time;
        let entry = match self.try_fire(action, &firing, plan).await {
            Ok(Some(start)) => {
                let mut entry = HistoryEntry::fired(time, &start.instance, now);
                entry.note = firing.note;
                if firing.cancels {
                    for running in &action.progress.running {
                        plan.messages.push(Client::cancel_message(&running.instance, SUPERSEDED)?);
                    }
                }
                action.started(time, &start.instance, now);
                plan.messages.push(start);
                entry
            }
            Ok(None) => HistoryEntry::skipped(time, SkipReason::Dedup, now),
            Err(error) if is_for_ever(&error) => {
                let text: String = error.to_string().chars().take(MAX_DETAIL_CHARS).collect();
                action.failed(None, &text, now);
                HistoryEntry { detail: Some(text), ..HistoryEntry::new(time, Decision::Refused, now) }
            }
            Err(error) => return Err(error),
        };
        let entry = HistoryEntry { is_manual: firing.is_manual, ..entry };
        plan.note(entry.clone());
        Ok(entry)
    }

    async fn try_fire(
        &self,
        action: &RecurringAction,
        firing: &Firing,
        plan: &mut Plan,
    ) -> Result<Option<OrchestratorMessage>, ActionError> {
        let dedup_key = action.dedup_key(firing.time)?;
        if let Some(key) = &dedup_key {
            let id = dedup_id(&action.scope(), key);
            let is_seen =
                plan.dedup.contains_key(&id) || self.store.get_record(DEDUP_KIND, &id).await?.is_some();
            if is_seen {
                return Ok(None);
            }
        }
        let start = self.start_of(action, firing.time, dedup_key.as_deref()).await?;
        // Nobody waits for it: it is the beginning of a trace.
        let span = tracing::debug_span!(parent: None, "segno.recurring", recurring_id = action.id, time = %firing.time);
        let start = match telemetry::trace_of(&span, self.current_trace) {
            Some(traceparent) => start.traceparent(traceparent),
            None => start,
        };
        let start = start.message().await?;
        if let Some(key) = &dedup_key {
            plan.dedup.insert(dedup_id(&action.scope(), key), action.dedup_write(key, firing.time)?);
        }
        Ok(Some(start))
    }

    /// The start of the call of an occurrence, under an id that follows from the action and the scheduled time.
    pub(crate) async fn start_of(
        &self,
        action: &RecurringAction,
        time: Timestamp,
        dedup_key: Option<&str>,
    ) -> Result<StartCall<Payload>, ActionError> {
        let scope = action.scope();

        let wanted = WantedStart {
            scope: &scope,
            target: action.target()?,
            input: action.input(time, dedup_key)?,
            key: action.start_key(time),
            trigger: Trigger::Schedule,
            gives_up_when_lost: false,
            settle: settle(&action.id, time, self.options.history())?,
        };
        let start = wanted.start(self.client, self.functions).await?;
        Ok(start.label(RECURRING_LABEL, action.id.as_str()))
    }
}

impl RecurringAction {
    /// The instance of the call of an occurrence.
    ///
    /// # Errors
    /// `invalid-action` when it names nothing that can be started.
    pub fn instance_id(&self, time: Timestamp) -> Result<String, ActionError> {
        Ok(self.target()?.instance_id(&self.scope(), &self.start_key(time)))
    }

    fn start_key(&self, time: Timestamp) -> String {
        format!("recurring:{}:{time}", self.id)
    }

    /// What is started.
    pub(crate) fn target(&self) -> Result<Target, ActionError> {
        let template = &self.action_template;
        match &template.orchestration {
            Some(_) if !template.provider.is_empty() => {
                Err(ActionError::invalid("orchestration", "is named beside a function; name one of them"))
            }
            Some(orchestration) => Ok(Target::Orchestration(orchestration.clone())),
            None => FunctionName::new(template.provider.as_str())
                .map(Target::Function)
                .map_err(|error| ActionError::invalid("provider", error.to_string())),
        }
    }

    /// What the function gets.
    pub(crate) fn input(&self, time: Timestamp, dedup_key: Option<&str>) -> Result<Payload, ActionError> {
        let template = &self.action_template;
        if template.action_type.is_empty() {
            return Ok(template.payload.clone());
        }
        let mut metadata = template.metadata.clone();
        metadata.insert("_recurring_dispatch".to_owned(), "true".to_owned());
        metadata.insert("_recurring_id".to_owned(), self.id.clone());
        metadata.insert("_scheduled_time".to_owned(), time.to_string());
        let (action_type, payload) = (&template.action_type, &template.payload);
        Ok(Payload::encode(&TypedInput { action_type, dedup_key, metadata, payload })?)
    }

    /// The dedup key of an occurrence.
    pub(crate) fn dedup_key(&self, time: Timestamp) -> Result<Option<String>, ActionError> {
        let Some(text) = &self.action_template.dedup_key else { return Ok(None) };
        let invalid = |problem: &str| ActionError::invalid("dedup_key", problem);
        let template = Template::parse(text).map_err(|error| invalid(&error.to_string()))?;
        let names = json!({ "recurring_id": self.id, "execution_time": time });
        template.render(&names).map(Some).map_err(|error| invalid(&error.to_string()))
    }
}

/// What a function gets that is told what sort of action it does.
#[derive(Serialize)]
struct TypedInput<'a> {
    action_type: &'a str,
    dedup_key: Option<&'a str>,
    metadata: BTreeMap<String, String>,
    payload: &'a Payload,
}

/// Whether trying again would give the same answer. What cannot be read, such as the declaration of a function, stays so until
/// somebody mends it.
pub(crate) fn is_for_ever(error: &ActionError) -> bool {
    use ErrorKind::{Conflict, Corrupt, Invalid, NotFound};
    matches!(error.kind(), Invalid | NotFound | Conflict | Corrupt)
}
