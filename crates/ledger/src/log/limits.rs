//! Limits of the log.

/// Events of one batch.
pub const MAX_BATCH_EVENTS: usize = 4_096;
/// Bytes of one batch.
pub const MAX_BATCH_BYTES: usize = 32 << 20;
/// Batches that one fold takes.
pub const FOLD_BATCHES: usize = 1_024;
/// Bytes that one fold takes, unless a single batch has more.
pub const FOLD_BYTES: u64 = 32 << 20;
/// Folded batches after which they are joined.
pub const JOIN_BATCHES: usize = 256;
/// Bytes of folded batches after which they are joined.
pub const JOIN_BYTES: usize = 8 << 20;
