//! What a query changes: its rows, sorted by key, merged with the members that earlier queries
//! brought. Pure.
//!
//! | the member was | the row | its batch is open | its batch has ended |
//! |---|---|---|---|
//! | unknown | is there | new | new |
//! | current | is the same | nothing | nothing |
//! | current | has other data | changed | nothing |
//! | current | has another batch time | missing, then new | new |
//! | current | has no batch time that can be read | nothing | nothing |
//! | current | is gone | missing | forgotten |
//! | gone | is there, by batch time | new | new |
//! | gone | is there, `immediate` | changed: it returns | new |
//! | gone | is gone | nothing | forgotten |
//!
//! Only differences become messages, so a query that finds nothing new writes nothing into batches.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::vec::IntoIter;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::grouping::{PlacedRow, RowStart};
use crate::members::Row;
use crate::message::MemberEntry;
use crate::rows::{BatchId, normal_key};

/// Bytes of a digest that are kept: enough that two rows of a member never have the same by chance.
const DIGEST_BYTES: usize = 16;

/// A member that an earlier query brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMember {
    /// Its key, in the form in which keys are compared.
    pub key: String,
    /// The batch that it was sent to.
    pub batch_id: BatchId,
    /// Start of the batch, as the source had it.
    pub start: Timestamp,
    /// Digest of its data.
    pub digest: String,
    /// Whether it is a member; not since it was removed.
    pub is_current: bool,
    /// The query has no row for it, and its removal waits for approval since this run.
    pub held: Option<u64>,
}

/// Whether a batch still takes members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    /// It does.
    Open,
    /// It has ended or is about to.
    Ended,
}

/// What is kept of a row while it is compared: all of it for a run, its digest for a preview.
pub trait Entry {
    /// Whether the data of the row has this digest.
    fn has_digest(&self, digest: &str) -> bool;
}

impl Entry for MemberEntry {
    fn has_digest(&self, digest: &str) -> bool {
        self.digest == digest
    }
}

/// The digest of a row, for counts without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowDigest([u8; DIGEST_BYTES]);

impl RowDigest {
    /// The digest of a row.
    pub fn of(row: &Row) -> Self {
        RowDigest(digest_bytes(&row.key, &row.columns))
    }
}

impl Entry for RowDigest {
    fn has_digest(&self, digest: &str) -> bool {
        hex(&self.0) == digest
    }
}

/// A row that is to be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRow<E> {
    /// Key of the member, in the form in which keys are compared.
    pub key: Box<str>,
    /// Start of its batch.
    pub start: RowStart,
    /// What is kept of it.
    pub entry: E,
}

/// A member of an open batch that the query no longer has there.
#[derive(Debug, Clone, PartialEq)]
pub struct MissingMember<E = MemberEntry> {
    /// The member.
    pub member: KnownMember,
    /// The batch in which the query has it instead.
    pub moves_to: Option<(Timestamp, E)>,
}

/// What a query changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference<E = MemberEntry> {
    /// Members that are to be added, by the start of their batch.
    pub new: BTreeMap<Timestamp, Vec<E>>,
    /// Members with other data, and such that have returned, by batch and its start.
    pub changed: BTreeMap<(BatchId, Timestamp), Vec<E>>,
    /// How many of those have returned: they are added, in the words of counts.
    pub returned: usize,
    /// How many of those have the same data, and only their removal waits no longer.
    pub kept: usize,
    /// Members that the query no longer has, by batch.
    pub missing: BTreeMap<BatchId, Vec<MissingMember<E>>>,
    /// Keys that no longer have to be remembered.
    pub forgotten: Vec<String>,
    /// Members of open batches, by batch.
    pub known: BTreeMap<BatchId, usize>,
    /// Batches that have rows.
    pub batches: BTreeSet<BatchId>,
}

