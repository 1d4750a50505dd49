//! Listings in the order of creation, newest first: a secondary index of records.
//!
//! A record is found by its id, and ids say nothing about time: a caller may choose one, and that of a next run is a hash. So each
//! listed record has an index entry, a record without a body whose id is its [`Place`], written and removed in the commits that store and remove
//! the record itself. A page reads the entries of that page and what they lead to, and nothing else.
//!
//! What was stored before there was an index is indexed by the first listing of a scope, which leaves a record that says so.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use segno::store::{
    ErrorKind, Expect, ListRecords, ReadableRecords, Record, RecordBatch, RecordWrite, Store,
};
use uuid::Uuid;

use crate::action::ActionError;
use crate::functions::Scope;
use crate::listed::Listed;
use crate::moment::due_ms;

/// Records that are read, and entries that are written, at once.
const PAGE: usize = 500;

/// The digits of a place: 64 bits of time and 128 bits of id.
const PLACE_DIGITS: usize = 48;

/// The place of something in a listing: when it was made, then its id. As text it is a cursor, and sorts from new to old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    created_at_ms: u64,
    id: Uuid,
}

impl Place {
    /// Where something of this time and id is listed.
    pub fn new(created_at: Timestamp, id: Uuid) -> Self {
        Place { created_at_ms: due_ms(created_at), id }
    }

    /// The id of what is there.
    pub fn id(self) -> Uuid {
        self.id
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:032x}", !self.created_at_ms, !self.id.as_u128())
    }
}

/// A text that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a place in a listing")]
pub struct NoPlace;

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        if text.len() != PLACE_DIGITS || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(NoPlace);
        }
        let created_at_ms = u64::from_str_radix(&text[..16], 16).map_err(|_| NoPlace)?;
        let id = u128::from_str_radix(&text[16..], 16).map_err(|_| NoPlace)?;
        Ok(Place { created_at_ms: !created_at_ms, id: Uuid::from_u128(!id) })
    }
}

/// An index of the records of one kind.
pub(crate) struct Index {
    /// Kind of the records that are listed; their ids are the scope's prefix and a UUID.
    pub(crate) of: &'static str,
    /// Kind of the entries.
    pub(crate) entries: &'static str,
    /// Kind of the records that say that a scope is indexed.
    pub(crate) built: &'static str,
}

impl Index {
    /// The write that lists something, for as long as it is kept.
    pub(crate) fn put(&self, scope: &Scope, place: Place, time_to_live: Option<Duration>) -> RecordWrite {
        RecordWrite::Put {
            kind: self.entries.to_owned(),
            id: format!("{}{place}", scope.id_prefix()),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live,
            body: bytes::Bytes::new(),
        }
    }

    /// The write that lists something no more.
    pub(crate) fn delete(&self, scope: &Scope, place: Place) -> RecordWrite {
        let id = format!("{}{place}", scope.id_prefix());
        RecordWrite::Delete { kind: self.entries.to_owned(), id, expect: Expect::Anything }
    }

