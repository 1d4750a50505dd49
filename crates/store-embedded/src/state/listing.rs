//! Listings of instances and records.
//!
//! A query walks every index that contains all its matches, and the ids of its prefix, in step; whichever comes to an
//! end or fills the page first answers. So the cost is a small multiple of the best index's, without knowing which
//! one that is.
//!
//! Damage hides nothing else. An index with damage leaves the race; when all have, the rows
//! themselves are read in id order, which costs as much as there are instances. A row that cannot
//! be read is listed by the id that an index has for it.
//!
//! [Quarantined](Quarantine) instances are listed like those: their rows contain a change that may be lost.

use std::cmp::Reverse;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use segno::store::{
    InstanceCursor, InstanceInfo, InstancePage, InstanceQuery, ListRecords, ReadableRecords, Record,
    UnreadableInstance,
};

use crate::error::RowError;
use crate::rows::instance_row::InstanceRow;
use crate::rows::keys::{self, AgeIndex, Key};
use crate::rows::layers::Scan;
use crate::rows::queue_row::RecordRow;
use crate::rows::tables::Tables;
use crate::state::quarantine::Quarantine;
use crate::state::record_index::RecordIndex;

/// One way to find the matches of a query: an index, or entries of one that share no instance.
struct IndexWalk<'a> {
    scans: Vec<Peekable<Scan<'a>>>,
    order: ListingOrder,
    found: Vec<Listed>,
    /// Why rows are missing whose ids cannot be read; only of a last resort.
    damaged: Option<String>,
    /// Whether it passes over damage, because no other walk is left.
    is_last_resort: bool,
}

/// A row of a listing.
enum Listed {
    Readable(Box<InstanceInfo>),
    Unreadable(UnreadableInstance),
}

impl Listed {
    fn place(&self) -> (Reverse<u64>, &str) {
        match self {
            Listed::Readable(info) => (Reverse(info.created_at_ms), &info.instance_id),
            Listed::Unreadable(row) => (Reverse(row.created_at_ms), &row.instance_id),
        }
    }
}

/// What a walk found.
struct Selected {
    rows: Vec<Listed>,
    damaged: Option<String>,
}

impl IndexWalk<'_> {
    /// The next row of all scans, in the order of the walk.
    fn next(&mut self) -> Option<Result<(Key, Bytes), RowError>> {
        let ListingOrder::Age(prefix_len) = self.order else { return self.scans.first_mut()?.next() };
        if let [only] = &mut self.scans[..] {
            return only.next();
        }
        let mut newest: Option<(usize, Key)> = None;
        for (place, scan) in self.scans.iter_mut().enumerate() {
            match scan.peek() {
                Some(Err(_)) => return scan.next(),
                Some(Ok((key, _)))
                    if newest.as_ref().is_none_or(|(_, first)| key[prefix_len..] < first[prefix_len..]) =>
                {
                    newest = Some((place, key.clone()));
                }
                _ => {}
            }
        }
        self.scans[newest?.0].next()
    }
}

impl IndexWalk<'_> {
    /// What was found, as the listing wants it.
    fn selected(&mut self, most: usize) -> Selected {
        let mut rows = std::mem::take(&mut self.found);
        if self.order == ListingOrder::Id {
            rows.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
            rows.truncate(most);
        }
        Selected { rows, damaged: self.damaged.take() }
    }
}

/// In which order a walk comes across instances.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListingOrder {
    /// Newest first, as the listing wants it; the age follows a prefix of this length.
    Age(usize),
    /// By id: everything must be seen before anything can be answered.
    Id,
}

/// Where one step of a walk led.
#[derive(PartialEq, Eq)]
enum WalkStep {
    On,
    /// There is nothing more to find.
    End,
}

impl Tables {
    /// All instances of an index, newest first.
    pub(crate) fn instances_in(&self, index: AgeIndex<'_>) -> Result<Vec<String>, RowError> {
        let prefix = index.prefix();
        let mut ids = Vec::new();
        for entry in self.rows.scan(&prefix)? {
            ids.extend(keys::aged(&entry?.0, prefix.len()).map(|(_, id)| id.to_owned()));
        }
        Ok(ids)
    }

