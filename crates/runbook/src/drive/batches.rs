//! Creating batches, changing their members, and requests about them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use segno::store::{Expect, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::commit::row_write;
use super::counter;
use super::definitions::LoadedDefinitions;
use super::error::RunbookError;
use super::inbox::{digest, plain};
use super::lease;
use super::load::Loader;
use super::place::{BatchPlace, CREATION_KEYS};
use super::post::{self, Posting, read_receipt, timestamp};
use super::published::{BatchSummary, RunbookRow};
use super::receipt::Receipt;
use super::runbooks::Runbooks;
use crate::definition::Definition;
use crate::limits::{MAX_COLUMNS, MAX_MEMBER_KEY_CHARS, MAX_ROW_BYTES, MAX_SOURCE_ROWS};
use crate::members::check_start;
use crate::message::{Action, MemberEntry, Message, Request};
use crate::rows::{BatchId, Rows, Table, normal_key};
use crate::step::limits::{DISPATCH_TIMEOUT_SEC, MEMBERS_PER_MESSAGE, ROWS_PER_PART};
use crate::step::{Context, Input, StepTemplates, step};

/// Most members of a batch at its creation.
pub const MAX_BATCH_MEMBERS: usize = MAX_SOURCE_ROWS;

/// Most bytes of members in one message, unless a single member has more.
const MESSAGE_BYTES: usize = 512 * 1024;

/// Most bytes of messages in one commit.
const COMMIT_BYTES: usize = 4 * 1024 * 1024;

/// Longest key of a request or a creation in bytes.
const MAX_KEY_BYTES: usize = 256;

/// Counter from which requests without a key draw theirs.
const REQUEST_COUNTER: &str = "requests";

/// A batch to create.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewBatch {
    /// Name of the runbook.
    pub runbook: String,
    /// Version of the runbook; the active one if none is named.
    pub version: Option<u32>,
    /// Reference time of the phases; a batch without one is advanced by hand.
    pub batch_start_time: Option<Timestamp>,
    /// Its first members.
    pub members: Vec<MemberEntry>,
    /// A batch with the same key is created once.
    pub key: Option<String>,
    /// Who creates it.
    pub by: Option<String>,
}

/// Something requested of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedAction {
    /// A request with the same key is applied once; a fresh key is made if there is none.
    pub key: Option<String>,
    /// Who requests it.
    pub by: Option<String>,
    /// What is requested.
    pub action: Action,
}

impl RequestedAction {
    /// A request with a key.
    pub fn new(key: impl Into<String>, action: Action) -> Self {
        RequestedAction { key: Some(key.into()), by: None, action }
    }
}

/// The record of a key under which a batch was created.
#[derive(Debug, Serialize, Deserialize)]
struct Creation {
    batch_id: BatchId,
    /// Digest of what was to be created.
    digest: String,
}

impl Runbooks {
    /// Creates a batch. It begins once all its members are stored. Creating it again under the same
    /// key goes on where the first attempt ended.
    ///
    /// # Errors
    /// `unknown-runbook`, `invalid-batch`, `idempotency-mismatch`, `stored-data-unreadable`, `store`.
    pub async fn create_batch(&self, scope: &Scope, new: NewBatch) -> Result<BatchId, RunbookError> {
        check_key(new.key.as_deref())?;
        let members = checked_members(new.members.clone())?;
        if members.is_empty() {
            return Err(RunbookError::invalid("members", "is empty; a batch needs at least one member"));
        }
        if let Some(start) = new.batch_start_time {
            self.check_start(start).await?;
        }
        let row = self.version(scope, &new.runbook, new.version).await?;
        let definition = self.definitions.get(scope, &row.name, row.version).await?;
        let mut messages = member_requests("members", new.by.as_deref(), members, &Members::Put);
        messages.push(Request { key: "seal".to_owned(), by: new.by.clone(), action: Action::Seal });
        let mut commits = by_commit(messages);
        let first = commits.remove(0);
        let creation = Creator { runbooks: self, scope, new: &new, row: &row, definition };
        let batch_id = creation.create(&first).await?;
        let place = BatchPlace::new(scope.clone(), batch_id);
        for messages in commits {
            post::post(&*self.store, &place, &messages).await?;
        }
        Ok(batch_id)
    }