    /// The records after a place with theirs, newest first; one that cannot be read hides no other.
    /// `place_of` tells where a record is listed that was stored before there was an index.
    pub(crate) async fn page(
        &self,
        store: &dyn Store,
        scope: &Scope,
        (after, limit): (Option<Place>, usize),
        place_of: fn(&Record) -> Option<Place>,
    ) -> Result<Vec<(Place, Listed<Record>)>, ActionError> {
        if self.build(store, scope, place_of).await? == Indexed::Partly {
            return self.page_without_index(store, scope, (after, limit), place_of).await;
        }
        let prefix = scope.id_prefix();
        let (start, mut found) = (after, Vec::new());
        let mut after = start.map(|place| format!("{prefix}{place}"));
        while found.len() < limit {
            let wanted = limit - found.len();
            let request = ListRecords {
                kind: self.entries,
                id_prefix: &prefix,
                after_id: after.as_deref(),
                limit: wanted,
            };
            let ReadableRecords { records: entries, damaged } =
                store.list_records_around_damage(request).await?;
            if !damaged.is_empty() {
                return self.page_without_index(store, scope, (start, limit), place_of).await;
            }
            after = entries.last().map(|entry| entry.id.clone());
            let is_last = entries.len() < wanted;
            found.extend(self.records(store, scope, entries).await?);
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// The same when a part of the index is damaged, or could not be written: the records themselves
    /// are read, all of the scope. Entries that can be read name the records that cannot.
    async fn page_without_index(
        &self,
        store: &dyn Store,
        scope: &Scope,
        (after, limit): (Option<Place>, usize),
        place_of: fn(&Record) -> Option<Place>,
    ) -> Result<Vec<(Place, Listed<Record>)>, ActionError> {
        let (prefix, start) = (scope.id_prefix(), after.map(|place| place.to_string()));
        // Places as text are from new to old.
        let mut found = BTreeMap::new();
        let mut after_id = None::<String>;
        loop {
            let request =
                ListRecords { kind: self.of, id_prefix: &prefix, after_id: after_id.as_deref(), limit: PAGE };
            let records = store.list_records(request).await?;
            after_id = records.last().filter(|_| records.len() == PAGE).map(|record| record.id.clone());
            for record in records {
                let Some(place) = place_of(&record) else { continue };
                if start.as_ref().is_none_or(|start| place.to_string() > *start) {
                    found.insert(place.to_string(), (place, Listed::Readable(record)));
                }
                if found.len() > limit {
                    found.pop_last();
                }
            }
            if after_id.is_none() {
                break;
            }
        }
        let after_id = start.map(|start| format!("{prefix}{start}"));
        let request =
            ListRecords { kind: self.entries, id_prefix: &prefix, after_id: after_id.as_deref(), limit };
        let entries = store.list_records_around_damage(request).await?.records;
        for (place, row) in self.records(store, scope, entries).await? {
            found.entry(place.to_string()).or_insert((place, row));
        }
        Ok(found.into_values().take(limit).collect())
    }

    /// What entries lead to. An entry that leads nowhere is removed: its record was deleted without being read.
    async fn records(
        &self,
        store: &dyn Store,
        scope: &Scope,
        entries: Vec<Record>,
    ) -> Result<Vec<(Place, Listed<Record>)>, ActionError> {
        let prefix = scope.id_prefix();
        let reads = entries.iter().map(|entry| {
            let place = entry.id.strip_prefix(&prefix).and_then(|place| place.parse::<Place>().ok());
            let id = place.map(|place| (place, format!("{prefix}{}", place.id())));
            async move {
                match id {
                    Some((place, id)) => match store.get_record(self.of, &id).await {
                        Err(error) if error.kind() == ErrorKind::Corrupt => {
                            let reason = error.condition().unwrap_or("it is damaged");
                            Ok(Some((place, Listed::of(Err(reason), &place.id().to_string()))))
                        }
                        record => record.map(|record| Some((place, Listed::Readable(record?)))),
                    },
                    None => Ok(None),
                }
            }
        });
        let (mut found, mut writes) = (Vec::new(), Vec::new());
        for (entry, row) in entries.iter().zip(segno::try_join_all(reads).await?) {
            match row {
                Some(row) => found.push(row),
                None => writes.push(RecordWrite::Delete {
                    kind: entry.kind.clone(),
                    id: entry.id.clone(),
                    expect: Expect::Anything,
                }),
            }
        }
        if !writes.is_empty() {
            match store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
                // The store takes no writes now, or is damaged where they are; they lead nowhere next time too.
                Err(error) if is_postponed(error.kind()) => {}
                removed => drop(removed?),
            }
        }
        Ok(found)
    }

    /// Indexes a scope, unless that was done. Everything that is stored from now on has its entry, so doing it twice is fine.
    async fn build(
        &self,
        store: &dyn Store,
        scope: &Scope,
        place_of: fn(&Record) -> Option<Place>,
    ) -> Result<Indexed, ActionError> {
        let entry = |record: &Record, now_ms: u64| {
            let life = record.expires_at_ms.map(|at_ms| at_ms.saturating_sub(now_ms).max(1));
            Some(self.put(scope, place_of(record)?, life.map(Duration::from_millis)))
        };
        index_once(store, Backfill { of: self.of, built: self.built, scope }, entry).await
    }
}

/// Records of a scope that were stored before there was an index of them.
pub(crate) struct Backfill<'a> {
    /// Kind of the records.
    pub(crate) of: &'static str,
    /// Kind of the records that say that a scope is indexed.
    pub(crate) built: &'static str,
    /// The scope.
    pub(crate) scope: &'a Scope,
}

