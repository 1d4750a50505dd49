//! Scans that skip damage: a range that cannot be read is one error in the middle of the rows, and
//! the scan resumes behind it.
//!
//! A damaged page hides its keys too, so where to resume is found by bisection of the key space
//! between the last row that was read and the last one of the range. Keys are long and differ late,
//! so the bisection first finds the byte that matters, then halves from there. Each probe that
//! meets the damage costs [another redb](crate::rows::isolated), so what was found is kept for the life of
//! the snapshot.

use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::RowError;
use crate::repair::salvage_reader::middle;
use crate::rows::keys::{self, Key};
use crate::rows::stored::{MaybeRow, Snapshot};

/// Most halvings for the first row behind a damaged range, from the byte on in which keys of the
/// range differ: enough for 16 bytes. What they do not find counts as unreadable.
const MAX_PROBES: usize = 128;

/// Most ranges that a snapshot remembers.
const MAX_KNOWN: usize = 64;

/// A range of stored rows that cannot be read.
#[derive(Debug, Clone)]
struct Damaged {
    /// Where a scan met it.
    from: Key,
    /// The first row behind it that can be read; `None` when there is none before `end`.
    resume: Option<Key>,
    end: Option<Key>,
    why: RowError,
}

impl Damaged {
    /// Whether a scan that fails at a key and ends at another fails because of this one.
    fn has(&self, from: &[u8], end: Option<&Key>) -> bool {
        let is_before_resume = match (&self.resume, &self.end) {
            (Some(resume), _) => from < resume.as_slice(),
            (None, known_end) => {
                known_end.is_none() || end.is_some_and(|end| Some(end) <= known_end.as_ref())
            }
        };
        from >= self.from.as_slice() && is_before_resume
    }
}

/// Damaged ranges that scans of a snapshot have met.
#[derive(Debug, Default)]
pub(crate) struct DamagedRanges(Mutex<Vec<Damaged>>);

impl DamagedRanges {
    fn known(&self) -> MutexGuard<'_, Vec<Damaged>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows in key order. [`RowError::Corrupt`] represents one damaged range, and rows behind it
/// follow; any other error is the last.
pub(crate) struct ScanPastDamage<'a> {
    snapshot: &'a Snapshot,
    rows: Option<Box<dyn Iterator<Item = MaybeRow>>>,
    /// What is still to be read; `None` at the end.
    start: Option<Bound<Key>>,
    end: Option<Key>,
}

fn bytes_of(bound: &Bound<Key>) -> &[u8] {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
        Bound::Unbounded => &[],
    }
}

fn end_of(end: Option<&Key>) -> Bound<&[u8]> {
    end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.as_slice()))
}

