//! Every limit of the archive.

use std::time::Duration;

/// Bytes of a file up to which small files of a day are merged into one.
pub const MAX_MERGED_BYTES: u64 = 16 << 20;

/// Bytes of cells up to which a file is encoded in place; larger ones are encoded on a thread for blocking work.
pub const MAX_INLINE_BYTES: usize = 256 << 10;

/// Files that are read at the same time.
pub const CONCURRENT_FILES: usize = 8;

/// Tries of a read whose files were merged or erased meanwhile.
pub const READ_TRIES: u32 = 5;

/// An erasure holds for rows that are written so much later: longer than any batch of retention is under way, and longer than
/// the time between two merges.
pub const ERASURE_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Erasures that are read at once.
pub const ERASURES_PER_PAGE: usize = 500;

/// Records of doubt that are read or removed at once. Each has the ids of one batch.
pub const DOUBTS_PER_PAGE: usize = 100;

/// Entries of an index: ids of files. Larger ones are not made, nor read.
pub const MAX_INDEX_ENTRIES: usize = 4 << 20;

/// Entries of an index that are read and verified together.
pub const STRETCH_ENTRIES: usize = 4_096;

/// Bytes of an index up to which it is read as a whole.
pub const WHOLE_INDEX_BYTES: usize = 128 << 10;

/// Due records that are archived and removed at once, at most.
pub const RECORDS_PER_PART: usize = 200;

/// Bytes of rows after which no more records are read for a part.
pub const BYTES_PER_PART: usize = 8 << 20;

/// Parts in a row that are repeated because records changed meanwhile.
pub const MAX_CHANGED_PARTS: u32 = 10;

/// Pause between two parts, so that other work comes between.
pub const PART_PAUSE: Duration = Duration::from_millis(20);

/// Time between two looks for records whose time is over.
pub const RETIRE_INTERVAL: Duration = Duration::from_secs(60);

/// A node that has ended holds the work for so long.
pub const RETIRE_LEASE: Duration = Duration::from_secs(5 * 60);

/// Records that cannot be read are looked at again after this.
pub const UNREADABLE_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
