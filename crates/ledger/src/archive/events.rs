//! `events`: recorded events of instances, from what the engine hands out and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::event::{Event, EventKind};
use segno::runtime::ArchivedHistory;
use segno_actions::functions::Scope;
use serde_json::value::RawValue;

use super::instances::{time, unsigned};
use super::row::archived_row;

archived_row! {
    /// An event.
    EventRow {
        /// The execution, from 1.
        execution: i64,
        /// Place in the history of the execution, from 1.
        event_id: i64,
        /// When it was recorded.
        at: i64,
        /// What happened.
        kind: Arc<str>,
        /// The activity, step, signal or orchestration that it is about.
        name: Option<Arc<str>>,
        /// The event that it ends.
        source: Option<i64>,
        /// The fields of the kind, a JSON object.
        data: Arc<str>,
    }
}

impl EventRow {
    /// The rows of a part of a history; `id` is the one in the scope.
    ///
    /// # Errors
    /// When an event has no JSON form.
    pub(super) fn of(
        scope: &Scope,
        id: &str,
        history: &ArchivedHistory,
    ) -> Result<Vec<Self>, serde_json::Error> {
        let (tenant_id, workspace_id): (Arc<str>, Arc<str>) =
            (scope.tenant.as_str().into(), scope.namespace.as_str().into());
        let id: Arc<str> = id.into();
        let row = |event: &Event| {
            let data = fields(&event.kind)?;
            let parts: BTreeMap<&str, &RawValue> = serde_json::from_str(&data)?;
            let name = parts.get("name").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
            Ok(EventRow {
                tenant_id: tenant_id.clone(),
                workspace_id: workspace_id.clone(),
                id: id.clone(),
                incarnation: time(history.created_at_ms),
                revision: 0,
                ended_at: time(history.ended_at_ms),
                execution: time(history.execution_id),
                event_id: time(event.event_id),
                at: time(event.at_ms),
                kind: event.kind.name().into(),
                name: name.map(Arc::from),
                source: parts.get("source").and_then(|raw| raw.get().parse().ok()),
                data,
            })
        };
        history.events.iter().map(row).collect()
    }

    /// The event.
    ///
    /// # Errors
    /// When its fields do not fit its kind.
    pub fn event(&self) -> Result<Event, serde_json::Error> {
        let name = serde_json::to_string(&*self.kind)?;
        // A kind without fields is its name alone.
        let kind = match &*self.data {
            "{}" => serde_json::from_str(&name).or_else(|_| of_fields(&name, "{}"))?,
            data => of_fields(&name, data)?,
        };
        Ok(Event { event_id: unsigned(self.event_id), at_ms: unsigned(self.at), kind })
    }
}

fn of_fields(name: &str, data: &str) -> Result<EventKind, serde_json::Error> {
    serde_json::from_str(&format!("{{{name}:{data}}}"))
}

/// The fields of a kind, as a JSON object. User data in them is text as it was written.
fn fields(kind: &EventKind) -> Result<Arc<str>, serde_json::Error> {
    let text = serde_json::to_string(kind)?;
    if !text.starts_with('{') {
        return Ok("{}".into());
    }
    let named: BTreeMap<&str, &RawValue> = serde_json::from_str(&text)?;
    Ok(named.into_values().next().unwrap_or(RawValue::NULL).get().into())
}
