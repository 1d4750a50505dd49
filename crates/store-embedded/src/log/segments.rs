//! The files of the log. A segment is one file and holds the commits between two checkpoints; opening a store starts a
//! new one, so that no file that was read is written again.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::{
    BadHeader, LOG_FORMAT, SEGMENT_HEADER_BYTES, SegmentHeader, next_record_behind, record_at, seal,
};
use crate::error::OpenError;
use crate::files::{Files, StoreFile};

/// What the names of segments start with; the first sequence follows, in [`NAME_DIGITS`] digits.
const NAME_PREFIX: &str = "log-";

/// As many digits as the largest sequence has.
const NAME_DIGITS: usize = 20;

/// A segment that a checkpoint has freed, kept to be used again: its blocks are allocated already, which makes
/// syncs about five times as fast.
const SPARE_NAME: &str = "spare.tmp";

/// A segment that is being made.
const NEW_NAME: &str = "log.tmp";

/// A segment grows by this many zeros at a time, so that most syncs have no new length to write.
const GROWTH_BYTES: u64 = 256 * 1024;

/// Name of the file of a segment.
pub fn segment_name(first_sequence: u64) -> String {
    format!("{NAME_PREFIX}{first_sequence:0NAME_DIGITS$}")
}

/// The first sequence of a segment, by the name of its file; `None` for other files.
pub fn first_sequence_of(name: &str) -> Option<u64> {
    name.strip_prefix(NAME_PREFIX).filter(|digits| digits.len() == NAME_DIGITS)?.parse().ok()
}

/// First sequences of all segments, ascending.
pub fn first_sequences(files: &Arc<dyn Files>) -> io::Result<Vec<u64>> {
    let mut first_sequences: Vec<u64> =
        files.list()?.iter().filter_map(|name| first_sequence_of(name)).collect();
    first_sequences.sort_unstable();
    Ok(first_sequences)
}

/// Why a batch could not be appended.
#[derive(Debug)]
pub enum AppendError {
    /// No room. Nothing of the batch counts; it may be tried again.
    Full(io::Error),
    /// Anything else: what is on the disk is not known any more.
    Failed(io::Error),
}

/// The segments that exist. Shared by the writer, which adds one at a time, and the checkpointer, which frees them.
#[derive(Debug)]
pub struct Segments {
    files: Arc<dyn Files>,
    /// First sequences, ascending; the last one is being written.
    first_sequences: Mutex<Vec<u64>>,
}

impl Segments {
    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.first_sequences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes segments that hold nothing beyond `covered`; one of them is kept to be used again.
    pub fn free(&self, covered: u64) -> io::Result<()> {
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
}

/// The log, open for appending.
#[derive(Debug)]
pub struct Log {
    segments: Arc<Segments>,
    file: Arc<dyn StoreFile>,
    salt: u64,
    /// Where the next record goes.
    end: u64,
    /// Up to where the file is filled with zeros or old bytes.
    filled: u64,
}

impl Log {
    /// Reads everything beyond `covered`, giving each record to `apply`, then starts a new segment.
    /// Returns the log and the last sequence that is in use.
    pub fn open(
        files: &Arc<dyn Files>,
        covered: u64,
        mut apply: impl FnMut(&[u8]) -> Result<(), OpenError>,
    ) -> Result<(Log, u64), OpenError> {
        let mut first_sequences = first_sequences(files)?;
        // Older ones are left over from a checkpoint that was interrupted before it freed them.
        let needed_from = first_sequences.iter().rposition(|first| *first <= covered.saturating_add(1));
        let mut last = covered;
        for &first in first_sequences.iter().skip(needed_from.unwrap_or(0)) {
            if first > last.saturating_add(1) {
                let missing = last.saturating_add(1);
                return Err(OpenError::Corrupt(format!(
                    "the log has nothing of commit {missing}, but {first}"
                )));
            }
            last = read_segment(files, first, covered, &mut apply)?.max(last);
        }
        let next = last.saturating_add(1);
        first_sequences.retain(|first| *first != next);
        let segments =
            Arc::new(Segments { files: Arc::clone(files), first_sequences: Mutex::new(first_sequences) });
        let log = prepare(&segments, next)?.publish(segments)?;
        Ok((log, last))
    }

    /// The segments, for freeing them.
    pub fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }

