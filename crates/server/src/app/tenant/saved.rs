//! Views and queries that a tenant keeps under a name.
//!
//! Each is a record. Creating one also writes the tenant's gate, a record whose version orders
//! creations, so that two at a time cannot exceed the limit together.

use std::time::Duration;

use bytes::Bytes;
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite};
use segno_actions::{Listed, Unreadable, free_text};
use segno_api::saved::{Save, Saved, SavedKind};
use serde::{Deserialize, Serialize};

use super::Tenant;
use crate::access::timestamp;
use crate::operation;
use crate::problem::{Code, Refusal};

/// Kind of the records.
const KIND: &str = "segno.saved";

/// Kind of the record that orders creations of a tenant.
const GATE_KIND: &str = "segno.saved-gate";

/// The gate is needed while creations race, and is forgotten after that.
const GATE_LIFE: Duration = Duration::from_secs(3_600);

/// Views and queries of a tenant.
const MAX_SAVED: usize = 200;

/// Longest name in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Longest name of a page in bytes.
const MAX_PAGE_BYTES: usize = 64;

/// Longest filter or query in bytes.
const MAX_TEXT_BYTES: usize = 8_192;

/// How often a change is tried that meets another one.
const MAX_TRIES: usize = 8;

/// What must be true for a view or query to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveExpected {
    /// Anything.
    Anything,
    /// Nothing is saved under the name.
    Absent,
    /// This version is.
    Version(u64),
}

