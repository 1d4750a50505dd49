//! Segment header and log record. See `docs/embedded-format.md`.
//!
//! The checksum of a record covers the salt of its segment, so a record that an earlier life of the same file left
//! behind, or one inside a payload, is never taken for a record of this segment.

use bytes::Bytes;

/// First bytes of every segment.
const MAGIC: [u8; 8] = *b"SEGNOLOG";

/// Version of the log format that this build writes. Since version 2 a segment that is followed by another one ends
/// with a link to it.
pub(crate) const LOG_FORMAT: u32 = 2;

/// The oldest version that it reads.
const OLDEST_LOG_FORMAT: u32 = 1;

/// The first version with links.
const LINKED_FORMAT: u32 = 2;

/// Length of the header of a segment.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 32;

/// Least length of a segment since version 2. A file that is shorter was cut: it has this length before it has its name.
pub(crate) const MIN_SEGMENT_BYTES: u64 = 256 * 1024;

/// Length of the header of a record: checksum of the rest of it, length, sequence, checksum of the body.
pub(crate) const RECORD_HEADER_BYTES: usize = 20;

/// First byte of the body of a link. The changes of a batch have other first bytes.
const LINK: u8 = 3;

/// Length of a link.
pub(crate) const LINK_BYTES: usize = RECORD_HEADER_BYTES + 1 + size_of::<u64>();

/// Identifies a segment, also among all that ever had its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentId {
    /// Sequence of its first record.
    pub(crate) first_sequence: u64,
    /// Mixed into the checksum of every record.
    pub(crate) salt: u64,
}

impl SegmentId {
    pub(crate) fn encode(self) -> Bytes {
        [self.first_sequence, self.salt].map(u64::to_le_bytes).concat().into()
    }

    /// `None` when these are not its bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let is_whole = bytes.len() == 2 * size_of::<u64>();
        is_whole.then(|| SegmentId { first_sequence: u64_at(bytes, 0), salt: u64_at(bytes, 8) })
    }
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    format: u32,
    pub(crate) id: SegmentId,
}

/// Why the header of a segment cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Damaged,
    UnknownFormat(u32),
}

impl SegmentHeader {
    /// The header of a segment of the newest format.
    pub(crate) fn new(id: SegmentId) -> Self {
        SegmentHeader { format: LOG_FORMAT, id }
    }

    /// Whether the segment can end with a link.
    pub(crate) fn has_links(&self) -> bool {
        self.format >= LINKED_FORMAT
    }

    /// What is wrong with the length of the file, if something is.
    pub(crate) fn check_len(&self, len: u64) -> Result<(), String> {
        if self.format < LINKED_FORMAT || len >= MIN_SEGMENT_BYTES {
            return Ok(());
        }
        Err(format!("was cut short: it has {len} bytes, and a segment has at least {MIN_SEGMENT_BYTES}"))
    }

    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.format.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.id.first_sequence.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.id.salt.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadHeader> {
        let bytes = bytes.get(..SEGMENT_HEADER_BYTES).ok_or(BadHeader::Damaged)?;
        if bytes[..8] != MAGIC || crc32c::crc32c(&bytes[..28]) != u32_at(bytes, 28) {
            return Err(BadHeader::Damaged);
        }
        match u32_at(bytes, 8) {
            format @ OLDEST_LOG_FORMAT..=LOG_FORMAT => {
                let id = SegmentId { first_sequence: u64_at(bytes, 12), salt: u64_at(bytes, 20) };
                Ok(SegmentHeader { format, id })
            }
            unknown => Err(BadHeader::UnknownFormat(unknown)),
        }
    }
}

/// Fills in the header of a record whose first [`RECORD_HEADER_BYTES`] were left free.
pub(crate) fn seal(record: &mut [u8], sequence: u64, salt: u64) {
    let len = u32::try_from(record.len() - RECORD_HEADER_BYTES).expect("a batch is far below 4 GiB");
    record[4..8].copy_from_slice(&len.to_le_bytes());
    record[8..16].copy_from_slice(&sequence.to_le_bytes());
    let body = checksum(&record[RECORD_HEADER_BYTES..], salt);
    record[16..20].copy_from_slice(&body.to_le_bytes());
    let header = checksum(&record[4..RECORD_HEADER_BYTES], salt);
    record[..4].copy_from_slice(&header.to_le_bytes());
}

/// The record that ends a segment with this salt: the log continues in another one.
pub(crate) fn link(next: SegmentId, salt: u64) -> [u8; LINK_BYTES] {
    let mut record = [0; LINK_BYTES];
    record[RECORD_HEADER_BYTES] = LINK;
    record[RECORD_HEADER_BYTES + 1..].copy_from_slice(&next.salt.to_le_bytes());
    seal(&mut record, next.first_sequence, salt);
    record
}

fn checksum(bytes: &[u8], salt: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), bytes)
}

