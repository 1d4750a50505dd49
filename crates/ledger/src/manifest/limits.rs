//! Limits of manifests.

/// Deltas before they are merged.
pub const L0_DELTAS: usize = 10;
/// Rows of all deltas before they are merged.
pub const L0_ROWS: u64 = 100_000;
/// Age of the oldest delta before they are merged.
pub const L0_AGE_MS: u64 = 300_000;
/// Bytes of a manifest or a part that is read.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// Files that a manifest with its parts may name.
pub const MAX_FILES: usize = 1 << 20;
/// Bytes of a path in a manifest.
pub const MAX_PATH_BYTES: usize = 512;
