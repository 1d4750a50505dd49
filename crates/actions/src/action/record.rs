//! How actions are stored.
//!
//! | kind | id | due | what |
//! |---|---|---|---|
//! | `segno.action` | `namespace/tenant/uuid` | its time, while it is pending | the action, as JSON |
//! | `segno.action-run` | the same | when a node should look after it | that the action runs |
//! | `segno.action-retire` | the same | when it is to be archived | that the action has ended |
//! | `segno.action-order` | `namespace/tenant/` and its [place](crate::listing::Place) | | nothing: the listing, newest first |
//! | `segno.action-running` | the same | | nothing: the listing of those that run |
//! | `segno.action-order-built`, `segno.action-running-built` | `namespace/tenant/` | | nothing: that the listing is complete |
//!
//! So the due index has what waits and nothing else, and what runs is found without reading what waits or has ended.
//!
//! Only a new action can be refused for its size. One that is stored always ends: a result that does not fit is left out with a note.

use std::time::Duration;

use jiff::Timestamp;
use segno::Payload;
use segno::store::{Expect, Record, RecordWrite};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::ActionError;
use super::model::{Action, ActionStatus};
use crate::functions::{Namespace, Scope, Tenant};
use crate::keep::Keep;
use crate::listing::{Index, Place};
use crate::moment::due_ms;

/// Kind of the records that are actions.
pub const ACTION_KIND: &str = "segno.action";

/// Kind of the records that say that an action runs.
pub const ACTION_RUN_KIND: &str = "segno.action-run";

/// Kind of the records that say when an action that has ended is to be archived.
pub const ACTION_RETIRE_KIND: &str = "segno.action-retire";

/// The form in which actions are stored.
const FORMAT: u32 = 1;

/// Largest stored action in bytes.
const MAX_ACTION_BYTES: usize = 8 * 1024 * 1024;

/// What a new action leaves free of that for what becomes of it, in bytes.
const HEADROOM_BYTES: usize = 256 * 1024;

/// The longest reason of a failure in a record that would be too large otherwise, in characters.
const MAX_REASON_CHARS: usize = 4_000;

/// All actions, newest first.
pub(crate) const LISTING: Index =
    Index { of: ACTION_KIND, entries: "segno.action-order", built: "segno.action-order-built" };

/// Those that run, newest first.
pub(crate) const RUNNING: Index =
    Index { of: ACTION_KIND, entries: "segno.action-running", built: "segno.action-running-built" };

/// How long after its start an action is looked after for the first time, should its end not have come.
pub(crate) const FIRST_CHECK: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Body {
    format: u32,
    namespace: Namespace,
    tenant: Tenant,
    action: Action,
}

/// An action as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAction {
    /// Whose it is.
    pub scope: Scope,
    /// The version of its record.
    pub version: u64,
    /// The action.
    pub action: Action,
}

impl StoredAction {
    /// Reads the record of an action.
    ///
    /// # Errors
    /// `stored-data-unreadable`.
    pub fn read(record: &Record) -> Result<Self, ActionError> {
        decode(record)
    }

    /// The writes that remove it, on condition that it is as it was read.
    pub fn removal(&self) -> Vec<RecordWrite> {
        let delete = RecordWrite::Delete {
            kind: ACTION_KIND.to_owned(),
            id: record_id(&self.scope, self.action.id),
            expect: Expect::Version(self.version),
        };
        let place = self.action.place();
        let indexes = [LISTING, RUNNING].map(|index| index.delete(&self.scope, place));
        std::iter::once(delete).chain(indexes).collect()
    }
}

/// The id of an action's records.
pub(crate) fn record_id(scope: &Scope, id: Uuid) -> String {
    format!("{}{id}", scope.id_prefix())
}

/// Reads a record.
pub(crate) fn decode(record: &Record) -> Result<StoredAction, ActionError> {
    let unreadable = |reason: String| ActionError::Unreadable {
        what: format!("the stored action {:?}", record.id),
        reason,
    };
    let body: Body = serde_json::from_slice(&record.body).map_err(|error| unreadable(error.to_string()))?;
    if body.format != FORMAT {
        return Err(unreadable(format!("its format is {}, this version reads {FORMAT}", body.format)));
    }
    let scope = Scope { namespace: body.namespace, tenant: body.tenant };
    if record.id != record_id(&scope, body.action.id) {
        return Err(unreadable(format!("it is that of action {}{}", scope.id_prefix(), body.action.id)));
    }
    Ok(StoredAction { scope, version: record.version, action: body.action })
}

/// Where the action of a record is listed. One that cannot be read comes last.
pub(crate) fn place_of(record: &Record) -> Option<Place> {
    match decode(record) {
        Ok(stored) => Some(stored.action.place()),
        Err(_) => {
            let (_, id) = record.id.rsplit_once('/')?;
            Some(Place::new(Timestamp::UNIX_EPOCH, id.parse().ok()?))
        }
    }
}

/// The same for the listing of those that run.
pub(crate) fn running_place_of(record: &Record) -> Option<Place> {
    let action = decode(record).ok()?.action;
    (action.status == ActionStatus::Running).then(|| action.place())
}

impl Action {
    /// Where it is listed.
    pub fn place(&self) -> Place {
        Place::new(self.created_at, self.id)
    }

