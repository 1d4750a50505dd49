//! The files of the log. A segment is one file and holds the commits between two checkpoints.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::{MIN_SEGMENT_BYTES, SegmentHeader, SegmentId};
use crate::disk::files::{Files, StoreFile};

/// What the names of segments start with; the first sequence follows, in [`NAME_DIGITS`] digits.
const NAME_PREFIX: &str = "log-";

/// As many digits as the largest sequence has.
const NAME_DIGITS: usize = 20;

/// A segment that a checkpoint has freed, kept to be used again: its blocks are allocated already, which makes
/// syncs about five times as fast.
pub(crate) const SPARE_NAME: &str = "spare.tmp";

/// A segment that is being made.
const NEW_NAME: &str = "log.tmp";

/// Name of the file of a segment.
pub(crate) fn segment_name(first_sequence: u64) -> String {
    format!("{NAME_PREFIX}{first_sequence:0NAME_DIGITS$}")
}

/// The first sequence of a segment, by the name of its file; `None` for other files.
pub(crate) fn first_sequence_of(name: &str) -> Option<u64> {
    name.strip_prefix(NAME_PREFIX).filter(|digits| digits.len() == NAME_DIGITS)?.parse().ok()
}

/// First sequences of all segments, ascending.
pub(crate) fn first_sequences(files: &Arc<dyn Files>) -> io::Result<Vec<u64>> {
    let mut first_sequences: Vec<u64> =
        files.list()?.iter().filter_map(|name| first_sequence_of(name)).collect();
    first_sequences.sort_unstable();
    Ok(first_sequences)
}

/// The segments that exist. Shared by the writer, which adds one at a time, and the checkpointer, which frees them.
#[derive(Debug)]
pub(crate) struct Segments {
    files: Arc<dyn Files>,
    /// First sequences, ascending; the last one is being written.
    first_sequences: Mutex<Vec<u64>>,
}

impl Segments {
    /// Segments with these first sequences, ascending.
    pub(crate) fn new(files: &Arc<dyn Files>, first_sequences: Vec<u64>) -> Arc<Self> {
        Arc::new(Segments { files: Arc::clone(files), first_sequences: Mutex::new(first_sequences) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.first_sequences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a segment has not been freed.
    pub(crate) fn has(&self, segment: SegmentId) -> bool {
        self.lock().contains(&segment.first_sequence)
    }

    /// Removes segments that hold nothing beyond `covered`; one of them is kept to be used again.
    pub(crate) fn free(&self, covered: u64) -> io::Result<()> {
        let mut first_sequences = self.lock();
        let mut freed = false;
        // A segment ends where the next one begins, so the last one always stays.
        while let [first, next, ..] = first_sequences[..]
            && next <= covered.saturating_add(1)
        {
            self.files.rename(&segment_name(first), SPARE_NAME)?;
            first_sequences.remove(0);
            freed = true;
        }
        if freed { self.files.sync_dir() } else { Ok(()) }
    }

    /// Makes a segment, or uses a freed one again. It has no name yet that counts.
    pub(crate) fn prepare(&self, id: SegmentId) -> io::Result<Prepared> {
        // The lock keeps the checkpointer from freeing a segment into the spare one's name meanwhile.
        let _first_sequences = self.lock();
        let file = match self.files.rename(SPARE_NAME, NEW_NAME).and_then(|()| self.files.open(NEW_NAME)) {
            Ok(spare) => spare,
            Err(_) => self.files.create(NEW_NAME)?,
        };
        let len = file.len()?;
        if len < MIN_SEGMENT_BYTES {
            file.write_at(len, &vec![0; usize::try_from(MIN_SEGMENT_BYTES - len).unwrap_or(0)])?;
        }
        file.write_at(0, &SegmentHeader::new(id).encode())?;
        file.sync()?;
        Ok(Prepared { file, id })
    }
}

/// A segment that has no name yet.
pub(crate) struct Prepared {
    pub(crate) file: Arc<dyn StoreFile>,
    pub(crate) id: SegmentId,
}

impl Prepared {
    /// Gives it its name durably, which makes it the last segment.
    ///
    /// # Errors
    /// It is not known then which segment is the last one on the disk.
    pub(crate) fn publish(self, segments: &Segments) -> io::Result<Self> {
        let name = segment_name(self.id.first_sequence);
        segments.files.rename(NEW_NAME, &name)?;
        segments.files.sync_dir()?;
        // Under its final name, so that errors contain that one.
        let file = segments.files.open(&name)?;
        let mut first_sequences = segments.lock();
        // One that is made anew has its place already.
        first_sequences.retain(|first| *first != self.id.first_sequence);
        first_sequences.push(self.id.first_sequence);
        drop(first_sequences);
        Ok(Prepared { file, id: self.id })
    }
}

/// The salt of a new segment.
pub(crate) fn fresh_salt() -> u64 {
    RandomState::new().build_hasher().finish()
}
