//! The log that is being written. Opening a store starts a new segment, so that nothing that was read is written over.
//!
//! A segment that was left gets a link to the next one before that holds anything that is acknowledged.

use std::io;
use std::sync::Arc;

use super::read::{ReadLog, ReadSegment};
use super::record::{LINK_BYTES, MIN_SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SegmentId, link, seal};
use super::segments::{Prepared, Segments, fresh_salt};
use crate::disk::files::{Files, StoreFile};
use crate::disk::full_disk::is_full;

/// A segment grows by this many zeros at a time, so that most syncs have no new length to write.
const GROWTH_BYTES: u64 = MIN_SEGMENT_BYTES;

/// Why a batch could not be appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// No room. Nothing of the batch counts; it may be tried again.
    Full(io::Error),
    /// Anything else: what is on the disk is not known any more.
    Failed(io::Error),
}

/// The log, open for appending.
#[derive(Debug)]
pub(crate) struct Log {
    segments: Arc<Segments>,
    current: Segment,
    /// The segment before the current one, until it has its link.
    unlinked: Option<Segment>,
    /// Whether the current segment is or will be the target of a link.
    is_linked: bool,
}

/// A segment that is written to.
#[derive(Debug)]
struct Segment {
    file: Arc<dyn StoreFile>,
    id: SegmentId,
    /// Where the next record goes.
    end: u64,
    /// Up to where the file is filled with zeros or old bytes.
    filled: u64,
}

impl Log {
    /// Starts a new segment behind what was read. Nothing is promised of it before the first append.
    pub(crate) fn start(files: &Arc<dyn Files>, read: ReadLog) -> io::Result<Log> {
        let ReadLog { first_sequences, last, newest, before_newest } = read;
        let first_sequence = last.saturating_add(1);
        let segments = Segments::new(files, first_sequences);
        let is_empty = |newest: &ReadSegment| newest.header.id.first_sequence == first_sequence;
        let (salt, previous) = match newest {
            // It is made anew under its name. Its salt stays, because a link or the state may name it.
            Some(newest) if is_empty(&newest) => (newest.header.id.salt, before_newest),
            newest => (fresh_salt(), newest),
        };
        let previous = previous.filter(|previous| previous.last.saturating_add(1) == first_sequence);
        if let Some(previous) = &previous {
            // A process that was killed may have left a record that is whole and not durable. It counts from now on.
            previous.file.sync()?;
        }
        let prepared = segments.prepare(SegmentId { first_sequence, salt })?;
        let current = Segment::new(prepared.publish(&segments)?)?;
        // Segments of the first format have no links.
        let previous = previous.filter(|previous| previous.header.has_links());
        let is_linked = previous.is_some();
        let unlinked = previous.filter(|previous| previous.link.is_none()).map(Segment::read).transpose()?;
        Ok(Log { segments, current, unlinked, is_linked })
    }

    /// The segments, for freeing them.
    pub(crate) fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }

    /// The segment that is being written.
    pub(crate) fn current(&self) -> SegmentId {
        self.current.id
    }

    /// Whether the segment before the current one names it, at the latest when the first append is done. If not, the
    /// state must.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Makes a batch durable. Its first bytes are left free for the header.
    pub(crate) fn append(&mut self, sequence: u64, batch: &mut [u8]) -> Result<(), AppendError> {
        self.link()?;
        seal(batch, sequence, self.current.id.salt);
        // Room for the link is taken in advance, so that a full disk does not keep a segment from its end.
        self.current.append(batch, LINK_BYTES as u64)
    }

    /// Ends the segment before the current one with a link.
    fn link(&mut self) -> Result<(), AppendError> {
        let Some(unlinked) = &mut self.unlinked else { return Ok(()) };
        // A checkpoint that has freed it has named the current one itself.
        if self.segments.has(unlinked.id) {
            let link = link(self.current.id, unlinked.id.salt);
            unlinked.append(&link, 0)?;
        }
        self.unlinked = None;
        Ok(())
    }

    /// Leaves the current segment and starts the next one. Goes on with the current one when the disk has no room for
    /// another.
    ///
    /// # Errors
    /// When it is not known which segment is the last one on the disk.
    pub(crate) fn rotate(&mut self, first_sequence: u64) -> io::Result<()> {
        if self.current.is_empty() {
            // It is the next one.
            return Ok(());
        }
        match self.segments.prepare(SegmentId { first_sequence, salt: fresh_salt() }) {
            Ok(prepared) => {
                let next = Segment::new(prepared.publish(&self.segments)?)?;
                self.unlinked = Some(std::mem::replace(&mut self.current, next));
                self.is_linked = true;
            }
            Err(error) => tracing::warn!(%error, "the log goes on in its current segment"),
        }
        Ok(())
    }
}

impl Segment {
    /// A segment without records.
    fn new(prepared: Prepared) -> io::Result<Self> {
        let Prepared { file, id } = prepared;
        let filled = file.len()?;
        Ok(Segment { file, id, end: SEGMENT_HEADER_BYTES as u64, filled })
    }

    /// A segment that was read.
    fn read(read: ReadSegment) -> io::Result<Self> {
        let ReadSegment { file, header, end, .. } = read;
        let filled = file.len()?;
        Ok(Segment { file, id: header.id, end, filled })
    }

    fn is_empty(&self) -> bool {
        self.end == SEGMENT_HEADER_BYTES as u64
    }

    /// Makes a record durable. So many bytes behind it belong to the file then.
    fn append(&mut self, record: &[u8], reserved: u64) -> Result<(), AppendError> {
        let end = self.end + record.len() as u64;
        if let Err(error) = self.write(record, end, end + reserved) {
            if !is_full(&error) {
                return Err(AppendError::Failed(error));
            }
            // What was written of it is not kept, as far as a segment may be short.
            self.filled = self.end.max(MIN_SEGMENT_BYTES);
            self.file.set_len(self.filled).map_err(AppendError::Failed)?;
            return Err(AppendError::Full(error));
        }
        self.file.sync().map_err(AppendError::Failed)?;
        self.end = end;
        Ok(())
    }

    fn write(&mut self, record: &[u8], end: u64, needed: u64) -> io::Result<()> {
        if needed > self.filled {
            let filled = needed.next_multiple_of(GROWTH_BYTES);
            let from = self.filled.max(end);
            self.file.write_at(from, &vec![0; usize::try_from(filled - from).unwrap_or(0)])?;
            self.filled = filled;
        }
        self.file.write_at(self.end, record)
    }
}
