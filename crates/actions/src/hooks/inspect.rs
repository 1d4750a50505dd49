//! Payloads and events that are kept: listed, read, deleted and called again.

use bytes::Bytes;
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite};
use uuid::Uuid;

use super::catalogue::Hooks;
use super::decide::input_of;
use super::error::HookError;
use super::event::{HookEvent, Outcome, StoredEvent};
use super::id::just_before;
use super::payload::Payload;
use super::receive::Accepted;
use super::records::{BODY, EVENT, PAYLOAD, decode, payload_id, payload_prefix, put, uuid_of};
use crate::functions::{HookName, Scope, compute};
use crate::listed::Listed;
use crate::moment::due_ms;

/// Records that are read at once.
const PAGE: usize = 1_000;

/// How often a replay is tried that meets another replay of the same payload.
const MAX_TRIES: usize = 100;

/// Which payloads.
#[derive(Debug, Clone, Default)]
pub struct ListPayloads {
    /// Not before this time.
    pub since: Option<jiff::Timestamp>,
    /// Not after this time.
    pub until: Option<jiff::Timestamp>,
    /// Only those after this one: the last one of the page before.
    pub after: Option<Uuid>,
    /// At most this many.
    pub limit: usize,
}

/// A page of payloads, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct PayloadPage {
    /// The payloads.
    pub payloads: Vec<Listed<Payload>>,
    /// Whether there may be more.
    pub more: bool,
}

/// Which events.
#[derive(Debug, Clone, Default)]
pub struct ListEvents<'a> {
    /// Only of this route.
    pub route: Option<&'a HookName>,
    /// Only those after this one: the last one of the page before.
    pub after: Option<Uuid>,
    /// At most this many.
    pub limit: usize,
}

impl Hooks {
    /// Payloads of a route, newest first, without their bodies. Those of a route that was deleted can still be read.
    ///
    /// # Errors
    /// `unknown-hook` when there is neither such a route nor a payload of it.
    pub async fn payloads(
        &self,
        scope: &Scope,
        name: &HookName,
        request: &ListPayloads,
    ) -> Result<PayloadPage, HookError> {
        let prefix = payload_prefix(scope, name);
        let after = match (request.after, request.until) {
            (Some(id), _) => Some(format!("{prefix}{id}")),
            (None, Some(until)) => Some(format!("{prefix}{}", just_before(due_ms(until)))),
            (None, None) => None,
        };
        let limit = request.limit.saturating_add(1);
        let list = ListRecords { kind: PAYLOAD, id_prefix: &prefix, after_id: after.as_deref(), limit };
        let records = self.inner.store.list_records(list).await?;
        if records.is_empty() && request.after.is_none() {
            self.find(scope, name).await?;
        }
        let is_wanted = |row: &Listed<Payload>| match (row, request.since) {
            (Listed::Readable(payload), Some(since)) => payload.received_at >= since,
            _ => true,
        };
        let found = records.iter().map(|record| {
            Listed::of(decode::<Payload>(record), record.id.strip_prefix(&prefix).unwrap_or(&record.id))
        });
        let mut payloads: Vec<Listed<Payload>> = found.take_while(is_wanted).collect();
        let more = payloads.len() > request.limit;
        payloads.truncate(request.limit);
        Ok(PayloadPage { payloads, more })
    }

    /// One payload with its body, byte for byte.
    ///
    /// # Errors
    /// `unknown-payload` when there is none, or it is kept no longer.
    pub async fn payload(
        &self,
        scope: &Scope,
        name: &HookName,
        id: Uuid,
    ) -> Result<(Payload, Bytes), HookError> {
        let (record, body) = self.read(scope, name, id).await?;
        Ok((decode(&record)?, body))
    }

    /// Deletes a payload. Actions that were made of it go on.
    ///
    /// # Errors
    /// `unknown-payload` when there is none.
    pub async fn delete_payload(&self, scope: &Scope, name: &HookName, id: Uuid) -> Result<(), HookError> {
        self.read(scope, name, id).await?;
        let record_id = payload_id(scope, name, id);
        let writes = [PAYLOAD, BODY].map(|kind| RecordWrite::Delete {
            kind: kind.to_owned(),
            id: record_id.clone(),
            expect: Expect::Anything,
        });
        let batch = RecordBatch { writes: writes.into(), ..RecordBatch::default() };
        self.inner.store.commit_records(batch).await?;
        Ok(())
    }

