//! Which pieces are merged: pure.
//!
//! Active rows: everything above the base is merged into it once it has a quarter of its bytes, so
//! dead rows never are more than that; until then eight pieces of a level become one of the next.
//! Day partitions and events: eight pieces of a level become one of the next. So a byte is written
//! a few times by merges, however long the history is.

use std::ops::Range;

use super::limits::{BASE_GROWTH_DIVISOR, FAN_IN, MAX_MERGE_BYTES, MIN_BASE_MERGE_BYTES};
use crate::manifest::{Piece, Place};

/// The level of the base of active rows.
pub(super) const BASE_LEVEL: u32 = 100;

/// Pieces to be merged into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due {
    /// Their positions.
    pub(super) range: Range<usize>,
    /// The level of the result.
    pub(super) level: u32,
}

/// The next merge of a group, if one is due; pieces are in order, the oldest first.
pub(super) fn due(place: &Place, pieces: &[Piece]) -> Option<Due> {
    match place {
        Place::Active => into_base(pieces).or_else(|| {
            let above = tier(pieces.get(1..)?)?;
            Some(Due { range: above.range.start + 1..above.range.end + 1, level: above.level })
        }),
        Place::Day(_) => tier(pieces),
    }
}

fn into_base(pieces: &[Piece]) -> Option<Due> {
    let (base, above) = pieces.split_first()?;
    let (base, above) = (bytes(std::slice::from_ref(base)), bytes(above));
    let is_due = above >= (base / BASE_GROWTH_DIVISOR).max(MIN_BASE_MERGE_BYTES);
    let fits = base + above <= MAX_MERGE_BYTES;
    (is_due && fits).then_some(Due { range: 0..pieces.len(), level: BASE_LEVEL })
}

/// The newest run of pieces of one level that is long enough.
fn tier(pieces: &[Piece]) -> Option<Due> {
    let mut end = pieces.len();
    while end > 0 {
        let level = pieces[end - 1].level;
        let older = pieces[..end].iter().rposition(|piece| piece.level != level);
        let start = older.map_or(0, |older| older + 1);
        if end - start >= FAN_IN && bytes(&pieces[start..end]) <= MAX_MERGE_BYTES {
            return Some(Due { range: start..end, level: level + 1 });
        }
        end = start;
    }
    None
}

fn bytes(pieces: &[Piece]) -> u64 {
    pieces.iter().flat_map(Piece::files).map(|file| file.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::FileRef;

    fn pieces(levels_and_bytes: &[(u32, u64)]) -> Vec<Piece> {
        let piece = |(at, (level, bytes)): (usize, &(u32, u64))| {
            let file = FileRef {
                path: String::new(),
                sha256: String::new(),
                bytes: *bytes,
                rows: 1,
                first_key: None,
                last_key: None,
            };
            Piece { sequence: at as u64, level: *level, rows: Some(file), deletions: None }
        };
        levels_and_bytes.iter().enumerate().map(piece).collect()
    }

    #[test]
    fn merges_are_due_by_level_and_by_the_size_above_the_base() {
        let kb = 1 << 10;
        let day = Place::Day("2026-11-18".to_owned());
        let some = |range, level| Some(Due { range, level });
        for (place, list, expected) in [
            (&day, vec![(1, kb); 7], None),
            (&day, vec![(1, kb); 8], some(0..8, 2)),
            (&day, [vec![(2, kb); 8], vec![(1, kb); 3]].concat(), some(0..8, 3)),
            (&day, [vec![(2, kb); 7], vec![(1, kb); 9]].concat(), some(7..16, 2)),
            (&day, vec![(1, MAX_MERGE_BYTES); 8], None),
            (&Place::Active, vec![(1, kb)], None),
            (&Place::Active, vec![(BASE_LEVEL, kb), (1, 200 * kb)], None),
            (&Place::Active, vec![(BASE_LEVEL, kb), (1, 300 * kb)], some(0..2, BASE_LEVEL)),
            (&Place::Active, vec![(BASE_LEVEL, 4_000 * kb), (1, 300 * kb)], None),
            (&Place::Active, [vec![(BASE_LEVEL, 4_000 * kb)], vec![(1, kb); 8]].concat(), some(1..9, 2)),
            (&Place::Active, vec![], None),
        ] {
            assert_eq!(due(place, &pieces(&list)), expected, "{place:?} {list:?}");
        }
    }
}