/// Which removals people have decided about, by the run that asked for approval: all up to these
/// runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decisions {
    /// The members may be removed, unless they stay by the other decision.
    pub approved: u64,
    /// The members stay.
    pub rejected: u64,
}

/// Missing members by what becomes of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Removals<E = MemberEntry> {
    /// They are removed, by batch.
    pub removed: BTreeMap<BatchId, Vec<MissingMember<E>>>,
    /// They stay until people have decided.
    pub held: BTreeMap<BatchId, Vec<MissingMember<E>>>,
}

impl<E> Default for Removals<E> {
    fn default() -> Self {
        Removals { removed: BTreeMap::new(), held: BTreeMap::new() }
    }
}

impl<E> Default for Difference<E> {
    fn default() -> Self {
        Difference {
            new: BTreeMap::new(),
            changed: BTreeMap::new(),
            returned: 0,
            kept: 0,
            missing: BTreeMap::new(),
            forgotten: Vec::new(),
            known: BTreeMap::new(),
            batches: BTreeSet::new(),
        }
    }
}

impl<E> Difference<E> {
    /// How many members have other data.
    pub fn changed_data(&self) -> usize {
        self.changed.values().map(Vec::len).sum::<usize>() - self.returned - self.kept
    }

    /// Takes the missing members and decides which of them may go. At most a percentage of the
    /// members of a batch, and of all members together, are removed without approval; it is rounded
    /// up, so that a small batch can lose a member.
    pub fn take_removals(&mut self, percent: u8, decisions: Decisions) -> Removals<E> {
        let mut removals = Removals::default();
        let mut undecided: BTreeMap<BatchId, Vec<MissingMember<E>>> = BTreeMap::new();
        for (batch, missing) in std::mem::take(&mut self.missing) {
            for member in missing {
                match member.member.held {
                    Some(run) if run <= decisions.rejected => {}
                    Some(run) if run <= decisions.approved => {
                        removals.removed.entry(batch).or_default().push(member);
                    }
                    _ => undecided.entry(batch).or_default().push(member),
                }
            }
        }
        let all: usize = undecided.values().map(Vec::len).sum();
        let too_many_of_all = all > allowed(self.known.values().sum(), percent);
        for (batch, missing) in undecided {
            let known = self.known.get(&batch).copied().unwrap_or_default();
            if too_many_of_all || missing.len() > allowed(known, percent) {
                removals.held.insert(batch, missing);
            } else {
                removals.removed.entry(batch).or_default().extend(missing);
            }
        }
        removals
    }
}

/// How many of so many members one query may remove.
fn allowed(known: usize, percent: u8) -> usize {
    (known * usize::from(percent)).div_ceil(100)
}

/// Merges the rows of a query with the members of earlier ones, which come in the order of their
/// keys.
#[derive(Debug)]
pub struct Merge<E = MemberEntry> {
    rows: Peekable<IntoIter<ComparedRow<E>>>,
    /// Start of the batch of new rows without a time of their own.
    now: Timestamp,
    difference: Difference<E>,
}

impl Merge {
    /// Begins with the rows, in any order. Their keys are unique, whatever their letter case.
    pub fn new(rows: Vec<PlacedRow>, now: Timestamp) -> Self {
        let compared = |PlacedRow { row, start }| ComparedRow {
            key: normal_key(&row.key).into(),
            start,
            entry: member_entry(row),
        };
        Merge::of(rows.into_iter().map(compared).collect(), now)
    }
}

impl<E: Entry> Merge<E> {
    /// The same with what is kept of the rows.
    pub fn of(mut rows: Vec<ComparedRow<E>>, now: Timestamp) -> Self {
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        Merge { rows: rows.into_iter().peekable(), now, difference: Difference::default() }
    }