impl SaveExpected {
    /// Whether what is found under a name is as expected.
    fn check(self, name: &str, found: Option<u64>) -> Result<(), Refusal> {
        let detail = match (self, found) {
            (SaveExpected::Absent, Some(_)) => format!("something is saved under {name:?} already"),
            (SaveExpected::Version(wanted), found) if found != Some(wanted) => {
                let found =
                    found.map_or("it is deleted".to_owned(), |found| format!("it has version {found}"));
                format!("version {wanted} of {name:?} is expected, and {found}; read it again")
            }
            _ => return Ok(()),
        };
        Err(Refusal::new(Code::PreconditionFailed, detail))
    }
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct StoredSaved {
    kind: StoredKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    text: String,
    at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredKind {
    View,
    Query,
}

impl Tenant {
    /// Views and queries by name, after this one.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn saved(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed<Saved>>, Refusal> {
        let after = after.map(|name| self.stored(name));
        let request =
            ListRecords { kind: KIND, id_prefix: self.scope.prefix(), after_id: after.as_deref(), limit };
        let records = self.resources().store.list_records(request).await?;
        let listed = records.into_iter().filter_map(|record| {
            let id = self.scope.shown(&record.id)?.to_owned();
            Some(match read(id.clone(), &record) {
                Ok(saved) => Listed::Readable(saved),
                Err(error) => Listed::Unreadable(Unreadable { id, reason: error.to_string() }),
            })
        });
        Ok(listed.collect())
    }

    /// One view or query.
    ///
    /// # Errors
    /// `not-found` when nothing is saved under this name, `stored-data-unreadable`.
    pub async fn saved_one(&self, name: &str) -> Result<Saved, Refusal> {
        let record = self.resources().store.get_record(KIND, &self.stored(name)).await?;
        let record = record.ok_or_else(|| nothing(name))?;
        read(name.to_owned(), &record).map_err(|error| {
            tracing::error!(%error, name, "a saved view or query cannot be read");
            let detail = format!("what is saved under {name:?} cannot be read; save it anew or delete it");
            Refusal::new(Code::StoreDamaged, detail)
        })
    }

    /// Saves a view or query; whether it is new.
    ///
    /// # Errors
    /// `invalid-request`, `precondition-failed`, `too-many-saved`.
    pub async fn save(
        &self,
        name: &str,
        save: Save,
        expected: SaveExpected,
    ) -> Result<(Saved, bool), Refusal> {
        check(name, &save)?;
        let stored = StoredSaved {
            kind: match save.kind {
                SavedKind::View => StoredKind::View,
                SavedKind::Query => StoredKind::Query,
            },
            page: save.page,
            text: save.text,
            at_ms: self.app.clock.now_ms(),
            key: self.key.as_deref().map(str::to_owned),
        };
        let body = serde_json::to_vec(&stored).map_err(|error| {
            tracing::error!(%error, "a view or query cannot be stored");
            Refusal::new(Code::Internal, "it cannot be stored; the server's log has the reason")
        })?;
        for _ in 0..MAX_TRIES {
            let (writes, is_new) = self.writes_of(name, &body, expected).await?;
            let batch = RecordBatch { writes, ..RecordBatch::default() };
            match self.resources().store.commit_records(batch).await {
                Ok(versions) => {
                    let version = versions.first().copied().unwrap_or_default();
                    return Ok((shown(name.to_owned(), version, stored), is_new));
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::unavailable("others save at the same time", operation::effect()))
    }

    /// The writes that save it under what is there now, and whether it is new.
    async fn writes_of(
        &self,
        name: &str,
        body: &[u8],
        expected: SaveExpected,
    ) -> Result<(Vec<RecordWrite>, bool), Refusal> {
        let store = &self.resources().store;
        let gate = store.get_record(GATE_KIND, self.scope.prefix()).await?;
        let there = store.get_record(KIND, &self.stored(name)).await?;
        let version = there.as_ref().map(|record| record.version);
        expected.check(name, version)?;
        let mut writes = vec![RecordWrite::Put {
            kind: KIND.to_owned(),
            id: self.stored(name),
            expect: version.map_or(Expect::Absent, Expect::Version),
            due_at_ms: None,
            time_to_live: None,
            body: body.to_vec().into(),
        }];
        if there.is_none() {
            let prefix = self.scope.prefix();
            let all = ListRecords { kind: KIND, id_prefix: prefix, after_id: None, limit: MAX_SAVED };
            if store.list_records(all).await?.len() >= MAX_SAVED {
                let detail = format!(
                    "the tenant has {MAX_SAVED} saved views and queries, the limit; delete one first"
                );
                return Err(Refusal::new(Code::TooManySaved, detail));
            }
            writes.push(RecordWrite::Put {
                kind: GATE_KIND.to_owned(),
                id: prefix.to_owned(),
                expect: gate.map_or(Expect::Absent, |gate| Expect::Version(gate.version)),
                due_at_ms: None,
                time_to_live: Some(GATE_LIFE),
                body: Bytes::new(),
            });
        }
        Ok((writes, there.is_none()))
    }

    /// Deletes a view or query, also one that cannot be read.
    ///
    /// # Errors
    /// `not-found` when nothing is saved under this name, `precondition-failed`.
    pub async fn delete_saved(&self, name: &str, expected: SaveExpected) -> Result<(), Refusal> {
        let store = &self.resources().store;
        let id = self.stored(name);
        for _ in 0..MAX_TRIES {
            let record = store.get_record(KIND, &id).await?.ok_or_else(|| nothing(name))?;
            expected.check(name, Some(record.version))?;
            let delete = RecordWrite::Delete {
                kind: KIND.to_owned(),
                id: id.clone(),
                expect: Expect::Version(record.version),
            };
            match store.commit_records(RecordBatch { writes: vec![delete], ..RecordBatch::default() }).await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::unavailable("others save at the same time", operation::effect()))
    }
}

fn nothing(name: &str) -> Refusal {
    Refusal::not_found("saved view or query", name)
}

fn check(name: &str, save: &Save) -> Result<(), Refusal> {
    let one_line = |field: &str, text: &str, max_bytes: usize| {
        if text.trim() != text || text.is_empty() {
            return Err(Refusal::field(field, "is empty, or begins or ends with a space"));
        }
        let problem = match text.chars().any(char::is_control) {
            true => Some("must be one line without control characters".to_owned()),
            false => free_text::problem(text, max_bytes),
        };
        problem.map_or(Ok(()), |problem| Err(Refusal::field(field, problem)))
    };
    // Clients take these out of paths.
    if matches!(name, "." | "..") {
        return Err(Refusal::field("name", "must not be a dot or two"));
    }
    one_line("name", name, MAX_NAME_BYTES)?;
    if let Some(page) = &save.page {
        one_line("page", page, MAX_PAGE_BYTES)?;
    }
    match free_text::problem(&save.text, MAX_TEXT_BYTES) {
        Some(problem) => Err(Refusal::field("text", problem)),
        None => Ok(()),
    }
}

fn read(name: String, record: &Record) -> Result<Saved, serde_json::Error> {
    Ok(shown(name, record.version, serde_json::from_slice(&record.body)?))
}

fn shown(name: String, version: u64, stored: StoredSaved) -> Saved {
    Saved {
        name,
        kind: match stored.kind {
            StoredKind::View => SavedKind::View,
            StoredKind::Query => SavedKind::Query,
        },
        page: stored.page,
        text: stored.text,
        saved_at: timestamp(stored.at_ms),
        saved_by: stored.key,
        version,
    }
}