impl Snapshot {
    /// Rows whose keys start with `prefix` and lie at or behind `start`, past all damage.
    pub(crate) fn scan_past_damage(&self, start: Bound<&[u8]>, prefix: &[u8]) -> ScanPastDamage<'_> {
        let start = Some(start.map(Key::from_slice));
        ScanPastDamage { snapshot: self, rows: None, start, end: keys::behind(prefix) }
    }

    /// The first stored row at or behind a key.
    fn first_stored(&self, start: Bound<&[u8]>) -> Result<Option<Key>, RowError> {
        let row = self.rows().range(start, Bound::Unbounded)?.next().transpose()?;
        Ok(row.map(|(key, _)| Key::from_slice(key.value())))
    }

    /// The first stored row that can be read behind a place where reading fails.
    fn resume_behind(&self, from: &[u8], end: Option<&Key>, why: &RowError) -> Result<Option<Key>, RowError> {
        if let Some(known) = self.damaged_ranges().known().iter().find(|known| known.has(from, end)) {
            let is_before_end = |key: &Key| end.is_none_or(|end| key < end);
            return Ok(known.resume.clone().filter(is_before_end));
        }
        let last = self
            .rows()
            .range(Bound::Excluded(from), end_of(end))
            .and_then(|mut rows| rows.next_back().transpose());
        let resume = match last {
            Ok(None) => None,
            Ok(Some((key, _))) => {
                let last = Key::from_slice(key.value());
                self.first_behind(from, &last, why)?.or(Some(last))
            }
            // One page holds neighbours, so a page that has the first and the last has all.
            Err(error) if error == *why => None,
            Err(RowError::Corrupt(_)) => match end {
                Some(behind) => self.first_behind(from, behind, why)?,
                None => None,
            },
            Err(error) => return Err(error),
        };
        let resume = resume.filter(|key| end.is_none_or(|end| key < end));
        let (from, end, why) = (Key::from_slice(from), end.cloned(), why.clone());
        let found = Damaged { from, resume: resume.clone(), end, why };
        tracing::debug!(why = %found.why, "a damaged range of the state is skipped");
        let mut known = self.damaged_ranges().known();
        if known.len() == MAX_KNOWN {
            known.remove(0);
        }
        known.push(found);
        Ok(resume)
    }

    /// Where to resume behind a key at which reading fails, and before a key behind that damage.
    fn first_behind(&self, damaged: &[u8], behind: &[u8], why: &RowError) -> Result<Option<Key>, RowError> {
        let mut resume = None;
        let mut is_damaged = |probe: &Key| match self.first_stored(Bound::Included(probe.as_slice())) {
            Ok(found) => {
                resume = found;
                Ok(false)
            }
            Err(error) if error == *why => Ok(true),
            // Other damage, which the scan meets and skips when it resumes there.
            Err(RowError::Corrupt(_)) => {
                resume = Some(probe.clone());
                Ok(false)
            }
            Err(error) => Err(error),
        };
        // The beginnings of a key are in ascending order, so the first that lies behind the damage
        // is found by halving their number. The damage ends between it and the one before.
        let (mut lower, mut upper) = (Key::from_slice(damaged), Key::from_slice(behind));
        let shared = damaged.iter().zip(behind).take_while(|(one, other)| one == other).count();
        let (mut short, mut long) = (shared, behind.len());
        while long - short > 1 {
            let probe = Key::from_slice(&behind[..short + (long - short) / 2]);
            if is_damaged(&probe)? {
                (short, lower) = (probe.len(), probe);
            } else {
                (long, upper) = (probe.len(), probe);
            }
        }
        for _ in 0..MAX_PROBES {
            let Some(probe) = middle(Some(lower.as_slice()), Some(upper.as_slice())) else { break };
            if is_damaged(&probe)? {
                lower = probe;
            } else {
                upper = probe;
            }
        }
        Ok(resume)
    }
}

impl ScanPastDamage<'_> {
    /// A page that cannot be read: the scan resumes behind it.
    fn skip_page(&mut self, error: RowError) -> RowError {
        self.rows = None;
        let Some(start) = self.start.take().filter(|_| matches!(error, RowError::Corrupt(_))) else {
            return error;
        };
        match self.snapshot.resume_behind(bytes_of(&start), self.end.as_ref(), &error) {
            Ok(resume) => {
                self.start = resume.map(Bound::Included);
                error
            }
            Err(error) => error,
        }
    }

    /// A row that fails its checksum, on a page that can be read.
    fn skip_row(&mut self, key: Key, error: RowError) -> RowError {
        if !keys::is_packed(&key) {
            self.start = Some(Bound::Excluded(key));
            return error;
        }
        // Entries of an index lie behind the key of their row, so the scan continues with the next
        // row.
        self.rows = None;
        match self.snapshot.first_stored(Bound::Excluded(key.as_slice())) {
            Ok(next) => {
                let is_before_end = |key: &Key| self.end.as_ref().is_none_or(|end| key < end);
                self.start = next.filter(is_before_end).map(Bound::Included);
                error
            }
            Err(_) => {
                self.start = Some(Bound::Excluded(key));
                self.skip_page(error)
            }
        }
    }
}

impl Iterator for ScanPastDamage<'_> {
    type Item = Result<(Key, Bytes), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.start.as_ref()?;
        if self.rows.is_none() {
            match self.snapshot.within(start.as_ref().map(Key::as_slice), end_of(self.end.as_ref())) {
                Ok(rows) => self.rows = Some(Box::new(rows)),
                Err(error) => return Some(Err(self.skip_page(error))),
            }
        }
        match self.rows.as_mut()?.next() {
            None => {
                self.start = None;
                None
            }
            Some(Ok((key, Ok(value)))) => {
                self.start = Some(Bound::Excluded(key.clone()));
                Some(Ok((key, value)))
            }
            Some(Ok((key, Err(error)))) => Some(Err(self.skip_row(key, error))),
            Some(Err(error)) => Some(Err(self.skip_page(error))),
        }
    }
}
