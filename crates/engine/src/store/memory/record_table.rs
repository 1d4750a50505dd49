//! Records by kind and id, with a due index and lives that end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::duration_ms;
use crate::store::core::due_index::{DueIndex, FOREVER_MS};
use crate::store::core::peek_lock::Sequence;
use crate::store::{DueRecords, ErrorKind, Expect, ListRecords, ProviderError, Record, RecordWrite};

/// Most expired records that one sweep removes, so that no call pays for a crowd that expires together.
const MAX_EXPIRED_PER_SWEEP: usize = 64;

/// All records. An expired record is absent for every method from the millisecond its life ends, removed or not.
#[derive(Debug, Default)]
pub(super) struct RecordTable {
    versions: Sequence,
    kinds: BTreeMap<Arc<str>, Kind>,
    expiries: BTreeSet<(u64, Arc<str>, Arc<str>)>,
}

#[derive(Debug, Default)]
struct Kind {
    rows: BTreeMap<Arc<str>, Row>,
    due: DueIndex,
}

#[derive(Debug)]
struct Row {
    version: u64,
    due_at_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    body: Bytes,
}

impl Row {
    fn lives(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_none_or(|expires_at_ms| expires_at_ms > now_ms)
    }

    fn to_record(&self, kind: &str, id: &str) -> Record {
        Record {
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: self.version,
            due_at_ms: self.due_at_ms,
            expires_at_ms: self.expires_at_ms,
            body: self.body.clone(),
        }
    }
}

impl Kind {
    fn live(&self, id: &str, now_ms: u64) -> Option<&Row> {
        self.rows.get(id).filter(|row| row.lives(now_ms))
    }
}

impl RecordTable {
    /// An empty table whose versions continue after `last_version`.
    pub(super) fn after(last_version: u64) -> Self {
        RecordTable { versions: Sequence::after(last_version), ..RecordTable::default() }
    }

    /// The highest version so far.
    pub(super) fn last_version(&self) -> u64 {
        self.versions.last()
    }

    /// Whether no record lives.
    pub(super) fn is_empty(&self, now_ms: u64) -> bool {
        self.content(now_ms).next().is_none()
    }

    /// Every record that lives, by kind, then id.
    pub(super) fn content(&self, now_ms: u64) -> impl Iterator<Item = Record> {
        let of_kind = move |(kind, rows): (&Arc<str>, &Kind)| -> Vec<Record> {
            let live = rows.rows.iter().filter(|(_, row)| row.lives(now_ms));
            live.map(|(id, row)| row.to_record(kind, id)).collect()
        };
        self.kinds.iter().flat_map(of_kind)
    }

    /// Puts a record in as it was elsewhere.
    pub(super) fn restore(&mut self, record: Record) {
        let Record { kind, id, version, due_at_ms, expires_at_ms, body } = record;
        self.insert(Arc::from(kind), Arc::from(id), Row { version, due_at_ms, expires_at_ms, body });
    }

    /// One record.
    pub(super) fn get(&self, kind: &str, id: &str, now_ms: u64) -> Option<Record> {
        Some(self.kinds.get(kind)?.live(id, now_ms)?.to_record(kind, id))
    }

    /// Records of a kind by id prefix, ascending.
    pub(super) fn list(&self, request: &ListRecords<'_>, now_ms: u64) -> Vec<Record> {
        let Some(kind) = self.kinds.get(request.kind) else { return Vec::new() };
        let start = match request.after_id {
            Some(after_id) if after_id >= request.id_prefix => Bound::Excluded(after_id),
            _ => Bound::Included(request.id_prefix),
        };
        let rows = kind.rows.range::<str, _>((start, Bound::Unbounded));
        rows.take_while(|(id, _)| id.starts_with(request.id_prefix))
            .filter(|(_, row)| row.lives(now_ms))
            .take(request.limit)
            .map(|(id, row)| row.to_record(request.kind, id))
            .collect()
    }

    /// Records due by the time of a request, or now, by due time, then id.
    pub(super) fn due(&mut self, request: &DueRecords<'_>, now_ms: u64) -> Vec<Record> {
        let DueRecords { kind, id_prefix, limit, .. } = *request;
        if !id_prefix.is_empty() && !self.kinds.contains_key(kind) {
            // A fetch may wait for the first record of the kind, which is to find folders.
            self.kinds.insert(Arc::from(kind), Kind::default());
        }
        let Some(rows) = self.kinds.get_mut(kind) else { return Vec::new() };
        rows.due.prepare(id_prefix);
        let due_by_ms = request.now_ms.unwrap_or(now_ms);
        let due = rows.due.by_due_time(id_prefix, now_ms).take_while(|(at_ms, _)| *at_ms <= due_by_ms);
        due.take(limit).filter_map(|(_, id)| Some(rows.rows.get(id)?.to_record(kind, id))).collect()
    }