/// How far a scope is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexed {
    /// The index has all that can be read.
    Wholly,
    /// Records may be missing from the index, because the store takes no writes now, such as on a full disk.
    Partly,
}

/// Whether a write that only prepares later reads may fail like this without failing the read that needs it.
fn is_postponed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Unavailable)
}

/// Writes the entries of a scope into an index, unless that was done. An entry is made of a record and the store's time.
/// Everything that is stored from now on has its entry, so doing it twice is fine.
pub(crate) async fn index_once(
    store: &dyn Store,
    Backfill { of, built, scope }: Backfill<'_>,
    entry: impl Fn(&Record, u64) -> Option<RecordWrite>,
) -> Result<Indexed, ActionError> {
    let prefix = scope.id_prefix();
    let found = match store.get_record(built, &prefix).await {
        // Whether it was done is on a damaged block. What the index has is listed all the same.
        Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(Indexed::Wholly),
        found => found?,
    };
    if found.is_some() {
        return Ok(Indexed::Wholly);
    }
    let (mut after, now_ms) = (None::<String>, store.now_ms().await?);
    loop {
        let request = ListRecords { kind: of, id_prefix: &prefix, after_id: after.as_deref(), limit: PAGE };
        let records = store.list_records(request).await?;
        let writes: Vec<RecordWrite> = records.iter().filter_map(|record| entry(record, now_ms)).collect();
        if !writes.is_empty() {
            match store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
                // The index is damaged, so it is not read either.
                Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(Indexed::Wholly),
                Err(error) if error.kind() == ErrorKind::Unavailable => return Ok(Indexed::Partly),
                written => drop(written?),
            }
        }
        match records.last() {
            Some(last) if records.len() == PAGE => after = Some(last.id.clone()),
            _ => break,
        }
    }
    if store.known_damage().await?.is_some() {
        // Not all of them may have been read, so the scope is indexed again by a later listing.
        return Ok(Indexed::Wholly);
    }
    let built = RecordWrite::Put {
        kind: built.to_owned(),
        id: prefix,
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: bytes::Bytes::new(),
    };
    match store.commit_records(RecordBatch { writes: vec![built], ..RecordBatch::default() }).await {
        // All entries are there; a later listing writes them once more.
        Err(error) if is_postponed(error.kind()) => {}
        written => drop(written?),
    }
    Ok(Indexed::Wholly)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_sort_from_new_to_old_and_can_be_read() {
        let place = |at: &str, id: u128| Place::new(at.parse().unwrap(), Uuid::from_u128(id));
        let newest_first = [
            place("2026-02-10T14:00:01Z", 1),
            place("2026-02-10T14:00:00.001Z", 7),
            place("2026-02-10T14:00:00Z", 9),
            place("2026-02-10T14:00:00Z", 8),
            place("1970-01-01T00:00:00Z", u128::MAX),
        ];
        let texts = newest_first.map(|place| place.to_string());
        assert!(texts.is_sorted(), "{texts:?}");
        for (place, text) in newest_first.iter().zip(&texts) {
            assert_eq!(text.parse::<Place>(), Ok(*place));
        }
        assert_eq!(texts[4], "ffffffffffffffff00000000000000000000000000000000");
        for text in ["", "x", &texts[0][1..], &texts[0].to_uppercase(), &format!("+{}", &texts[0][1..])] {
            assert_eq!(text.parse::<Place>(), Err(NoPlace), "{text}");
        }
    }
}