/// A record found in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundRecord<'a> {
    pub(crate) sequence: u64,
    pub(crate) body: &'a [u8],
    /// Where the next one starts.
    pub(crate) end: usize,
}

impl FoundRecord<'_> {
    /// The segment that follows, if this is a link.
    pub(crate) fn link(&self) -> Option<SegmentId> {
        let (LINK, salt) = self.body.split_first().map(|(kind, rest)| (*kind, rest))? else { return None };
        let salt = u64::from_le_bytes(salt.try_into().ok()?);
        Some(SegmentId { first_sequence: self.sequence, salt })
    }
}

/// The whole record at an offset, if one is there.
pub(crate) fn record_at(segment: &[u8], offset: usize, salt: u64) -> Option<FoundRecord<'_>> {
    let header = segment.get(offset..offset.checked_add(RECORD_HEADER_BYTES)?)?;
    // The header has a checksum of its own, so that looking for a record never means reading what is none.
    if checksum(&header[4..], salt) != u32_at(header, 0) {
        return None;
    }
    let len = u32_at(header, 4) as usize;
    let body_start = offset + RECORD_HEADER_BYTES;
    let end = body_start.checked_add(len)?;
    let body = segment.get(body_start..end)?;
    if len == 0 || checksum(body, salt) != u32_at(header, 16) {
        return None;
    }
    Some(FoundRecord { sequence: u64_at(header, 8), body, end })
}

/// Where a whole record lies behind an offset at which none starts. One batch is written at a time and
/// synced before the next, so behind a torn record there is nothing: a record there means that one before it was damaged.
pub(crate) fn next_record_behind(segment: &[u8], offset: usize, salt: u64, above: u64) -> Option<usize> {
    // A sequence follows within this many of the last good one, which spares most offsets the checksum.
    const NEARBY: u64 = 1 << 24;
    let first = offset.saturating_add(1);
    let last = segment.len().saturating_sub(RECORD_HEADER_BYTES);
    (first..last).find(|offset| {
        let sequence = u64_at(segment, *offset + 8);
        sequence > above
            && sequence - above < NEARBY
            && record_at(segment, *offset, salt).is_some_and(|record| record.sequence == sequence)
    })
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sequence: u64, body: &[u8]) -> Vec<u8> {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend_from_slice(body);
        seal(&mut record, sequence, 7);
        record
    }

    #[test]
    fn a_record_is_found_with_its_salt_only() {
        let bytes = record(3, b"hello");
        let found = FoundRecord { sequence: 3, body: b"hello", end: bytes.len() };
        assert_eq!(record_at(&bytes, 0, 7), Some(found));
        assert_eq!(record_at(&bytes, 0, 8), None);
    }

    #[test]
    fn every_flipped_bit_of_a_record_or_header_is_noticed() {
        let sound = record(3, b"hello");
        let header = SegmentHeader::new(SegmentId { first_sequence: 9, salt: 4 }).encode();
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(record_at(&bytes, 0, 7), None, "bit {bit}");
        }
        for bit in 0..header.len() * 8 {
            let mut bytes = header;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bytes), Err(BadHeader::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn a_record_behind_a_damaged_one_is_found() {
        let mut bytes = record(3, b"hello");
        bytes[22] ^= 1;
        assert_eq!(next_record_behind(&bytes, 0, 7, 2), None);
        let next = bytes.len();
        bytes.extend(record(4, b"more"));
        assert_eq!(next_record_behind(&bytes, 0, 7, 2), Some(next));
        assert_eq!(next_record_behind(&bytes, 0, 8, 2), None, "of an earlier life of the file");
    }

    #[test]
    fn a_link_is_told_from_changes_of_rows() {
        let next = SegmentId { first_sequence: 9, salt: 5 };
        let bytes = link(next, 7);
        let found = record_at(&bytes, 0, 7).expect("a whole record");
        assert_eq!((found.link(), found.sequence, found.end), (Some(next), 9, LINK_BYTES));
        let mut batch = crate::log::batch::Batch::default();
        batch.put(&[3], &[3; 8]);
        seal(batch.record_mut(), 9, 7);
        assert_eq!(record_at(batch.record_mut(), 0, 7).expect("a whole record").link(), None);
        assert_eq!(SegmentId::decode(&next.encode()), Some(next));
        assert_eq!(SegmentId::decode(&[0; 15]), None);
    }

    #[test]
    fn looking_through_rubbish_that_resembles_headers_is_quick() {
        // At every eighth byte a length and a sequence that could be right, as stored numbers often are. With a checksum
        // of the body for each, these 4 MiB would take hours.
        let bytes: Vec<u8> =
            (0..512 * 1024_u64).flat_map(|number| (1_000_000 + number).to_le_bytes()).collect();
        assert_eq!(next_record_behind(&bytes, 0, 7, 999_999), None);
    }
}
