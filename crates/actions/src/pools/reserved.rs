//! Ids of instances that callers cannot take: rooms start their calls under ids that follow from their own rows, and
//! rely on it that starting one twice is starting it once.

use crate::functions::{Scope, Trigger, keyed_id};

/// A room that starts calls under ids of its own: `{namespace}/{tenant}/{room}:{job}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    name: &'static str,
    trigger: Trigger,
}

impl Room {
    /// Runbooks: `runbook:` and the id of the job.
    pub const RUNBOOK: Room = Room { name: "runbook", trigger: Trigger::Runbook };

    /// Tasks of DAG runs: `dag:` and the id of the dispatch.
    pub const LEDGER: Room = Room { name: "dag", trigger: Trigger::Dag };

    /// Every room.
    pub const ALL: [Room; 2] = [Room::RUNBOOK, Room::LEDGER];

    /// Its name, as in ids.
    pub fn as_str(self) -> &'static str {
        self.name
    }

    /// What its calls are made by, as lists show it.
    pub fn trigger(self) -> Trigger {
        self.trigger
    }

    /// The instance of a job. Different jobs are different instances, whatever text they are.
    pub fn instance_id(self, scope: &Scope, job: &str) -> String {
        keyed_id(scope, self.name, job)
    }

    /// The room that an id belongs to, without its namespace and tenant.
    pub fn of(id: &str) -> Option<Room> {
        Room::ALL.into_iter().find(|room| has_kind(id, room.name))
    }
}

/// Whether an id is one of those that are made of keys of a kind.
fn has_kind(id: &str, kind: &str) -> bool {
    let rest = id.strip_prefix(kind);
    rest.is_some_and(|rest| rest.starts_with(':') || rest.starts_with("-sha256:"))
}

/// What ids begin with that Segno itself makes of keys: calls of functions, orchestrations that actions start, and the
/// calls of rooms. Each also stands for ids with the hash of a long key (`invoke-sha256:`).
const OF_KEYS: [&str; 2] = ["invoke", "start"];

/// What keys begin with under which actions and recurring actions call their functions.
const OF_ACTIONS: [&str; 2] = ["action:", "recurring:"];

/// What is reserved at the beginning of the key of a call; `None` when callers may take it.
pub fn reserved_key_prefix(key: &str) -> Option<&'static str> {
    OF_ACTIONS.into_iter().find(|prefix| key.starts_with(prefix))
}

/// What is reserved at the beginning of an id, without its namespace and tenant; `None` when callers may take it.
pub fn reserved_prefix(id: &str) -> Option<String> {
    let mut kinds = OF_KEYS.into_iter().chain(Room::ALL.map(Room::as_str));
    let kind = kinds.find(|kind| has_kind(id, kind))?;
    let end = id.find(':').map_or(id.len(), |colon| colon + 1);
    Some(id.get(..end).unwrap_or(kind).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{invocation_id, start_id};

    #[test]
    fn every_id_that_follows_from_a_key_is_reserved() {
        let scope = Scope::new("eu", "acme").unwrap();
        for key in ["step-1042", "rollback-7-a@b-undo user-0", "", &"k".repeat(999)] {
            let rooms = Room::ALL.map(|room| room.instance_id(&scope, key));
            for id in rooms.into_iter().chain([invocation_id(&scope, key), start_id(&scope, key)]) {
                let shown = id.strip_prefix("eu/acme/").unwrap();
                assert!(reserved_prefix(shown).is_some(), "{shown}");
            }
        }
        assert_eq!(Room::RUNBOOK.instance_id(&scope, "step-1042"), "eu/acme/runbook:step-1042");
    }

    #[test]
    fn other_ids_are_free() {
        for id in
            ["runbook", "runbooks:1", "a-runbook:1", "Runbook:1", "order:invoke:1", "invoked:x", "start", ""]
        {
            assert_eq!(reserved_prefix(id), None, "{id}");
        }
        assert_eq!(reserved_prefix("runbook:step-1").as_deref(), Some("runbook:"));
        assert_eq!(reserved_prefix("runbook-sha256:00").as_deref(), Some("runbook-sha256:"));
        assert_eq!(reserved_prefix("dag:dispatch:run1:extract:1").as_deref(), Some("dag:"));
        for (id, room) in [
            ("runbook:x", Some(Room::RUNBOOK)),
            ("dag:x", Some(Room::LEDGER)),
            ("dag-sha256:00", Some(Room::LEDGER)),
            ("dagger:x", None),
            ("invoke:x", None),
        ] {
            assert_eq!(Room::of(id), room, "{id}");
        }
        for (key, prefix) in
            [("action:1", Some("action:")), ("recurring:1", Some("recurring:")), ("x:1", None)]
        {
            assert_eq!(reserved_key_prefix(key), prefix);
        }
    }
}