    /// Takes the next member that is known. Keys come in the order of their bytes.
    pub fn known(&mut self, known: KnownMember, state: BatchState) {
        while let Some(row) = self.rows.next_if(|row| *row.key < *known.key) {
            self.add(row);
        }
        if known.is_current && state == BatchState::Open {
            *self.difference.known.entry(known.batch_id).or_default() += 1;
        }
        match self.rows.next_if(|row| *row.key == *known.key) {
            Some(row) => self.present(known, row, state),
            None if known.is_current && state == BatchState::Open => self.missing(known, None),
            None if state == BatchState::Ended => self.difference.forgotten.push(known.key),
            None => {}
        }
    }

    /// Ends with the rows that are after the last known key.
    pub fn finish(mut self) -> Difference<E> {
        while let Some(row) = self.rows.next() {
            self.add(row);
        }
        self.difference
    }

    fn add(&mut self, row: ComparedRow<E>) {
        let start = match row.start {
            RowStart::At(start) => start,
            RowStart::Now => self.now,
            RowStart::Unreadable => return,
        };
        self.difference.new.entry(start).or_default().push(row.entry);
    }

    fn missing(&mut self, member: KnownMember, moves_to: Option<(Timestamp, E)>) {
        let missing = self.difference.missing.entry(member.batch_id).or_default();
        missing.push(MissingMember { member, moves_to });
    }

    fn present(&mut self, known: KnownMember, row: ComparedRow<E>, state: BatchState) {
        let is_open = state == BatchState::Open;
        match row.start {
            RowStart::Unreadable => {}
            RowStart::At(_) if !known.is_current => self.add(row),
            RowStart::At(start) if start != known.start && is_open => {
                self.missing(known, Some((start, row.entry)));
            }
            RowStart::At(start) if start != known.start => self.add(row),
            RowStart::Now if !known.is_current && !is_open => self.add(row),
            RowStart::At(_) | RowStart::Now => {
                self.difference.batches.insert(known.batch_id);
                let has_same_data = known.is_current && row.entry.has_digest(&known.digest);
                if is_open && !(has_same_data && known.held.is_none()) {
                    self.difference.returned += usize::from(!known.is_current);
                    self.difference.kept += usize::from(has_same_data);
                    let changed = self.difference.changed.entry((known.batch_id, known.start)).or_default();
                    changed.push(row.entry);
                }
            }
        }
    }
}

/// A row as a member of a batch.
pub fn member_entry(row: Row) -> MemberEntry {
    let digest = digest(&row.key, &row.columns);
    MemberEntry { key: row.key, data: row.columns, digest }
}

