//! Reading a batch. An object that breaks a rule was not written by a writer of this scope: it is
//! not folded at all.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::limits::MAX_BATCH_EVENTS;
use crate::event::Envelope;
use crate::ids::Ulid;
use crate::objects::Paths;

/// An event and what is kept of it for good.
#[derive(Debug, Clone)]
pub struct Event {
    /// The event.
    pub envelope: Envelope,
    /// What is kept.
    pub record: EventRecord,
}

/// What is kept of an event: the JSON in which it was written, to the letter, and what it is found
/// by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Its id.
    pub event_id: Ulid,
    /// Its type.
    pub event_type: Arc<str>,
    /// The run that it is about.
    pub run_id: Option<Arc<str>>,
    /// Its JSON.
    pub json: Arc<str>,
}

impl Event {
    /// An event from its JSON.
    pub(crate) fn read(json: Arc<str>) -> Result<Self, String> {
        let envelope: Envelope = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        Ok(Event::new(envelope, json))
    }

    /// An event and the JSON that it is written as.
    pub(crate) fn new(envelope: Envelope, json: Arc<str>) -> Self {
        let record = EventRecord {
            event_id: envelope.event_id,
            event_type: Arc::clone(&envelope.event_type),
            run_id: run_of(&envelope),
            json,
        };
        Event { envelope, record }
    }
}

/// The run that an event is about: as the fold sees it, which reads the ids of dispatches and
/// timers if need be.
fn run_of(envelope: &Envelope) -> Option<Arc<str>> {
    envelope.event().and_then(crate::fold::run_of).or_else(|| envelope.run_id().cloned())
}

/// The events of the batch with this first id; the rule that it breaks otherwise.
pub(super) fn decode(paths: &Paths, first: Ulid, bytes: &[u8]) -> Result<Vec<Event>, String> {
    let raw: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if raw.is_empty() || raw.len() > MAX_BATCH_EVENTS {
        return Err(format!("it has {} events; a batch has 1 to {MAX_BATCH_EVENTS}", raw.len()));
    }
    let events: Result<Vec<Event>, String> = raw.iter().map(|json| Event::read(json.get().into())).collect();
    let events = events?;
    check(paths, first, events.iter().map(|event| &event.envelope))?;
    Ok(events)
}

/// The rules of a batch: it belongs to the scope, its ids ascend, and the first one is its name.
pub(crate) fn check<'a>(
    paths: &Paths,
    first: Ulid,
    events: impl Iterator<Item = &'a Envelope>,
) -> Result<(), String> {
    let scope = paths.scope();
    let (tenant, workspace) = (scope.tenant.as_str(), scope.namespace.as_str());
    let mut last = None;
    for event in events {
        if (&*event.tenant_id, &*event.workspace_id) != (tenant, workspace) {
            return Err(format!("event {} is of {}/{}", event.event_id, event.tenant_id, event.workspace_id));
        }
        match last {
            None if event.event_id != first => {
                return Err(format!("its first event is {}, and its name is {first}", event.event_id));
            }
            Some(last) if last >= event.event_id => {
                return Err(format!("event {} follows {last}; ids of a batch ascend", event.event_id));
            }
            _ => last = Some(event.event_id),
        }
    }
    Ok(())
}
