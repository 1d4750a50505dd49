//! Limits of reading.

/// Bytes of a file up to which it is read whole and verified, even if only a part of it is needed.
pub const WHOLE_FILE_BYTES: u64 = 1 << 20;
/// Tries of a read whose files were deleted because newer manifests no longer name them.
pub const SNAPSHOT_TRIES: u32 = 4;
/// Files that are read at the same time.
pub const CONCURRENT_FILES: usize = 8;
