//! Recurring actions by their names: a secondary index of records.
//!
//! A name need not be unique, so an entry has the hash of the name and the id: those of one name are one prefix. Entries are
//! written in the commits that create, rename and delete an action. What was stored before there was an index is indexed by
//! the first search of a scope, which leaves a record that says so. An entry is a hint: the action that it leads to is read
//! and has to have the name.

use segno::store::{Expect, ListRecords, Record, RecordWrite};
use sha2::{Digest, Sha256};

use super::book::RecurringActions;
use super::model::RecurringAction;
use super::record::{RECURRING_KIND, decode, record_id};
use crate::action::ActionError;
use crate::functions::Scope;
use crate::listing::{Backfill, Indexed, index_once};

/// Kind of the entries.
const NAME_KIND: &str = "segno.recurring-name";

/// Kind of the records that say that a scope is indexed.
const BUILT_KIND: &str = "segno.recurring-name-built";

/// Most actions of one name that an error lists.
pub const MAX_CANDIDATES: usize = 10;

/// Records that are read, and entries that are written, at once.
const PAGE: usize = 500;

/// Names that no path leads to: routes and steps of their own.
const UNREACHABLE: [&str; 3] = ["preview", ".", ".."];

/// Refuses a name by which an action could not be asked for.
pub(super) fn check_name(name: &str) -> Result<(), ActionError> {
    match UNREACHABLE.contains(&name) {
        true => Err(ActionError::invalid("name", format!("cannot be {name:?}, which no path leads to"))),
        false => Ok(()),
    }
}

/// What the entries of a name begin with.
fn prefix_of(scope: &Scope, name: &str) -> String {
    let hash: String = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{hash}/", scope.id_prefix())
}

/// The write that lists an action under its name, if it has one.
pub(super) fn put(action: &RecurringAction) -> Option<RecordWrite> {
    let name = action.name.as_deref()?;
    Some(RecordWrite::Put {
        kind: NAME_KIND.to_owned(),
        id: format!("{}{}", prefix_of(&action.scope(), name), action.id),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: bytes::Bytes::new(),
    })
}

/// The write that lists an action under its name no more.
pub(super) fn delete(action: &RecurringAction) -> Option<RecordWrite> {
    let name = action.name.as_deref()?;
    let id = format!("{}{}", prefix_of(&action.scope(), name), action.id);
    Some(RecordWrite::Delete { kind: NAME_KIND.to_owned(), id, expect: Expect::Anything })
}

/// The writes of a change that may have given an action another name.
pub(super) fn renamed(before: &RecurringAction, after: &RecurringAction) -> Vec<RecordWrite> {
    if before.name == after.name {
        return Vec::new();
    }
    delete(before).into_iter().chain(put(after)).collect()
}

impl RecurringActions {
    /// The recurring action of a name.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `ambiguous-name` when there are several.
    pub(super) async fn named(&self, scope: &Scope, name: &str) -> Result<Record, ActionError> {
        let backfill = Backfill { of: RECURRING_KIND, built: BUILT_KIND, scope };
        let indexed =
            index_once(&*self.store, backfill, |record, _| put(&decode(record).ok()?.action)).await?;
        let mut found = match indexed {
            Indexed::Wholly => self.entries_of(scope, name).await?,
            Indexed::Partly => self.records_of(scope, name).await?,
        };
        match found.len() {
            0 => Err(ActionError::Unknown { what: "recurring action", id: name.chars().take(64).collect() }),
            1 => Ok(found.remove(0).1),
            _ => Err(ambiguous(name, &found)),
        }
    }

    /// The recurring actions of a name by the index, with their ids: not many more than [`MAX_CANDIDATES`].
    async fn entries_of(&self, scope: &Scope, name: &str) -> Result<Vec<(String, Record)>, ActionError> {
        let prefix = prefix_of(scope, name);
        let mut found = Vec::new();
        let mut after = None::<String>;
        loop {
            let request =
                ListRecords { kind: NAME_KIND, id_prefix: &prefix, after_id: after.as_deref(), limit: PAGE };
            let entries = self.store.list_records(request).await?;
            for entry in &entries {
                let id = entry.id.strip_prefix(&prefix).unwrap_or_default();
                let record = self.store.get_record(RECURRING_KIND, &record_id(scope, id)).await?;
                found.extend(
                    record.filter(|record| has_name(record, name)).map(|record| (id.to_owned(), record)),
                );
                if found.len() > MAX_CANDIDATES {
                    return Ok(found);
                }
            }
            match entries.last() {
                Some(last) if entries.len() == PAGE => after = Some(last.id.clone()),
                _ => return Ok(found),
            }
        }
    }

    /// The same without the index: all recurring actions of the scope are read.
    async fn records_of(&self, scope: &Scope, name: &str) -> Result<Vec<(String, Record)>, ActionError> {
        let prefix = scope.id_prefix();
        let mut found = Vec::new();
        let mut after = None::<String>;
        loop {
            let request = ListRecords {
                kind: RECURRING_KIND,
                id_prefix: &prefix,
                after_id: after.as_deref(),
                limit: PAGE,
            };
            let records = self.store.list_records(request).await?;
            after = records.last().filter(|_| records.len() == PAGE).map(|record| record.id.clone());
            for record in records.into_iter().filter(|record| has_name(record, name)) {
                let id = record.id.strip_prefix(&prefix).unwrap_or_default().to_owned();
                found.push((id, record));
            }
            if after.is_none() || found.len() > MAX_CANDIDATES {
                return Ok(found);
            }
        }
    }
}

fn has_name(record: &Record, name: &str) -> bool {
    decode(record).is_ok_and(|stored| stored.action.name.as_deref() == Some(name))
}

fn ambiguous(name: &str, found: &[(String, Record)]) -> ActionError {
    let candidates = found.iter().take(MAX_CANDIDATES).map(|(id, _)| id.clone()).collect();
    ActionError::Ambiguous { name: name.chars().take(64).collect(), candidates }
}
