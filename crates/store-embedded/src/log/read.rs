//! Reading a log that must be whole, without changing it. Every segment follows the one before without a gap, every one
//! that is promised is there, and a place without a whole record is the end of its segment.

use std::io;
use std::sync::Arc;

use super::record::{
    BadHeader, LOG_FORMAT, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, next_record_behind, record_at,
};
use super::segments::{first_sequences, segment_name};
use crate::disk::files::{Files, StoreFile};
use crate::error::OpenError;

/// Which commits to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The last commit that a checkpoint has.
    pub(crate) covered: u64,
    /// The last commit to read. Later ones are not read: a writer may be writing there.
    pub(crate) up_to: u64,
    /// A segment that a checkpoint has seen.
    pub(crate) anchor: Option<SegmentId>,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct ReadLog {
    /// First sequences of all segments, ascending.
    pub(crate) first_sequences: Vec<u64>,
    /// The last commit that there is.
    pub(crate) last: u64,
    /// The last segment that was read, and the one before it.
    pub(crate) newest: Option<ReadSegment>,
    pub(crate) before_newest: Option<ReadSegment>,
}

/// A segment as it was read.
#[derive(Debug)]
pub(crate) struct ReadSegment {
    pub(crate) file: Arc<dyn StoreFile>,
    pub(crate) header: SegmentHeader,
    /// Where its last record ends.
    pub(crate) end: u64,
    /// The segment that its link names.
    pub(crate) link: Option<SegmentId>,
    /// Its last commit, or the one before its first.
    pub(crate) last: u64,
}

/// Gives every record beyond what a checkpoint has to `apply`, in order.
///
/// # Errors
/// `Corrupt` when something of the log is damaged or missing.
pub(crate) fn read(
    files: &Arc<dyn Files>,
    wanted: Wanted,
    mut apply: impl FnMut(&[u8]) -> Result<(), OpenError>,
) -> Result<ReadLog, OpenError> {
    let first_sequences = first_sequences(files)?;
    if let Some(anchor) = wanted.anchor {
        verify_anchor(files, anchor)?;
    }
    let mut read = ReadLog { first_sequences, last: wanted.covered, newest: None, before_newest: None };
    // Older ones are left over from a checkpoint that was interrupted before it freed them.
    let is_needed = |first: &u64| *first <= wanted.covered.saturating_add(1);
    let needed_from = read.first_sequences.iter().rposition(is_needed).unwrap_or(0);
    for &first in &read.first_sequences[needed_from..] {
        if read.last >= wanted.up_to {
            return Ok(read);
        }
        let promised = read.newest.as_ref().and_then(|before| before.link);
        if promised.is_some_and(|promised| promised.first_sequence < first) {
            break;
        }
        let next = read.last.saturating_add(1);
        if first > next {
            return Err(gap(next, first));
        }
        let segment = read_segment(files, first, wanted, &mut apply)?;
        if let Some(promised) = promised.filter(|promised| *promised != segment.header.id) {
            let before = read.newest.as_ref().map_or(0, |before| before.header.id.first_sequence);
            return Err(mismatch(promised, &segment_name(before)));
        }
        read.last = read.last.max(segment.last);
        read.before_newest = read.newest.replace(segment);
    }
    if let Some(segment) = &read.newest
        && let Some(missing) = segment.link
    {
        return Err(OpenError::Corrupt(missing_segment(
            missing,
            &segment_name(segment.header.id.first_sequence),
        )));
    }
    Ok(read)
}

/// Fails when a segment is of a format that this build does not know. Damaged segments are left to
/// their readers.
///
/// # Errors
/// `UnknownFormat`, or when the directory cannot be read.
pub(crate) fn refuse_unknown_format(files: &Arc<dyn Files>) -> Result<(), OpenError> {
    for first in first_sequences(files)? {
        let name = segment_name(first);
        let Ok(file) = files.open(&name) else { continue };
        if let Err(error @ OpenError::UnknownFormat { .. }) = read_header(&*file, &name) {
            return Err(error);
        }
    }
    Ok(())
}

