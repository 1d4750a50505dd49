//! Reading a log that may be damaged: every record that can be read, every place where one cannot, and every segment
//! that should be there and is not.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::read::missing_segment;
use super::record::{
    BadHeader, FoundRecord, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId, next_record_behind, record_at,
};
use super::segments::{first_sequences, segment_name};
use crate::disk::files::Files;

/// What was found in a segment.
#[derive(Debug)]
pub(crate) enum Scanned<'a> {
    Record {
        sequence: u64,
        body: &'a [u8],
    },
    Damage {
        file: &'a str,
        what: String,
    },
    /// A whole segment is not there.
    Missing {
        file: &'a str,
        first_sequence: u64,
        what: String,
    },
}

/// Gives everything in all segments to `each`, in order, then what is missing. The state names the anchor.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn scan(
    files: &Arc<dyn Files>,
    anchor: Option<SegmentId>,
    each: &mut dyn FnMut(Scanned<'_>),
) -> io::Result<()> {
    // By first sequence: the salts of those that are there, and who names those that should be.
    let mut salts: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut named: BTreeMap<u64, (SegmentId, String)> = BTreeMap::new();
    named.extend(anchor.map(|anchor| (anchor.first_sequence, (anchor, "state.redb".to_owned()))));
    for first in first_sequences(files)? {
        let file = segment_name(first);
        let (salt, link) = scan_file(files, &file, first, each);
        salts.insert(first, salt);
        named.extend(link.map(|link| (link.first_sequence, (link, file))));
    }
    for (first_sequence, (segment, named_by)) in named {
        let file = segment_name(first_sequence);
        match salts.get(&first_sequence) {
            None => {
                let what = missing_segment(segment, &named_by);
                each(Scanned::Missing { file: &file, first_sequence, what });
            }
            Some(Some(salt)) if *salt != segment.salt => {
                let what =
                    format!("is not the segment that {named_by} names: one of the two is of another time");
                each(Scanned::Damage { file: &file, what });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Gives everything in a segment to `each`. Returns its salt, unless its header is damaged, and its link.
fn scan_file(
    files: &Arc<dyn Files>,
    file: &str,
    first: u64,
    each: &mut dyn FnMut(Scanned<'_>),
) -> (Option<u64>, Option<SegmentId>) {
    let bytes = files.open(file).and_then(|open| {
        let mut bytes = vec![0; usize::try_from(open.len()?).unwrap_or(usize::MAX)];
        open.read_at(0, &mut bytes)?;
        Ok(bytes)
    });
    let what = match bytes.map(|bytes| (SegmentHeader::decode(&bytes), bytes)) {
        Ok((Ok(header), bytes)) if header.id.first_sequence == first => {
            if let Err(what) = header.check_len(bytes.len() as u64) {
                each(Scanned::Damage { file, what });
            }
            let link = scan_segment(file, &bytes, header.id, each);
            return (Some(header.id.salt), link);
        }
        Ok((Ok(header), _)) => format!("says that it starts at {}", header.id.first_sequence),
        Ok((Err(BadHeader::Damaged), _)) => "its header fails its checksum".to_owned(),
        Ok((Err(BadHeader::UnknownFormat(found)), _)) => format!("unknown format {found}"),
        Err(error) => format!("cannot be read: {error}"),
    };
    each(Scanned::Damage { file, what });
    (None, None)
}

fn scan_segment(
    file: &str,
    bytes: &[u8],
    id: SegmentId,
    each: &mut dyn FnMut(Scanned<'_>),
) -> Option<SegmentId> {
    let (mut offset, mut last) = (SEGMENT_HEADER_BYTES, id.first_sequence.saturating_sub(1));
    let mut link = None;
    loop {
        while let Some(record) = record_at(bytes, offset, id.salt) {
            let FoundRecord { sequence, body, end } = record;
            if link.is_some() {
                let what =
                    format!("commit {sequence} at byte {offset} is behind the link that ends the segment");
                each(Scanned::Damage { file, what });
            }
            link = record.link();
            if link.is_none() {
                each(Scanned::Record { sequence, body });
                last = sequence;
            }
            offset = end;
        }
        // Behind the last record there is nothing; a record there means that one before it is damaged.
        let Some(next) = next_record_behind(bytes, offset, id.salt, last) else { return link };
        let what = format!("commit {} at byte {offset} fails its checksum, and later ones follow", last + 1);
        each(Scanned::Damage { file, what });
        offset = next;
    }
}
