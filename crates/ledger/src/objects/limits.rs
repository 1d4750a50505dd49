//! Limits of calls to an object store.

/// Tries of a call before it is reported as unavailable.
pub const ATTEMPTS: u32 = 5;
/// Wait before the second try; each further wait is four times as long.
pub const FIRST_WAIT_MS: u64 = 5;
/// Calls at the same time, for one fold or one read.
pub const CONCURRENT_CALLS: usize = 16;
