//! What a query changes, sent to batches in parts. Each part is one commit: a message, the members
//! that it is about, and the lease of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use segno::store::RecordWrite;
use segno_actions::functions::Scope;

use super::claim::{Claim, Part};
use super::known::{SourceBatch, SourceMember, forget};
use super::row::QueryCounts;
use crate::definition::Definition;
use crate::drive::batches::{Creator, Members, NewBatch, member_requests};
use crate::drive::counter;
use crate::drive::error::{DriveError, RunbookError};
use crate::drive::lease;
use crate::drive::place::{BatchPlace, SOURCE_BATCHES};
use crate::drive::post;
use crate::drive::published::RunbookRow;
use crate::drive::runbooks::Runbooks;
use crate::message::{Action, MemberEntry, Request};
use crate::rows::{BatchId, Table, normal_key};
use crate::source::{BatchState, Difference, MissingMember, Removals};
use crate::step::limits::MEMBERS_PER_MESSAGE;

/// Whether batches take members, each looked up once in a run.
#[derive(Default)]
pub(super) struct BatchStates {
    found: BTreeMap<BatchId, BatchState>,
}

impl BatchStates {
    pub(super) async fn of(
        &mut self,
        runbooks: &Runbooks,
        scope: &Scope,
        batch: BatchId,
    ) -> Result<BatchState, DriveError> {
        if let Some(state) = self.found.get(&batch) {
            return Ok(*state);
        }
        let state = match runbooks.batch(scope, batch).await {
            Ok(row) if row.status.is_terminal() || row.ending.is_some() => BatchState::Ended,
            Ok(_) => BatchState::Open,
            Err(RunbookError::UnknownBatch(_)) => BatchState::Ended,
            Err(error) => return Err(drive_error(error, Table::Batches.name(), &batch.to_string())),
        };
        self.found.insert(batch, state);
        Ok(state)
    }
}

/// The version of a runbook that new batches follow.
pub(super) struct Active {
    pub(super) row: RunbookRow,
    pub(super) definition: Arc<Definition>,
}

/// Sends the difference of one run.
pub(super) struct Applier<'a> {
    pub(super) claim: &'a mut Claim,
    pub(super) runbooks: &'a Runbooks,
    pub(super) active: &'a Active,
    pub(super) states: &'a mut BatchStates,
    pub(super) counts: &'a mut QueryCounts,
    /// Lists of messages so far; their keys are made of it.
    pub(super) lists: u32,
}