    /// Adds members to a batch, updates the data of those that exist, and takes back those that had
    /// left.
    ///
    /// # Errors
    /// `unknown-batch`, `invalid-batch`, `idempotency-mismatch`, `store`.
    pub async fn put_members(
        &self,
        scope: &Scope,
        batch: BatchId,
        members: Vec<MemberEntry>,
        (key, by): (&str, Option<&str>),
    ) -> Result<Vec<Receipt>, RunbookError> {
        let members = checked_members(members)?;
        self.post_all(scope, batch, member_requests(key, by, members, &Members::Put)).await
    }

    /// Removes members from a batch by their keys.
    ///
    /// # Errors
    /// `unknown-batch`, `invalid-batch`, `idempotency-mismatch`, `store`.
    pub async fn remove_members(
        &self,
        scope: &Scope,
        batch: BatchId,
        keys: Vec<String>,
        (key, by): (&str, Option<&str>),
    ) -> Result<Vec<Receipt>, RunbookError> {
        let empty = |key| MemberEntry { key, data: serde_json::Map::new(), digest: String::new() };
        let members: Vec<MemberEntry> = keys.into_iter().map(empty).collect();
        self.post_all(scope, batch, member_requests(key, by, members, &Members::Remove)).await
    }

    /// Requests something of a batch. The receipt tells what became of it.
    ///
    /// # Errors
    /// `unknown-batch`, `invalid-batch` for requests that have another door, `idempotency-mismatch`, `store`.
    pub async fn request(
        &self,
        scope: &Scope,
        batch: BatchId,
        requested: RequestedAction,
    ) -> Result<Receipt, RunbookError> {
        let RequestedAction { key, by, action } = requested;
        let own_door = match &action {
            Action::CreateBatch { .. } | Action::Seal => Some("create the batch with its members instead"),
            Action::PublishVersion { .. } => Some("publish the version instead"),
            Action::PutMembers { .. } | Action::RemoveMembers { .. } => Some("change its members instead"),
            _ => None,
        };
        if let Some(advice) = own_door {
            let problem = format!("{:?} cannot be requested; {advice}", action.name().replace('-', "_"));
            return Err(RunbookError::invalid("action", problem));
        }
        match &action {
            Action::Reschedule { batch_start_time } => self.check_start(*batch_start_time).await?,
            Action::RetryMembers { batch_member_ids: Some(ids), .. } if ids.len() > MEMBERS_PER_MESSAGE => {
                let problem = format!(
                    "has {} members, the limit is {MEMBERS_PER_MESSAGE}; leave it out to retry all that failed",
                    ids.len()
                );
                return Err(RunbookError::invalid("batch_member_ids", problem));
            }
            _ => {}
        }
        let key = match key {
            Some(key) => key,
            None => self.fresh_key(scope).await?,
        };
        let receipts = self.post_all(scope, batch, vec![Request { key, by, action }]).await?;
        receipts.into_iter().next().ok_or(RunbookError::UnknownBatch(batch))
    }

    async fn check_start(&self, start: Timestamp) -> Result<(), RunbookError> {
        let wrong = |problem| RunbookError::invalid("batch_start_time", problem);
        check_start(start, self.now().await?).map_err(wrong)
    }