/// Fails when the segment that the state names is not there.
fn verify_anchor(files: &Arc<dyn Files>, anchor: SegmentId) -> Result<(), OpenError> {
    const STATE: &str = "state.redb";
    let name = segment_name(anchor.first_sequence);
    let file = match files.open(&name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Corrupt(missing_segment(anchor, STATE)));
        }
        opened => opened?,
    };
    match read_header(&*file, &name)? {
        header if header.id == anchor => Ok(()),
        _ => Err(mismatch(anchor, STATE)),
    }
}

/// What is wrong when a segment is not there.
pub(crate) fn missing_segment(segment: SegmentId, named_by: &str) -> String {
    let SegmentId { first_sequence, .. } = segment;
    let name = segment_name(first_sequence);
    format!("{name} is missing, although {named_by} names it; commits from {first_sequence} on may be lost")
}

fn mismatch(segment: SegmentId, named_by: &str) -> OpenError {
    let name = segment_name(segment.first_sequence);
    OpenError::Corrupt(format!(
        "{name} is not the segment that {named_by} names: one of the two is of another time"
    ))
}

fn gap(missing: u64, found: u64) -> OpenError {
    let name = segment_name(found);
    OpenError::Corrupt(format!(
        "the log has nothing of commit {missing}, but {name} follows: a segment before it is gone or was cut short"
    ))
}

fn read_header(file: &dyn StoreFile, name: &str) -> Result<SegmentHeader, OpenError> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    let header = match file.read_at(0, &mut bytes) {
        Ok(()) => SegmentHeader::decode(&bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(BadHeader::Damaged),
        Err(error) => return Err(error.into()),
    };
    header.map_err(|bad| match bad {
        BadHeader::UnknownFormat(found) => OpenError::UnknownFormat { found, known: LOG_FORMAT },
        BadHeader::Damaged => OpenError::Corrupt(format!("the header of {name} fails its checksum")),
    })
}

/// Gives every record that is wanted to `apply`.
fn read_segment(
    files: &Arc<dyn Files>,
    first: u64,
    wanted: Wanted,
    apply: &mut impl FnMut(&[u8]) -> Result<(), OpenError>,
) -> Result<ReadSegment, OpenError> {
    let name = segment_name(first);
    let file = files.open(&name)?;
    let header = read_header(&*file, &name)?;
    if header.id.first_sequence != first {
        let found = header.id.first_sequence;
        return Err(OpenError::Corrupt(format!("{name} says that it starts at {found}")));
    }
    let len = file.len()?;
    header.check_len(len).map_err(|what| OpenError::Corrupt(format!("{name} {what}")))?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    file.read_at(0, &mut bytes)?;
    let (mut offset, mut last, mut link) = (SEGMENT_HEADER_BYTES, first.saturating_sub(1), None);
    let salt = header.id.salt;
    while last < wanted.up_to
        && link.is_none()
        && let Some(record) = record_at(&bytes, offset, salt)
    {
        if record.sequence != last.saturating_add(1) {
            return Err(OpenError::Corrupt(format!("{name} has commit {} after {last}", record.sequence)));
        }
        offset = record.end;
        link = record.link();
        if link.is_some() {
            continue;
        }
        last = record.sequence;
        if last > wanted.covered {
            apply(record.body)?;
        }
    }
    let is_at_end = last < wanted.up_to;
    if is_at_end && is_followed(&bytes, offset, salt, last) {
        return Err(OpenError::Corrupt(format!(
            "commit {} in {name} at byte {offset} fails its checksum, and later ones follow",
            last.saturating_add(1)
        )));
    }
    Ok(ReadSegment { file, header, end: offset as u64, link, last })
}

/// Whether a whole record lies at or behind the end of a segment.
fn is_followed(bytes: &[u8], end: usize, salt: u64, last: u64) -> bool {
    record_at(bytes, end, salt).is_some() || next_record_behind(bytes, end, salt, last).is_some()
}