    /// Calls the function of a payload again, as a new action with this id, with the route as it is declared now. Neither
    /// its filter nor its keys count: whoever replays has decided.
    ///
    /// # Errors
    /// `unknown-hook`, `unknown-payload`, `invalid-hook` when the route has no function, `template-failed` when no input
    /// can be made. With an id that was used before, nothing happens and the answer is the same.
    pub async fn replay(
        &self,
        scope: &Scope,
        name: &HookName,
        id: Uuid,
        action_id: Uuid,
    ) -> Result<Accepted, HookError> {
        let route = self.find(scope, name).await?;
        let Some(target) = route.hook.target() else {
            return Err(HookError::invalid(
                "function",
                "the hook has no function to call and no orchestration to start; name one, then replay",
            ));
        };
        let (function, orchestration) = (route.hook.function.clone(), route.hook.orchestration.clone());
        let outcome = Outcome::Replayed { action: action_id, function, orchestration };
        for _ in 0..MAX_TRIES {
            let (record, body) = self.read(scope, name, id).await?;
            let mut payload: Payload = decode(&record)?;
            if payload.actions.contains(&action_id) {
                return Ok(Accepted { id, outcome });
            }
            let input = match route.hook.is_quick_for(body.len()) {
                true => input_of(&route.hook, &payload.seen(scope, &body))?,
                false => {
                    let (hook, payload, body) = (route.hook.clone(), payload.clone(), body.clone());
                    let owner = scope.clone();
                    let work = move || input_of(&hook, &payload.seen(&owner, &body));
                    compute(scope, work).await??
                }
            };
            let action = self.action_of(&payload, &target, (action_id, input), &body);
            payload.remember(action_id);
            let life = record.expires_at_ms.map(|at_ms| {
                std::time::Duration::from_millis(at_ms.saturating_sub(self.inner.clock.now_ms()).max(1))
            });
            let mut writes = vec![
                put((PAYLOAD, record.id.clone()), Expect::Version(record.version), life, &payload)?,
                self.event(scope, self.event_about(&payload, outcome.clone()))?,
            ];
            writes.extend(action.insertion(scope)?);
            match self.inner.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
                Ok(_) => {
                    self.inner.log.stored(scope);
                    return Ok(Accepted { id, outcome });
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(HookError::Changed { hook: name.to_string() })
    }

    /// Events, newest first.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn events(
        &self,
        scope: &Scope,
        request: &ListEvents<'_>,
    ) -> Result<Vec<Listed<HookEvent>>, HookError> {
        let prefix = scope.id_prefix();
        let mut after = request.after.map(|id| format!("{prefix}{id}"));
        let mut events = Vec::new();
        loop {
            let list =
                ListRecords { kind: EVENT, id_prefix: &prefix, after_id: after.as_deref(), limit: PAGE };
            let records = self.inner.store.list_records(list).await?;
            for record in &records {
                let read = decode::<StoredEvent>(record)
                    .and_then(|event| Ok(event.shown(uuid_of(record)?, record.version)));
                let row = Listed::of(read, record.id.strip_prefix(&prefix).unwrap_or(&record.id));
                // Of what cannot be read the route is not known either.
                let is_wanted = request
                    .route
                    .is_none_or(|route| matches!(&row, Listed::Readable(event) if *route == event.route));
                if is_wanted {
                    events.push(row);
                }
                if events.len() == request.limit {
                    return Ok(events);
                }
            }
            after = records.last().map(|record| record.id.clone());
            if records.len() < PAGE {
                return Ok(events);
            }
        }
    }

    async fn read(&self, scope: &Scope, name: &HookName, id: Uuid) -> Result<(Record, Bytes), HookError> {
        let record_id = payload_id(scope, name, id);
        let unknown = || HookError::UnknownPayload { payload: id.to_string() };
        let record = self.inner.store.get_record(PAYLOAD, &record_id).await?.ok_or_else(unknown)?;
        let body = self.inner.store.get_record(BODY, &record_id).await?.ok_or_else(unknown)?.body;
        Ok((record, body))
    }
}
