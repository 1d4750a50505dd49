//! Reading a log that may be damaged: every record that can be read, and every place where one cannot.

use std::io;
use std::sync::Arc;

use super::record::{
    BadHeader, FoundRecord, SEGMENT_HEADER_BYTES, SegmentHeader, next_record_behind, record_at,
};
use super::segments::{first_sequences, segment_name};
use crate::files::Files;

/// What was found in a segment.
#[derive(Debug)]
pub enum Scanned<'a> {
    Record { sequence: u64, body: &'a [u8] },
    Damage { file: &'a str, what: String },
}

/// Gives everything in all segments to `each`, in order.
///
/// # Errors
/// When the directory cannot be read.
pub fn scan(files: &Arc<dyn Files>, each: &mut dyn FnMut(Scanned<'_>)) -> io::Result<()> {
    for first in first_sequences(files)? {
        let file = segment_name(first);
        let mut damage = |what: String| each(Scanned::Damage { file: &file, what });
        let bytes = files.open(&file).and_then(|open| {
            let mut bytes = vec![0; usize::try_from(open.len()?).unwrap_or(usize::MAX)];
            open.read_at(0, &mut bytes)?;
            Ok(bytes)
        });
        match bytes.map(|bytes| (SegmentHeader::decode(&bytes), bytes)) {
            Err(error) => damage(format!("cannot be read: {error}")),
            Ok((Err(BadHeader::Damaged), _)) => damage("its header fails its checksum".to_owned()),
            Ok((Err(BadHeader::UnknownFormat(found)), _)) => damage(format!("unknown format {found}")),
            Ok((Ok(header), _)) if header.first_sequence != first => {
                damage(format!("says that it starts at {}", header.first_sequence));
            }
            Ok((Ok(header), bytes)) => scan_segment(&file, &bytes, header, each),
        }
    }
    Ok(())
}

fn scan_segment(file: &str, bytes: &[u8], header: SegmentHeader, each: &mut dyn FnMut(Scanned<'_>)) {
    let (mut offset, mut last) = (SEGMENT_HEADER_BYTES, header.first_sequence.saturating_sub(1));
    loop {
        while let Some(FoundRecord { sequence, body, end }) = record_at(bytes, offset, header.salt) {
            each(Scanned::Record { sequence, body });
            (offset, last) = (end, sequence);
        }
        // Behind the last record there is nothing; a record there means that one before it is damaged.
        let Some(next) = next_record_behind(bytes, offset, header.salt, last) else { return };
        let what = format!("commit {} at byte {offset} fails its checksum, and later ones follow", last + 1);
        each(Scanned::Damage { file, what });
        offset = next;
    }
}
