//! Limits of the driver.

use std::time::Duration;

/// Most records of the outbox that one append takes.
pub const OUTBOX_RECORDS_PER_PART: usize = 1_000;

/// Most bytes of records that one append takes, unless the first alone has more.
pub const OUTBOX_BYTES_PER_PART: usize = 4 * 1024 * 1024;

/// Largest output of a task that is part of its event, in bytes. A larger one is kept by reference to its instance.
pub const MAX_INLINE_OUTPUT_BYTES: usize = 64 * 1024;

/// Longest error message of a task that is part of its event, in bytes.
pub const MAX_ERROR_BYTES: usize = 4 * 1024;

/// Most tasks that are started in one commit.
pub const STARTS_PER_COMMIT: usize = 256;

/// A dispatched task is checked when its end was not reported for so long.
pub const CHECK_AFTER: Duration = Duration::from_millis(500);

/// Most dispatched tasks that are checked at once.
pub const CHECKS_PER_PART: usize = 256;

/// Calls that are checked or prepared at the same time.
pub const CALLS_AT_ONCE: usize = 64;

/// Most scopes that a node holds at once.
pub const MAX_HELD_SCOPES: usize = 1_024;

/// How long a scope that has nothing to do is kept, because requests often come in bursts.
pub const KEEP_QUIET: Duration = Duration::from_secs(10);

/// How often the log is listed for events that others have appended.
pub const LOG_POLL: Duration = Duration::from_secs(5);

/// How long a holder that commits nothing keeps its scope, unless the driver sets another time. A lease is renewed when
/// half of it is over.
pub const LEASE: Duration = Duration::from_secs(30);

/// How long a read after a write of the same caller waits for its event to be visible.
pub const READ_AFTER_WRITE: Duration = Duration::from_secs(2);