    /// Children of an instance, oldest first.
    pub(crate) fn children(&self, parent: &str) -> Result<Vec<String>, RowError> {
        let prefix = AgeIndex::Parent(parent).prefix();
        let mut children = Vec::new();
        for entry in self.rows.scan(&prefix)? {
            children.extend(keys::aged(&entry?.0, prefix.len()).map(|(age, id)| (age, id.to_owned())));
        }
        children.sort_unstable();
        Ok(children.into_iter().map(|(_, id)| id).collect())
    }

    /// A page of a listing.
    pub(crate) fn page(
        &self,
        query: &InstanceQuery,
        quarantine: &Quarantine,
    ) -> Result<InstancePage, RowError> {
        if query.limit == 0 || query.created_before_ms == Some(0) {
            return Ok(InstancePage::default());
        }
        // One more than requested shows whether another page follows.
        let most = query.limit.saturating_add(1);
        let Selected { mut rows, damaged } = self.select(query, quarantine, most)?;
        if !quarantine.is_empty() {
            self.add_quarantined(query, quarantine, &mut rows)?;
            rows.truncate(most);
        }
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let next = rows.last().filter(|_| more).map(|last| {
            let (Reverse(created_at_ms), id) = last.place();
            InstanceCursor { created_at_ms, instance_id: id.to_owned() }
        });
        let mut page = InstancePage { damaged, next, ..InstancePage::default() };
        for row in rows {
            match row {
                Listed::Readable(info) => page.instances.push(*info),
                Listed::Unreadable(row) => page.unreadable.push(row),
            }
        }
        Ok(page)
    }

    /// Adds quarantined instances to the result, in order. States and labels may be those of the change that is
    /// not durable, so they do not count; all else stays as it is for good.
    fn add_quarantined(
        &self,
        query: &InstanceQuery,
        quarantine: &Quarantine,
        rows: &mut Vec<Listed>,
    ) -> Result<(), RowError> {
        let lasting =
            InstanceQuery { statuses: Default::default(), labels: Default::default(), ..query.clone() };
        for id in quarantine.instances() {
            let row = match self.instance(id) {
                Err(RowError::Corrupt(_)) => continue,
                row => row?,
            };
            let Some(found) = row.map(|row| listed(row.info(id))) else { continue };
            if matches(&lasting, &found) && is_behind_cursor(query, &found) {
                let (Reverse(created_at_ms), _) = found.place();
                let (instance_id, reason) = (id.to_owned(), quarantine.reason().to_owned());
                rows.push(Listed::Unreadable(UnreadableInstance { instance_id, created_at_ms, reason }));
            }
        }
        rows.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
        Ok(())
    }