    /// The earliest due time of a kind under an id prefix.
    pub(super) fn next_due_ms(&self, kind: &str, id_prefix: &str, now_ms: u64) -> Option<u64> {
        self.kinds.get(kind)?.due.next_due_ms(id_prefix, now_ms)
    }

    /// Fails when a key occurs twice or an expectation does not hold.
    pub(super) fn check(
        &self,
        operation: &'static str,
        writes: &[RecordWrite],
        now_ms: u64,
    ) -> Result<(), ProviderError> {
        if writes.len() > 1 {
            let mut keys = BTreeSet::new();
            if let Some((kind, id)) = writes.iter().map(RecordWrite::key).find(|key| !keys.insert(*key)) {
                let message = format!("the record {kind} {id} occurs twice in a batch; write it once");
                return Err(ProviderError::new(ErrorKind::Invalid, operation, message));
            }
        }
        for write in writes {
            let (RecordWrite::Put { expect, .. } | RecordWrite::Delete { expect, .. }) = write;
            let (kind, id) = write.key();
            let version = self.kinds.get(kind).and_then(|rows| rows.live(id, now_ms)).map(|row| row.version);
            let holds = match expect {
                Expect::Anything => true,
                Expect::Absent => version.is_none(),
                Expect::Version(expected) => version == Some(*expected),
            };
            if !holds {
                let found = version.map_or("absent".to_owned(), |version| format!("at version {version}"));
                let message =
                    format!("the record {kind} {id} is {found}, expected {expect:?}; read it again");
                return Err(ProviderError::new(ErrorKind::Conflict, operation, message));
            }
        }
        Ok(())
    }

    /// Applies writes that have been checked; returns the version of each, 0 for a delete.
    pub(super) fn apply(&mut self, writes: Vec<RecordWrite>, now_ms: u64) -> Vec<u64> {
        writes.into_iter().map(|write| self.apply_one(write, now_ms)).collect()
    }

    fn apply_one(&mut self, write: RecordWrite, now_ms: u64) -> u64 {
        match write {
            RecordWrite::Delete { kind, id, .. } => {
                self.remove(&kind, &id);
                0
            }
            RecordWrite::Put { kind, id, due_at_ms, time_to_live, body, .. } => {
                self.remove(&kind, &id);
                let version = self.versions.take();
                let expires_at_ms = time_to_live.map(|life| now_ms.saturating_add(duration_ms(life)));
                let row = Row { version, due_at_ms, expires_at_ms, body };
                self.insert(Arc::from(kind), Arc::from(id), row);
                version
            }
        }
    }

    fn insert(&mut self, kind: Arc<str>, id: Arc<str>, row: Row) {
        if let Some(expires_at_ms) = row.expires_at_ms {
            self.expiries.insert((expires_at_ms, Arc::clone(&kind), Arc::clone(&id)));
        }
        let rows = self.kinds.entry(kind).or_default();
        if let Some(due_at_ms) = row.due_at_ms {
            rows.due.insert(due_at_ms, &id, row.expires_at_ms.unwrap_or(FOREVER_MS));
        }
        rows.rows.insert(id, row);
    }

    fn remove(&mut self, kind: &str, id: &str) {
        let Some(rows) = self.kinds.get_mut(kind) else { return };
        let Some((id, row)) = rows.rows.remove_entry(id) else { return };
        if let Some(due_at_ms) = row.due_at_ms {
            rows.due.remove(due_at_ms, &id);
        }
        if rows.rows.is_empty() && rows.due.is_unused() {
            self.kinds.remove(kind);
        }
        if let Some(expires_at_ms) = row.expires_at_ms {
            self.expiries.remove(&(expires_at_ms, Arc::from(kind), id));
        }
    }

    /// Removes some of the records whose life has ended.
    pub(super) fn sweep(&mut self, now_ms: u64) {
        for _ in 0..MAX_EXPIRED_PER_SWEEP {
            match self.expiries.first() {
                Some((expires_at_ms, kind, id)) if *expires_at_ms <= now_ms => {
                    let (kind, id) = (Arc::clone(kind), Arc::clone(id));
                    self.remove(&kind, &id);
                }
                _ => return,
            }
        }
    }
}