    /// The writes that store this action as a new one, for a commit that also stores what it belongs to.
    ///
    /// # Errors
    /// `invalid-action` when a field is wrong, or when the action is not pending.
    pub fn insertion(&self, scope: &Scope) -> Result<Vec<RecordWrite>, ActionError> {
        if self.status != ActionStatus::Pending {
            return Err(ActionError::invalid("status", "a new action must be pending"));
        }
        self.check()?;
        self.check_input()?;
        self.check_size(scope)?;
        self.next_insertion(scope)
    }

    /// The same for the next run of an action, which is not larger than that one.
    pub(crate) fn next_insertion(&self, scope: &Scope) -> Result<Vec<RecordWrite>, ActionError> {
        Ok(vec![put(scope, self, Expect::Absent, None)?, LISTING.put(scope, self.place(), None)])
    }

    /// Refuses a new action that leaves no room for what becomes of it.
    pub(crate) fn check_size(&self, scope: &Scope) -> Result<(), ActionError> {
        let (bytes, limit) = (encode(scope, self)?.len(), MAX_ACTION_BYTES - HEADROOM_BYTES);
        if bytes <= limit {
            return Ok(());
        }
        let problem = format!("it has {bytes} bytes, the limit is {limit}; store large data elsewhere");
        Err(ActionError::invalid("input", problem))
    }

    /// Leaves out of an action that has ended what does not fit into its record, and says so.
    fn fit(&mut self) {
        match &mut self.status {
            ActionStatus::Completed { result } => {
                let bytes = result.as_str().len();
                *result = Payload::null();
                let instance = self.instance.as_deref().unwrap_or_default();
                let place = if instance.is_empty() { "" } else { "; its instance has it" };
                self.note = Some(format!(
                    "the result has {bytes} bytes and is left out: an action has at most {MAX_ACTION_BYTES} bytes with its input{place}"
                ));
            }
            ActionStatus::Failed { reason } => {
                *reason = reason.chars().take(MAX_REASON_CHARS).collect();
            }
            ActionStatus::Pending | ActionStatus::Running => {}
        }
    }

    /// The writes that store this action in whatever state: itself, and whether it runs.
    pub(crate) fn writes(
        &self,
        scope: &Scope,
        expect: Expect,
        keep: Keep,
    ) -> Result<Vec<RecordWrite>, ActionError> {
        let keep = Some(keep).filter(|_| self.status.is_final());
        let life = keep.and_then(Keep::life);
        let (is_new, runs) = (expect == Expect::Absent, self.status == ActionStatus::Running);
        let mut writes = vec![put(scope, self, expect, life)?, self.run_write(scope)];
        // What begins to run is listed already.
        if is_new || !runs {
            writes.push(LISTING.put(scope, self.place(), life));
        }
        match runs {
            true => writes.push(RUNNING.put(scope, self.place(), None)),
            false => writes.push(RUNNING.delete(scope, self.place())),
        }
        if let Some(due_at_ms) = keep.and_then(|keep| keep.due_at_ms(self.updated_at)) {
            writes.push(RecordWrite::Put {
                kind: ACTION_RETIRE_KIND.to_owned(),
                id: record_id(scope, self.id),
                expect: Expect::Anything,
                due_at_ms: Some(due_at_ms),
                time_to_live: None,
                body: bytes::Bytes::new(),
            });
        }
        Ok(writes)
    }

    /// The write that says whether it runs.
    fn run_write(&self, scope: &Scope) -> RecordWrite {
        let id = record_id(scope, self.id);
        if self.status != ActionStatus::Running {
            return RecordWrite::Delete { kind: ACTION_RUN_KIND.to_owned(), id, expect: Expect::Anything };
        }
        let check_ms = due_ms(self.updated_at).saturating_add(segno::clock::duration_ms(FIRST_CHECK));
        check_at(id, Expect::Anything, check_ms)
    }
}

/// The write that has somebody look after a running action at a time.
pub(crate) fn check_at(record_id: String, expect: Expect, at_ms: u64) -> RecordWrite {
    RecordWrite::Put {
        kind: ACTION_RUN_KIND.to_owned(),
        id: record_id,
        expect,
        due_at_ms: Some(at_ms),
        time_to_live: None,
        body: bytes::Bytes::new(),
    }
}

fn encode(scope: &Scope, action: &Action) -> Result<Vec<u8>, ActionError> {
    let (namespace, tenant) = (scope.namespace.clone(), scope.tenant.clone());
    let body = Body { format: FORMAT, namespace, tenant, action: action.clone() };
    serde_json::to_vec(&body)
        .map_err(|error| ActionError::invalid("action", format!("it has no JSON form: {error}")))
}

fn put(
    scope: &Scope,
    action: &Action,
    expect: Expect,
    time_to_live: Option<Duration>,
) -> Result<RecordWrite, ActionError> {
    let mut body = encode(scope, action)?;
    if body.len() > MAX_ACTION_BYTES && action.status.is_final() {
        let mut fitting = action.clone();
        fitting.fit();
        body = encode(scope, &fitting)?;
    }
    let is_pending = action.status == ActionStatus::Pending;
    Ok(RecordWrite::Put {
        kind: ACTION_KIND.to_owned(),
        id: record_id(scope, action.id),
        expect,
        due_at_ms: is_pending.then(|| due_ms(action.trigger.at())),
        time_to_live,
        body: body.into(),
    })
}