    /// Makes a batch durable. Its first bytes are left free for the header.
    pub fn append(&mut self, sequence: u64, batch: &mut [u8]) -> Result<(), AppendError> {
        seal(batch, sequence, self.salt);
        let end = self.end + batch.len() as u64;
        if let Err(error) = self.write(batch, end) {
            if error.kind() != io::ErrorKind::StorageFull {
                return Err(AppendError::Failed(error));
            }
            // What was written of it must not stay in the way of a record that is shorter.
            self.file.set_len(self.end).map_err(AppendError::Failed)?;
            self.filled = self.end;
            return Err(AppendError::Full(error));
        }
        self.file.sync().map_err(AppendError::Failed)?;
        self.end = end;
        Ok(())
    }

    fn write(&mut self, batch: &[u8], end: u64) -> io::Result<()> {
        if end > self.filled {
            let filled = end.next_multiple_of(GROWTH_BYTES);
            let from = self.filled.max(end);
            self.file.write_at(from, &vec![0; usize::try_from(filled - from).unwrap_or(0)])?;
            self.filled = filled;
        }
        self.file.write_at(self.end, batch)
    }

    /// Ends the current segment and starts the next one. Goes on with the current one when the disk has no room for
    /// another.
    ///
    /// # Errors
    /// When it is not known which segment is the last one on the disk.
    pub fn rotate(&mut self, first_sequence: u64) -> io::Result<()> {
        if self.end == SEGMENT_HEADER_BYTES as u64 {
            // Nothing is in it yet, so it is the next one.
            return Ok(());
        }
        match prepare(&self.segments, first_sequence) {
            Ok(prepared) => *self = prepared.publish(Arc::clone(&self.segments))?,
            Err(error) => tracing::warn!(%error, "the log goes on in its current segment"),
        }
        Ok(())
    }
}

/// A segment that has no name yet.
struct Prepared {
    file: Arc<dyn StoreFile>,
    header: SegmentHeader,
}

/// Makes a segment, or uses a freed one again.
fn prepare(segments: &Segments, first_sequence: u64) -> io::Result<Prepared> {
    // The lock keeps the checkpointer from freeing a segment into the spare one's name meanwhile.
    let _segments = segments.lock();
    let files = &segments.files;
    let file = match files.rename(SPARE_NAME, NEW_NAME).and_then(|()| files.open(NEW_NAME)) {
        Ok(spare) => spare,
        Err(_) => files.create(NEW_NAME)?,
    };
    let header = SegmentHeader { first_sequence, salt: RandomState::new().build_hasher().finish() };
    file.write_at(0, &header.encode())?;
    file.sync()?;
    Ok(Prepared { file, header })
}

impl Prepared {
    /// Gives it its name, which makes it the last segment.
    fn publish(self, segments: Arc<Segments>) -> io::Result<Log> {
        let Prepared { file, header } = self;
        segments.files.rename(NEW_NAME, &segment_name(header.first_sequence))?;
        segments.files.sync_dir()?;
        let filled = file.len()?;
        segments.lock().push(header.first_sequence);
        Ok(Log { segments, file, salt: header.salt, end: SEGMENT_HEADER_BYTES as u64, filled })
    }
}

/// Gives every record beyond `covered` to `apply`; returns the last sequence in the segment, or the one before its first.
fn read_segment(
    files: &Arc<dyn Files>,
    first: u64,
    covered: u64,
    apply: &mut impl FnMut(&[u8]) -> Result<(), OpenError>,
) -> Result<u64, OpenError> {
    let name = segment_name(first);
    let file = files.open(&name)?;
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
    file.read_at(0, &mut bytes)?;
    let header = SegmentHeader::decode(&bytes).map_err(|bad| match bad {
        BadHeader::UnknownFormat(found) => OpenError::UnknownFormat { found, known: LOG_FORMAT },
        BadHeader::Damaged => OpenError::Corrupt(format!("the header of {name} fails its checksum")),
    })?;
    if header.first_sequence != first {
        return Err(OpenError::Corrupt(format!("{name} says that it starts at {}", header.first_sequence)));
    }
    let (mut offset, mut last) = (SEGMENT_HEADER_BYTES, first.saturating_sub(1));
    while let Some(record) = record_at(&bytes, offset, header.salt) {
        if record.sequence != last.saturating_add(1) {
            return Err(OpenError::Corrupt(format!("{name} has commit {} after {last}", record.sequence)));
        }
        if record.sequence > covered {
            apply(record.body)?;
        }
        (offset, last) = (record.end, record.sequence);
    }
    if next_record_behind(&bytes, offset, header.salt, last).is_some() {
        return Err(OpenError::Corrupt(format!(
            "commit {} in {name} at byte {offset} fails its checksum, and later ones follow",
            last.saturating_add(1)
        )));
    }
    Ok(last)
}