    /// What became of a request; `None` if there was none with the key, or long ago.
    ///
    /// # Errors
    /// `store`.
    pub async fn receipt(
        &self,
        scope: &Scope,
        batch: BatchId,
        key: &str,
    ) -> Result<Option<Receipt>, RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        Ok(read_receipt(&*self.store, &place, key).await?)
    }

    async fn fresh_key(&self, scope: &Scope) -> Result<String, RunbookError> {
        let number = counter::reserve(&*self.store, scope, REQUEST_COUNTER, 1).await?.start;
        Ok(format!("auto-{number}"))
    }

    /// Posts requests one after the other: each is posted once, also when the caller tries again.
    async fn post_all(
        &self,
        scope: &Scope,
        batch: BatchId,
        requests: Vec<Request>,
    ) -> Result<Vec<Receipt>, RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        let mut receipts = Vec::new();
        for request in requests {
            check_key(Some(&request.key))?;
            match post::post(&*self.store, &place, std::slice::from_ref(&request)).await? {
                Posting::Posted(posted) => receipts.extend(posted),
                Posting::NoBatch => return Err(RunbookError::UnknownBatch(batch)),
                Posting::Before(receipt) => {
                    let now = timestamp(0);
                    let wanted = Receipt::waiting(&Message::Request(request), now);
                    if wanted.is_some_and(|wanted| wanted.digest != receipt.digest) {
                        return Err(RunbookError::KeyUsed { key: receipt.key });
                    }
                    receipts.push(receipt);
                }
            }
        }
        Ok(receipts)
    }
}

/// A batch that is being created.
pub(super) struct Creator<'a> {
    pub(super) runbooks: &'a Runbooks,
    pub(super) scope: &'a Scope,
    pub(super) new: &'a NewBatch,
    pub(super) row: &'a RunbookRow,
    pub(super) definition: Arc<Definition>,
}

