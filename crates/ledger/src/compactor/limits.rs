//! Limits of the compactor. Those of deltas are in the manifest's `limits.rs`.

/// Pieces of one level that are merged into one of the next.
pub const FAN_IN: usize = 8;
/// Bytes of the pieces above the base, in parts of the base, at which they are merged into it: a
/// quarter. So a byte is written five times by merges into the base, and at most three times before
/// that.
pub const BASE_GROWTH_DIVISOR: u64 = 4;
/// Bytes of the pieces above the base below which they are not merged into it.
pub const MIN_BASE_MERGE_BYTES: u64 = 256 << 10;
/// Bytes of pieces that are not merged any further.
pub const MAX_MERGE_BYTES: u64 = 512 << 20;
/// Tries of a fold that other compactors overtake.
pub const FOLD_TRIES: u32 = 4;
/// How long files and manifests that are no longer named are kept for readers.
pub const GRACE_MS: u64 = 60_000;
/// Rows of finished runs that are moved to day partitions together.
pub const ARCHIVE_RUNS: usize = 1_000;
/// Rows of finished runs that one fold moves to day partitions, unless the first run alone has more: so that no fold takes long
/// because many runs have ended together.
pub const ARCHIVE_ROWS: u64 = 5_000;
/// How long a finished run stays among the active ones at most, while events are folded.
pub const ARCHIVE_AGE_MS: u64 = 60_000;
/// How long a finished run is kept, unless the options set another time.
pub const RUN_RETENTION_MS: u64 = 90 * 24 * 60 * 60 * 1_000;
/// Pause after the last publication before which the place of the manifests is not verified again.
pub const PLACE_CHECK_MS: u64 = 1_000;
/// Files that are deleted in one go.
pub const DELETIONS: usize = 512;
/// Age of a file that no manifest names before a sweep deletes it: longer than any merge.
pub const ORPHAN_AGE_MS: u64 = 3_600_000;
/// Bytes of batches that are kept in memory until they are joined.
pub const CACHED_BATCH_BYTES: usize = 32 << 20;
