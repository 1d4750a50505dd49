//! Arithmetic of ids. Members have an ordinal in their batch; ids are given in blocks of
//! [`BLOCK_ORDINALS`] ordinals. A block of members has one id for each ordinal. A block of a phase's
//! steps has as many for each step index:
//!
//! ```text
//! id = first id of the block + index × 1,024 + ordinal mod 1,024
//! ```
//!
//! So the steps of one index are ranges of ids, and an id gives index and ordinal without a lookup.

use serde::{Deserialize, Serialize};

/// Ordinals in a block.
pub const BLOCK_ORDINALS: u32 = 1_024;

/// Place of a member in its batch, from 0.
pub type Ordinal = u32;

/// Where an id is within its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Place of the member in its batch.
    pub ordinal: Ordinal,
    /// Index of the step.
    pub index: u32,
}

/// First ids of consecutive blocks. They go up, because counters do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Blocks(Vec<u64>);

impl Blocks {
    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ordinals that the blocks have room for.
    pub fn capacity(&self) -> Ordinal {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX).saturating_mul(BLOCK_ORDINALS)
    }

    /// First id of the last block; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// Adds a block.
    pub fn push(&mut self, first_id: u64) {
        debug_assert!(self.0.last().is_none_or(|last| *last < first_id), "ids of blocks go up");
        self.0.push(first_id);
    }

    /// The id of a place, if its block exists.
    pub fn id(&self, ordinal: Ordinal, index: u32) -> Option<u64> {
        let first = self.0.get((ordinal / BLOCK_ORDINALS) as usize)?;
        Some(first + u64::from(index) * u64::from(BLOCK_ORDINALS) + u64::from(ordinal % BLOCK_ORDINALS))
    }

    /// The place of an id among blocks with so many indexes, if one of them has it.
    pub fn place(&self, id: u64, indexes: u32) -> Option<Place> {
        let block = self.0.partition_point(|first| *first <= id).checked_sub(1)?;
        let within = id - self.0[block];
        let index = u32::try_from(within / u64::from(BLOCK_ORDINALS)).ok()?;
        let rest = u32::try_from(within % u64::from(BLOCK_ORDINALS)).ok()?;
        let block = u32::try_from(block).ok()?;
        (index < indexes).then(|| Place { ordinal: block * BLOCK_ORDINALS + rest, index })
    }
}

/// First ordinal of the next block.
pub fn block_end(ordinal: Ordinal) -> Ordinal {
    (ordinal / BLOCK_ORDINALS).saturating_add(1).saturating_mul(BLOCK_ORDINALS)
}

/// Ids that a block takes.
pub fn block_ids(indexes: u32) -> u64 {
    u64::from(indexes) * u64::from(BLOCK_ORDINALS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_and_its_place_give_each_other() {
        let mut blocks = Blocks::default();
        blocks.push(1_000);
        blocks.push(50_000);
        for (ordinal, index, id) in [
            (0, 0, 1_000),
            (1, 0, 1_001),
            (1_023, 0, 2_023),
            (0, 1, 2_024),
            (1_023, 3, 1_000 + 3 * 1_024 + 1_023),
            (1_024, 0, 50_000),
            (1_025, 2, 50_000 + 2 * 1_024 + 1),
        ] {
            assert_eq!(blocks.id(ordinal, index), Some(id), "ordinal {ordinal}, index {index}");
            assert_eq!(blocks.place(id, 4), Some(Place { ordinal, index }), "id {id}");
        }
    }

    #[test]
    fn ids_of_others_have_no_place() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.place(1_000, 4), None);
        blocks.push(1_000);
        for id in [0, 999, 1_000 + 4 * 1_024, u64::MAX] {
            assert_eq!(blocks.place(id, 4), None, "id {id}");
        }
        assert_eq!(blocks.id(1_024, 0), None, "there is no second block");
    }

    #[test]
    fn blocks_end_at_multiples() {
        for (ordinal, end) in [(0, 1_024), (1_023, 1_024), (1_024, 2_048)] {
            assert_eq!(block_end(ordinal), end);
        }
        assert_eq!(block_ids(4), 4_096);
        let mut blocks = Blocks::default();
        assert_eq!(blocks.capacity(), 0);
        blocks.push(7);
        assert_eq!(blocks.capacity(), 1_024);
    }
}