/// Digest of a member's data, by which the next query finds out whether it has changed.
pub fn digest(key: &str, columns: &Map<String, Value>) -> String {
    hex(&digest_bytes(key, columns))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest_bytes(key: &str, columns: &Map<String, Value>) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha256::new();
    // Lengths in front keep texts apart. All values are texts or lists of texts, and columns are
    // sorted.
    let mut text = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    text(key);
    let mut names: Vec<&String> = columns.keys().collect();
    names.sort();
    for name in names {
        text(name);
        text(&columns[name].to_string());
    }
    let mut bytes = [0; DIGEST_BYTES];
    bytes.copy_from_slice(&hash.finalize()[..DIGEST_BYTES]);
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ONE: BatchId = BatchId(1);
    const TWO: BatchId = BatchId(2);

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3600).unwrap()
    }

    fn row(key: &str, value: &str) -> Row {
        let columns = Map::from_iter([("Upn".to_owned(), json!(value))]);
        Row { line: 1, key: key.to_owned(), columns }
    }

    fn placed(key: &str, value: &str, start: RowStart) -> PlacedRow {
        PlacedRow { row: row(key, value), start }
    }

    /// A member of a batch that starts at the hour of its id.
    fn known(key: &str, value: &str, batch_id: BatchId) -> KnownMember {
        let digest = digest(key, &row(key, value).columns);
        let start = at(i64::try_from(batch_id.0).unwrap());
        KnownMember { key: normal_key(key), batch_id, start, digest, is_current: true, held: None }
    }

    fn gone(key: &str, batch: BatchId) -> KnownMember {
        KnownMember { is_current: false, ..known(key, "old", batch) }
    }

    /// Batch 1 is open, batch 2 has ended, now is hour 9.
    fn difference(rows: &[PlacedRow], members: &[KnownMember]) -> Difference {
        let mut merge = Merge::new(rows.to_vec(), at(9));
        for member in members {
            let state = if member.batch_id == ONE { BatchState::Open } else { BatchState::Ended };
            merge.known(member.clone(), state);
        }
        merge.finish()
    }

    /// What became of one known member and its row: the lists that have it.
    fn told(row: Option<PlacedRow>, member: Option<KnownMember>) -> String {
        let found = difference(row.as_slice(), member.as_slice());
        let mut told = Vec::new();
        for (start, entries) in &found.new {
            told.extend(entries.iter().map(|_| format!("new {}", start.as_second() / 3600)));
        }
        let counted = match (found.returned, found.kept, found.changed_data()) {
            (1, 0, 0) => "returned",
            (0, 1, 0) => "kept",
            _ => "changed",
        };
        told.extend(found.changed.values().flatten().map(|_| counted.to_owned()));
        for missing in found.missing.values().flatten() {
            told.push(match &missing.moves_to {
                Some((start, _)) => format!("moves to {}", start.as_second() / 3600),
                None => "missing".to_owned(),
            });
        }
        told.extend(found.forgotten.iter().map(|_| "forgotten".to_owned()));
        told.join(", ")
    }

    #[test]
    fn members_are_told_apart_by_what_was_known_of_them() {
        let (one, two, nine) = (RowStart::At(at(1)), RowStart::At(at(2)), RowStart::At(at(9)));
        let (now, none) = (RowStart::Now, RowStart::Unreadable);
        let held = KnownMember { held: Some(3), ..known("a", "1", ONE) };
        for (row, member, expected) in [
            (Some(placed("a", "1", nine)), None, "new 9"),
            (Some(placed("a", "1", now)), None, "new 9"),
            (Some(placed("a", "1", none)), None, ""),
            (Some(placed("a", "1", one)), Some(known("a", "1", ONE)), ""),
            (Some(placed("a", "1", now)), Some(known("a", "1", ONE)), ""),
            (Some(placed("a", "2", one)), Some(known("a", "1", ONE)), "changed"),
            (Some(placed("a", "1", one)), Some(held.clone()), "kept"),
            (Some(placed("a", "2", one)), Some(held), "changed"),
            (Some(placed("A", "1", one)), Some(known("a", "1", ONE)), "changed"),
            (Some(placed("a", "1", nine)), Some(known("a", "1", ONE)), "moves to 9"),
            (Some(placed("a", "2", none)), Some(known("a", "1", ONE)), ""),
            (None, Some(known("a", "1", ONE)), "missing"),
            (Some(placed("a", "1", one)), Some(gone("a", ONE)), "new 1"),
            (Some(placed("a", "1", now)), Some(gone("a", ONE)), "returned"),
            (None, Some(gone("a", ONE)), ""),
            (Some(placed("a", "2", two)), Some(known("a", "1", TWO)), ""),
            (Some(placed("a", "2", now)), Some(known("a", "1", TWO)), ""),
            (Some(placed("a", "1", nine)), Some(known("a", "1", TWO)), "new 9"),
            (None, Some(known("a", "1", TWO)), "forgotten"),
            (Some(placed("a", "1", two)), Some(gone("a", TWO)), "new 2"),
            (Some(placed("a", "1", now)), Some(gone("a", TWO)), "new 9"),
            (None, Some(gone("a", TWO)), "forgotten"),
        ] {
            assert_eq!(told(row.clone(), member.clone()), expected, "{row:?} {member:?}");
        }
    }

    #[test]
    fn rows_and_known_members_are_merged_by_key() {
        let one = RowStart::At(at(1));
        let rows: Vec<PlacedRow> = ["f", "a", "B", "g"].map(|key| placed(key, "1", one)).into();
        let members = [known("b", "0", ONE), known("d", "1", ONE), known("f", "1", ONE)];
        let found = difference(&rows, &members);
        let keys =
            |entries: &[MemberEntry]| entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&found.new[&at(1)]), ["a", "g"]);
        assert_eq!(keys(&found.changed[&(ONE, at(1))]), ["B"]);
        assert_eq!(found.missing[&ONE].iter().map(|one| one.member.key.as_str()).collect::<Vec<_>>(), ["d"]);
        assert_eq!((found.known[&ONE], found.batches.len()), (3, 1));
    }

    #[test]
    fn digests_tell_columns_and_values_apart() {
        let of = |columns: Value| digest("k", columns.as_object().unwrap());
        let all = [
            of(json!({})),
            of(json!({"a": "b"})),
            of(json!({"ab": ""})),
            of(json!({"a": ["b"]})),
            of(json!({"a": "b", "c": ""})),
        ];
        let different: BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(of(json!({"a": "1", "b": "2"})), of(json!({"b": "2", "a": "1"})));
        assert_eq!(
            of(json!({"a": "b"})),
            "4232685c4f939628800362e2c9f63931",
            "a promise: stored with every member"
        );
    }

    /// Members of batches that are missing: how many are removed and how many are held.
    fn removals(
        batches: &[(usize, usize)],
        percent: u8,
        decisions: Decisions,
        held: Option<u64>,
    ) -> (usize, usize) {
        let mut difference = Difference::default();
        for (batch, (count, missing)) in (1..).map(BatchId).zip(batches) {
            difference.known.insert(batch, *count);
            let member = |number| KnownMember { held, ..known(&format!("k{number}"), "1", batch) };
            let missing =
                (0..*missing).map(|number| MissingMember { member: member(number), moves_to: None });
            difference.missing.insert(batch, missing.collect());
        }
        let removals = difference.take_removals(percent, decisions);
        let count = |map: &BTreeMap<BatchId, Vec<MissingMember>>| map.values().map(Vec::len).sum();
        (count(&removals.removed), count(&removals.held))
    }

    #[test]
    fn removals_are_limited_by_a_share_that_is_rounded_up() {
        for (batches, percent, expected) in [
            (vec![(100, 20)], 20, (20, 0)),
            (vec![(100, 21)], 20, (0, 21)),
            (vec![(3, 1)], 20, (1, 0)),
            (vec![(3, 2)], 20, (0, 2)),
            (vec![(3, 1)], 0, (0, 1)),
            (vec![(3, 3)], 100, (3, 0)),
            // One batch loses too many, the other one does not wait for it.
            (vec![(100, 10), (10, 5)], 20, (10, 5)),
            // Each batch loses little, all together lose everything.
            (vec![(1, 1); 100], 20, (0, 100)),
        ] {
            assert_eq!(
                removals(&batches, percent, Decisions::default(), None),
                expected,
                "{batches:?} {percent}"
            );
        }
    }

    #[test]
    fn decisions_are_about_the_members_that_were_shown() {
        let batches = [(10, 10)];
        for (approved, rejected, held, expected) in [
            (0, 0, Some(7), (0, 10)),
            (7, 0, Some(7), (10, 0)),
            // Members that went missing after the approval.
            (7, 0, Some(8), (0, 10)),
            (7, 0, None, (0, 10)),
            // Members that stay.
            (0, 7, Some(7), (0, 0)),
            (9, 7, Some(7), (0, 0)),
            (7, 7, Some(7), (0, 0)),
            (9, 7, Some(8), (10, 0)),
        ] {
            let decisions = Decisions { approved, rejected };
            assert_eq!(removals(&batches, 20, decisions, held), expected, "{decisions:?} {held:?}");
        }
    }
}