impl Creator<'_> {
    /// Commits the batch with its phases, init steps and first messages. Returns the batch of an
    /// earlier attempt under the same key.
    async fn create(&self, messages: &[Request]) -> Result<BatchId, RunbookError> {
        let store = &*self.runbooks.store;
        let digest = self.digest();
        if let Some(batch) = self.find_earlier(&digest).await? {
            return Ok(batch);
        }
        let batch_id = BatchId(counter::reserve(store, self.scope, Table::Batches.name(), 1).await?.start);
        let place = BatchPlace::new(self.scope.clone(), batch_id);
        let mut writes = self.rows(&place).await?;
        let now_ms = store.now_ms().await?;
        writes.extend(post::writes(&place, messages, now_ms).0);
        writes.push(lease::first(&place, now_ms));
        if let Some(key) = &self.new.key {
            let creation = Creation { batch_id, digest: digest.clone() };
            writes.push(RecordWrite::Put {
                kind: CREATION_KEYS.to_owned(),
                id: self.key_id(key),
                expect: Expect::Absent,
                due_at_ms: None,
                time_to_live: None,
                body: serde_json::to_vec(&creation).expect("it has plain fields").into(),
            });
        }
        loop {
            let mut all = writes.clone();
            all.push(self.guard().await?);
            if self.runbooks.commit(all).await? {
                return Ok(batch_id);
            }
            // Another caller with the same key was first; or the runbook has changed, and is looked at again.
            if let Some(batch) = self.find_earlier(&digest).await? {
                return Ok(batch);
            }
        }
    }

    /// Writes the head of the runbook as it is, so that the version is not deleted meanwhile.
    async fn guard(&self) -> Result<RecordWrite, RunbookError> {
        let RunbookRow { name, version, .. } = self.row;
        let unknown = || RunbookError::UnknownRunbook { name: name.clone(), version: Some(*version) };
        let head = self.runbooks.find_head(self.scope, name).await?.ok_or_else(unknown)?;
        self.runbooks.find_version(self.scope, name, *version).await?;
        Ok(head.value.write(self.scope, Expect::Version(head.version)))
    }

    /// The rows of the batch before it has members.
    pub(super) async fn rows(&self, place: &BatchPlace) -> Result<Vec<RecordWrite>, RunbookError> {
        let Runbooks { store, definitions } = self.runbooks;
        let loader = Loader { store: &**store, place, definitions };
        let mut known = LoadedDefinitions::from([(self.row.version, Arc::clone(&self.definition))]);
        let action = Action::CreateBatch {
            batch_id: place.batch,
            runbook_id: self.row.id,
            runbook_name: self.row.name.clone(),
            runbook_version: self.row.version,
            batch_start_time: self.new.batch_start_time,
        };
        let request = Request { key: "create".to_owned(), by: self.new.by.clone(), action };
        let input = Input::Message(Message::Request(request));
        let mut rows = Rows::new(None, Vec::new(), Vec::new());
        let now = self.runbooks.now().await?;
        loop {
            let context = Context {
                now,
                definitions: &known,
                templates: &StepTemplates,
                zones: definitions.zones(),
                rows_per_part: ROWS_PER_PART,
                dispatch_timeout_sec: DISPATCH_TIMEOUT_SEC,
            };
            match step(&mut rows, &input, &context) {
                Ok(_) => break,
                Err(missing) => loader.load(&mut rows, &mut known, &self.row.name, missing.0).await?,
            }
        }
        let mut writes: Vec<RecordWrite> = Vec::new();
        writes.extend(rows.batch().map(|batch| BatchSummary::write(place, batch)));
        for row in rows.take_changes().rows {
            writes.push(row_write(place, &row)?);
        }
        Ok(writes)
    }

    async fn find_earlier(&self, digest: &str) -> Result<Option<BatchId>, RunbookError> {
        let Some(key) = &self.new.key else { return Ok(None) };
        let id = self.key_id(key);
        let Some(record) = self.runbooks.store.get_record(CREATION_KEYS, &id).await? else {
            return Ok(None);
        };
        let creation: Creation =
            serde_json::from_slice(&record.body).map_err(|error| RunbookError::Unreadable {
                what: format!("record {id} of {CREATION_KEYS}"),
                reason: error.to_string(),
            })?;
        if creation.digest != digest {
            return Err(RunbookError::KeyUsed { key: key.clone() });
        }
        Ok(Some(creation.batch_id))
    }

    fn key_id(&self, key: &str) -> String {
        format!("{}{}", self.scope.id_prefix(), plain(key))
    }

    /// A digest of what was asked for. The version is not part of it unless it was named.
    fn digest(&self) -> String {
        let NewBatch { runbook, version, batch_start_time, members, .. } = self.new;
        let body = serde_json::to_vec(&(runbook, version, batch_start_time, members));
        digest(&body.expect("members are JSON with text keys"))
    }
}

/// What happens to listed members.
pub(super) enum Members {
    Put,
    Remove,
}

/// Messages with members, each of a bounded size.
pub(super) fn member_requests(
    key: &str,
    by: Option<&str>,
    members: Vec<MemberEntry>,
    what: &Members,
) -> Vec<Request> {
    let mut lists: Vec<Vec<MemberEntry>> = Vec::new();
    let mut bytes = 0;
    for entry in members {
        let size = entry.key.len() + serde_json::to_string(&entry.data).map_or(0, |text| text.len());
        bytes += size;
        match lists.last_mut() {
            Some(list) if list.len() < MEMBERS_PER_MESSAGE && bytes <= MESSAGE_BYTES => list.push(entry),
            _ => {
                bytes = size;
                lists.push(vec![entry]);
            }
        }
    }
    let request = |(index, list): (usize, Vec<MemberEntry>)| Request {
        key: format!("{key}-{:06}", index + 1),
        by: by.map(str::to_owned),
        action: match what {
            Members::Put => Action::PutMembers { members: list },
            Members::Remove => {
                Action::RemoveMembers { keys: list.into_iter().map(|entry| entry.key).collect() }
            }
        },
    };
    lists.into_iter().enumerate().map(request).collect()
}