    fn select(
        &self,
        query: &InstanceQuery,
        quarantine: &Quarantine,
        most: usize,
    ) -> Result<Selected, RowError> {
        let with_prefix = |entry: AgeIndex<'_>| (entry.prefix(), start_of(query, entry));
        let indexes: Vec<Vec<(Key, Bound<Key>)>> = indexes_of(query)
            .into_iter()
            .map(|entries| entries.into_iter().map(with_prefix).collect())
            .collect();
        let id_prefix = query.id_prefix.as_deref().map(keys::instance);
        let prefix = id_prefix.clone().unwrap_or_else(|| keys::instance(""));
        let mut walks = Vec::with_capacity(indexes.len() + 1);
        for entries in &indexes {
            let scans = entries.iter().map(|(prefix, start)| {
                Ok(self.rows.scan_from(prefix, start.as_ref().map(Key::as_slice))?.peekable())
            });
            let scans = match scans.collect::<Result<Vec<_>, RowError>>() {
                Err(RowError::Corrupt(_)) => continue,
                scans => scans?,
            };
            // The entries of one index have prefixes of one length.
            let prefix_len = entries.first().map_or(0, |(prefix, _)| prefix.len());
            walks.push(IndexWalk {
                scans,
                order: ListingOrder::Age(prefix_len),
                found: Vec::new(),
                damaged: None,
                is_last_resort: false,
            });
        }
        // With damage in all indexes, the last walk that is left passes over what it cannot read.
        let by_id = || {
            let scans = vec![self.rows.scan_past_damage(&prefix, Bound::Included(&prefix)).peekable()];
            IndexWalk {
                scans,
                order: ListingOrder::Id,
                found: Vec::new(),
                damaged: None,
                is_last_resort: false,
            }
        };
        walks.extend(id_prefix.is_some().then(by_id));
        loop {
            if walks.is_empty() {
                walks.push(by_id());
            }
            if let [last] = &mut walks[..] {
                last.is_last_resort = last.order == ListingOrder::Id;
            }
            let mut place = 0;
            while let Some(walk) = walks.get_mut(place) {
                match self.step(walk, query, quarantine) {
                    Ok(WalkStep::On) if walk.order == ListingOrder::Id || walk.found.len() < most => {
                        place += 1
                    }
                    Ok(_) => return Ok(walk.selected(most)),
                    Err(RowError::Corrupt(_)) => drop(walks.remove(place)),
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// One step of a walk. Damage of what it walks over is an error, except for a last resort.
    fn step(
        &self,
        walk: &mut IndexWalk<'_>,
        query: &InstanceQuery,
        quarantine: &Quarantine,
    ) -> Result<WalkStep, RowError> {
        let Some(entry) = walk.next() else { return Ok(WalkStep::End) };
        let (key, value) = match entry {
            Err(RowError::Corrupt(why)) if walk.is_last_resort => {
                walk.damaged.get_or_insert(why);
                return Ok(WalkStep::On);
            }
            entry => entry?,
        };
        let found = match walk.order {
            ListingOrder::Id => match keys::instance_id(&key) {
                Some(id) => InstanceRow::decode(&value).map(|row| listed(row.info(id)))?,
                None => return Ok(WalkStep::On),
            },
            ListingOrder::Age(prefix_len) => match keys::aged(&key, prefix_len) {
                Some((created_at_ms, _))
                    if query.created_from_ms.is_some_and(|from| created_at_ms < from) =>
                {
                    return Ok(WalkStep::End);
                }
                Some((created_at_ms, id)) => match self.instance(id) {
                    Ok(Some(row)) => listed(row.info(id)),
                    Err(RowError::Corrupt(reason)) => {
                        let instance_id = id.to_owned();
                        Listed::Unreadable(UnreadableInstance { instance_id, created_at_ms, reason })
                    }
                    row => return row.map(|_| WalkStep::On),
                },
                None => return Ok(WalkStep::On),
            },
        };
        // An entry that outlived its row, which was replaced over damage, leads to an instance that
        // was found already.
        let is_found = walk.found.last().is_some_and(|last| last.place() == found.place());
        let is_quarantined = quarantine.has(found.place().1);
        if !is_found && !is_quarantined && matches(query, &found) && is_behind_cursor(query, &found) {
            walk.found.push(found);
        }
        Ok(WalkStep::On)
    }

    /// Records of a kind by id prefix, ascending.
    pub(crate) fn list_records(
        &self,
        request: &ListRecords<'_>,
        now_ms: u64,
    ) -> Result<Vec<Record>, RowError> {
        let ReadableRecords { records, damaged } = self.list_records_around_damage(request, now_ms)?;
        match damaged.into_iter().next() {
            Some(what) => Err(RowError::Corrupt(what)),
            None => Ok(records),
        }
    }

    /// The same past damage.
    pub(crate) fn list_records_around_damage(
        &self,
        request: &ListRecords<'_>,
        now_ms: u64,
    ) -> Result<ReadableRecords, RowError> {
        let prefix = keys::record(request.kind, request.id_prefix);
        let after = request.after_id.map(|id| keys::record(request.kind, id));
        let start = match &after {
            Some(after) if *after >= prefix => Bound::Excluded(after.as_slice()),
            _ => Bound::Included(prefix.as_slice()),
        };
        let mut read = ReadableRecords::default();
        if request.limit == 0 {
            return Ok(read);
        }
        for row in self.rows.scan_past_damage(&prefix, start) {
            let (key, value) = match row {
                Err(RowError::Corrupt(what)) => {
                    read.damaged.push(what);
                    continue;
                }
                row => row?,
            };
            let Some((kind, id)) = keys::record_name(&key) else { continue };
            let row = RecordRow::decode(&value)?;
            if row.lives(now_ms) {
                read.records.push(row.into_record(kind, id));
            }
            if read.records.len() == request.limit {
                break;
            }
        }
        Ok(read)
    }

    /// Records due at or before `due_by_ms`, by due time, then id. One that cannot be read keeps no
    /// other from being found: it is dropped from the index in memory, until the store is opened
    /// again.
    pub(crate) fn due_records(
        &self,
        index: &mut RecordIndex,
        due: &DueQuery<'_>,
        now_ms: u64,
    ) -> Result<Vec<Record>, RowError> {
        let (mut records, mut lost) = (Vec::new(), Vec::new());
        let by_time = index.by_due_time(due.kind, due.id_prefix, now_ms);
        for (at_ms, id) in by_time.take_while(|(at_ms, _)| *at_ms <= due.due_by_ms) {
            if records.len() == due.limit {
                break;
            }
            match self.record(due.kind, id) {
                Ok(Some(row)) if row.due_at_ms == Some(at_ms) => {
                    records.push(row.into_record(due.kind, id));
                }
                // Its row was replaced over damage, so that the entry outlived it.
                Ok(_) => lost.push((at_ms, Arc::clone(id))),
                Err(RowError::Corrupt(why)) => {
                    tracing::error!(kind = due.kind, id = &**id, why, "a record is due and cannot be read");
                    lost.push((at_ms, Arc::clone(id)));
                }
                Err(error) => return Err(error),
            }
        }
        lost.iter().for_each(|(at_ms, id)| index.forget_due(due.kind, *at_ms, id));
        Ok(records)
    }
}

/// Which due records to read.
pub(crate) struct DueQuery<'a> {
    pub(crate) kind: &'a str,
    pub(crate) id_prefix: &'a str,
    pub(crate) due_by_ms: u64,
    pub(crate) limit: usize,
}

/// The indexes by age that contain every match, each with the entries of it that do together. The one
/// of all instances is the last resort.
fn indexes_of(query: &InstanceQuery) -> Vec<Vec<AgeIndex<'_>>> {
    let mut indexes: Vec<Vec<AgeIndex<'_>>> = Vec::with_capacity(4);
    indexes.extend(query.parent_instance_id.as_deref().map(|parent| vec![AgeIndex::Parent(parent)]));
    indexes.extend(query.labels.iter().map(|(label, value)| vec![AgeIndex::Label(label, value)]));
    indexes.extend(query.orchestration_name.as_deref().map(|name| vec![AgeIndex::Name(name)]));
    if !query.statuses.is_empty() {
        indexes.push(query.statuses.iter().copied().map(AgeIndex::Status).collect());
    }
    if indexes.is_empty() {
        indexes.push(vec![AgeIndex::All]);
    }
    indexes
}

/// Where a page starts in an index.
fn start_of(query: &InstanceQuery, index: AgeIndex<'_>) -> Bound<Key> {
    let cursor = query.cursor.as_ref().map(|cursor| index.key(cursor.created_at_ms, &cursor.instance_id));
    let newest = query.created_before_ms.map(|before_ms| index.key(before_ms.saturating_sub(1), ""));
    match (cursor, newest) {
        (Some(cursor), Some(newest)) if cursor < newest => Bound::Included(newest),
        (Some(cursor), _) => Bound::Excluded(cursor),
        (None, Some(newest)) => Bound::Included(newest),
        (None, None) => Bound::Included(index.prefix()),
    }
}

fn listed(info: InstanceInfo) -> Listed {
    Listed::Readable(Box::new(info))
}

fn is_behind_cursor(query: &InstanceQuery, row: &Listed) -> bool {
    let cursor = query.cursor.as_ref().map(|at| (Reverse(at.created_at_ms), at.instance_id.as_str()));
    cursor.is_none_or(|cursor| row.place() > cursor)
}

/// Whether a row meets all criteria but the place where the page starts, as far as it can be read.
fn matches(query: &InstanceQuery, row: &Listed) -> bool {
    let info = match row {
        Listed::Readable(info) => info,
        Listed::Unreadable(row) => {
            let is_in_time = query.created_before_ms.is_none_or(|before_ms| row.created_at_ms < before_ms);
            let prefix = query.id_prefix.as_deref().unwrap_or_default();
            return is_in_time && row.instance_id.starts_with(prefix);
        }
    };
    query.id_prefix.as_ref().is_none_or(|prefix| info.instance_id.starts_with(prefix.as_str()))
        && (query.statuses.is_empty() || query.statuses.contains(&info.status))
        && query
            .orchestration_name
            .as_deref()
            .is_none_or(|name| info.orchestration_name.as_deref() == Some(name))
        && query.labels.iter().all(|(label, value)| info.labels.get(label) == Some(value))
        && query.parent_instance_id.as_ref().is_none_or(|id| info.parent_instance_id.as_ref() == Some(id))
        && query.created_from_ms.is_none_or(|from_ms| info.created_at_ms >= from_ms)
        && query.created_before_ms.is_none_or(|before_ms| info.created_at_ms < before_ms)
}