impl Applier<'_> {
    /// Sends everything. What is held is marked, so that a decision is about these members only.
    pub(super) async fn apply(
        &mut self,
        mut difference: Difference,
        removals: &Removals,
    ) -> Result<(), DriveError> {
        let mut batches = std::mem::take(&mut difference.batches);
        self.forget(&difference.forgotten).await?;
        for (batch, missing) in &removals.removed {
            self.remove(*batch, missing).await?;
            for (start, entry) in missing.iter().filter_map(|missing| missing.moves_to.clone()) {
                difference.new.entry(start).or_default().push(entry);
            }
        }
        self.counts.changed += difference.changed_data() as u64;
        self.counts.added += difference.returned as u64;
        for ((batch, start), entries) in difference.changed {
            self.put(batch, start, entries, &Sent::ToMembers).await?;
        }
        let unfinished = self.claim.row.creating.filter(|start| !difference.new.contains_key(start));
        for (start, entries) in difference.new {
            self.add(start, entries, &mut batches).await?;
        }
        if let Some(start) = unfinished
            && let Some(batch) = self.find(start).await?
        {
            self.seal(batch).await?;
        }
        for missing in removals.held.values() {
            self.hold(missing).await?;
        }
        self.counts.batches = batches.len() as u64;
        Ok(())
    }

    async fn forget(&mut self, keys: &[String]) -> Result<(), DriveError> {
        for keys in keys.chunks(MEMBERS_PER_MESSAGE) {
            let (scope, runbook) = (&self.claim.scope, &self.claim.row.name);
            let writes = keys.iter().map(|key| forget(scope, runbook, key)).collect();
            self.claim.commit(Part { message: None, writes }).await?;
        }
        Ok(())
    }

    /// Removes members. Those that move to another batch are unknown until they are added there.
    async fn remove(&mut self, batch: BatchId, missing: &[MissingMember]) -> Result<(), DriveError> {
        let place = BatchPlace::new(self.claim.scope.clone(), batch);
        for missing in missing.chunks(MEMBERS_PER_MESSAGE) {
            let (scope, runbook) = (&self.claim.scope, &self.claim.row.name);
            let record = |missing: &MissingMember| match &missing.moves_to {
                Some(_) => forget(scope, runbook, &missing.member.key),
                None => source_member(missing, None, true).write(scope, runbook, &missing.member.key),
            };
            let writes = missing.iter().map(record).collect();
            let keys = missing.iter().map(|missing| missing.member.key.clone()).collect();
            let request = Request { key: self.key(), by: None, action: Action::RemoveMembers { keys } };
            self.claim.commit(Part { message: Some((&place, &request)), writes }).await?;
            self.counts.removed += missing.len() as u64;
        }
        Ok(())
    }

    /// Sends members to a batch that exists.
    async fn put(
        &mut self,
        batch: BatchId,
        start: Timestamp,
        entries: Vec<MemberEntry>,
        sent: &Sent,
    ) -> Result<(), DriveError> {
        let place = BatchPlace::new(self.claim.scope.clone(), batch);
        let key = self.key();
        for request in member_requests(&key, None, entries, &Members::Put) {
            let writes = self.members_of(&request, batch, start, sent);
            self.claim.commit(Part { message: Some((&place, &request)), writes }).await?;
        }
        Ok(())
    }

    /// Adds members to the batch of a start, which is created if there is none.
    async fn add(
        &mut self,
        start: Timestamp,
        entries: Vec<MemberEntry>,
        batches: &mut BTreeSet<BatchId>,
    ) -> Result<(), DriveError> {
        let count = entries.len() as u64;
        let is_creating = self.claim.row.creating == Some(start);
        let batch = match self.find(start).await? {
            Some(batch) => {
                let state = self.states.of(self.runbooks, &self.claim.scope, batch).await?;
                if state == BatchState::Ended {
                    self.counts.skipped += count;
                    self.counts.skipped_ended += count;
                    if is_creating {
                        self.claim.row.creating = None;
                    }
                    return Ok(());
                }
                let sent = if is_creating { Sent::First } else { Sent::Late };
                self.put(batch, start, entries, &sent).await?;
                batch
            }
            None => self.create(start, entries).await?,
        };
        if self.claim.row.creating == Some(start) {
            self.seal(batch).await?;
        }
        self.counts.added += count;
        batches.insert(batch);
        Ok(())
    }

    /// Creates a batch with its first members. It begins once it is sealed.
    async fn create(&mut self, start: Timestamp, entries: Vec<MemberEntry>) -> Result<BatchId, DriveError> {
        let store = Arc::clone(self.claim.store());
        let id = counter::reserve(&*store, &self.claim.scope, Table::Batches.name(), 1).await?.start;
        let place = BatchPlace::new(self.claim.scope.clone(), BatchId(id));
        let Active { row, definition } = self.active;
        let new = NewBatch { batch_start_time: Some(start), ..NewBatch::default() };
        let (scope, definition) = (&place.scope, Arc::clone(definition));
        let creator = Creator { runbooks: self.runbooks, scope, new: &new, row, definition };
        let rows = creator.rows(&place).await;
        let mut writes = rows.map_err(|error| drive_error(error, Table::Batches.name(), &place.id()))?;
        let mut requests = member_requests("members", None, entries, &Members::Put).into_iter();
        let now_ms = store.now_ms().await?;
        if let Some(first) = requests.next() {
            writes.extend(self.members_of(&first, place.batch, start, &Sent::First));
            writes.extend(post::writes(&place, &[first], now_ms).0);
        }
        writes.push(lease::first(&place, now_ms));
        let of_start = SourceBatch { batch_id: place.batch };
        writes.push(of_start.write(&place.scope, &self.claim.row.name, start));
        self.claim.row.creating = Some(start);
        self.claim.commit(Part { message: None, writes }).await?;
        self.counts.created += 1;
        for request in requests {
            let writes = self.members_of(&request, place.batch, start, &Sent::First);
            self.claim.commit(Part { message: Some((&place, &request)), writes }).await?;
        }
        Ok(place.batch)
    }

    /// All first members were sent.
    async fn seal(&mut self, batch: BatchId) -> Result<(), DriveError> {
        let place = BatchPlace::new(self.claim.scope.clone(), batch);
        let request = Request { key: "seal".to_owned(), by: None, action: Action::Seal };
        self.claim.row.creating = None;
        self.claim.commit(Part { message: Some((&place, &request)), writes: Vec::new() }).await
    }

    /// Marks members whose removal waits for approval.
    async fn hold(&mut self, missing: &[MissingMember]) -> Result<(), DriveError> {
        let run = self.claim.row.run;
        let unmarked: Vec<&MissingMember> =
            missing.iter().filter(|missing| missing.member.held.is_none()).collect();
        for unmarked in unmarked.chunks(MEMBERS_PER_MESSAGE) {
            let (scope, runbook) = (&self.claim.scope, &self.claim.row.name);
            let record = |missing: &&MissingMember| {
                source_member(missing, Some(run), false).write(scope, runbook, &missing.member.key)
            };
            let writes = unmarked.iter().map(record).collect();
            self.claim.commit(Part { message: None, writes }).await?;
        }
        Ok(())
    }

    /// The batch that a query has created for a start.
    async fn find(&self, start: Timestamp) -> Result<Option<BatchId>, DriveError> {
        let id = SourceBatch::id(&self.claim.scope, &self.claim.row.name, start);
        let record = self.claim.store().get_record(SOURCE_BATCHES, &id).await?;
        Ok(record.map(|record| SourceBatch::read(&record)).transpose()?.map(|found| found.batch_id))
    }

    /// What is known of the members of a message.
    fn members_of(
        &self,
        request: &Request,
        batch_id: BatchId,
        start: Timestamp,
        sent: &Sent,
    ) -> Vec<RecordWrite> {
        let Action::PutMembers { members } = &request.action else { return Vec::new() };
        let (scope, runbook) = (&self.claim.scope, &self.claim.row.name);
        let record = |entry: &MemberEntry| {
            let member = SourceMember {
                batch_id,
                start,
                digest: entry.digest.clone(),
                is_gone: false,
                held: None,
                is_late: matches!(sent, Sent::Late),
            };
            member.write(scope, runbook, &normal_key(&entry.key))
        };
        members.iter().map(record).collect()
    }

    /// A key for messages that no other run and no other list has.
    fn key(&mut self) -> String {
        self.lists += 1;
        format!("query-{}-{}", self.claim.row.run, self.lists)
    }
}

/// Whom members are sent to.
enum Sent {
    /// A batch that is being created.
    First,
    /// A batch that may have begun, and may end before they arrive.
    Late,
    /// Members of the batch, with other data.
    ToMembers,
}

fn source_member(missing: &MissingMember, held: Option<u64>, is_gone: bool) -> SourceMember {
    let known = &missing.member;
    SourceMember {
        batch_id: known.batch_id,
        start: known.start,
        digest: known.digest.clone(),
        is_gone,
        held,
        is_late: false,
    }
}

/// An error of reading what is stored.
pub(super) fn drive_error(error: RunbookError, kind: &'static str, id: &str) -> DriveError {
    match error {
        RunbookError::Store(error) => DriveError::Store(error),
        other => DriveError::Unreadable { kind, id: id.to_owned(), problem: other.to_string() },
    }
}
