//! Limits of manifests.

/// Deltas before they are merged.
pub const L0_DELTAS: usize = 10;
/// Rows of all deltas before they are merged.
pub const L0_ROWS: u64 = 100_000;
/// Age of the oldest delta before they are merged.
pub const L0_AGE_MS: u64 = 300_000;
/// Bytes of a manifest or a part that is read.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// Bytes of all parts of one manifest together that are read.
pub const MAX_CATALOG_BYTES: u64 = 256 << 20;
/// Months of one manifest that are read: two centuries.
pub const MAX_MONTHS: usize = 2_400;
/// The largest number of a manifest: what a ledger cannot reach at a thousand publications a second.
pub const MAX_NUMBER: u64 = 1 << 53;
/// Files that a manifest with its parts may name.
pub const MAX_FILES: usize = 1 << 20;
/// Bytes of a path in a manifest.
pub const MAX_PATH_BYTES: usize = 512;