/// Messages in lists that each fit into a commit; at least one list.
fn by_commit(messages: Vec<Request>) -> Vec<Vec<Request>> {
    let mut commits: Vec<Vec<Request>> = vec![Vec::new()];
    let mut bytes = 0;
    for message in messages {
        let size = serde_json::to_vec(&message).map_or(0, |body| body.len());
        bytes += size;
        match commits.last_mut() {
            Some(list) if list.is_empty() || bytes <= COMMIT_BYTES => list.push(message),
            _ => {
                bytes = size;
                commits.push(vec![message]);
            }
        }
    }
    commits
}

fn check_key(key: Option<&str>) -> Result<(), RunbookError> {
    match key {
        Some("") => Err(RunbookError::invalid("key", "is empty; leave it out, or write a text")),
        Some(key) if key.len() > MAX_KEY_BYTES => {
            let problem = format!("has {} bytes, the limit is {MAX_KEY_BYTES}", key.len());
            Err(RunbookError::invalid("key", problem))
        }
        _ => Ok(()),
    }
}

/// Members whose keys are unique and whose rows are within their limits, with their digests.
fn checked_members(mut members: Vec<MemberEntry>) -> Result<Vec<MemberEntry>, RunbookError> {
    let wrong = |problem: String| Err(RunbookError::invalid("members", problem));
    if members.len() > MAX_BATCH_MEMBERS {
        return wrong(format!("has {} members, the limit is {MAX_BATCH_MEMBERS}", members.len()));
    }
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(members.len());
    for (index, entry) in members.iter_mut().enumerate() {
        let shown = segno_actions::document::shown(&entry.key);
        if entry.key.trim().is_empty() {
            return wrong(format!("member {} has no key; fill in its primary key column", index + 1));
        }
        if entry.key.chars().count() > MAX_MEMBER_KEY_CHARS {
            return wrong(format!("key {shown:?} is longer than {MAX_MEMBER_KEY_CHARS} characters"));
        }
        if entry.data.len() > MAX_COLUMNS {
            return wrong(format!(
                "member {shown:?} has {} columns, the limit is {MAX_COLUMNS}",
                entry.data.len()
            ));
        }
        let body = serde_json::to_vec(&entry.data).expect("columns are JSON with text keys");
        if body.len() > MAX_ROW_BYTES {
            return wrong(format!("member {shown:?} has {} bytes, the limit is {MAX_ROW_BYTES}", body.len()));
        }
        if let Some(first) = seen.insert(normal_key(&entry.key), index) {
            let problem = format!(
                "key {shown:?} of member {} is that of member {} too; keys are compared without letter case",
                index + 1,
                first + 1
            );
            return wrong(problem);
        }
        if entry.digest.is_empty() {
            entry.digest = digest(&body);
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn entry(key: &str) -> MemberEntry {
        MemberEntry { key: key.to_owned(), data: serde_json::Map::new(), digest: String::new() }
    }

    #[test]
    fn members_that_cannot_be_are_refused() {
        let long = "k".repeat(MAX_MEMBER_KEY_CHARS + 1);
        for (members, words) in [
            (vec![entry("a"), entry("A")], "is that of member 1 too"),
            (vec![entry(" ")], "has no key"),
            (vec![entry(&long)], "longer than 256 characters"),
        ] {
            let error = checked_members(members).unwrap_err();
            assert_eq!(error.code(), "invalid-batch");
            assert!(error.to_string().contains(words), "{error}");
        }
        let good = checked_members(vec![entry("a"), entry("b")]).unwrap();
        let digests: BTreeSet<&str> = good.iter().map(|entry| entry.digest.as_str()).collect();
        assert_eq!(digests.len(), 1, "equal data has equal digests");
    }

    #[test]
    fn long_lists_are_split() {
        let members = (0..1_201).map(|number| entry(&number.to_string())).collect();
        let requests = member_requests("members", None, members, &Members::Put);
        let keys: Vec<&str> = requests.iter().map(|request| request.key.as_str()).collect();
        assert_eq!(keys, ["members-000001", "members-000002", "members-000003"]);
        assert_eq!(by_commit(requests).len(), 1);
    }
}
