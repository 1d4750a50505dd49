//! Limits and pauses of running batches, by name and with their units.

/// Most rows that one part of cursor work reads, unless the driver sets another number.
pub const ROWS_PER_PART: u32 = 2_000;

/// Seconds that a call may be without a lease before its step fails, unless the driver sets another
/// number.
pub const DISPATCH_TIMEOUT_SEC: u64 = 30 * 60;

/// Most seconds between two looks at a call that has not ended.
pub const LOOK_AFTER_SEC: u64 = 10 * 60;

/// Seconds after which a call is looked after again if no report about it has arrived.
pub const LOOK_AGAIN_SEC: u64 = 60;

/// Seconds before another attempt of a step whose worker was throttled.
pub const THROTTLE_PAUSE_SEC: u64 = 30;

/// Least seconds before a phase is due at which the creation of its steps begins.
pub const PREPARE_SEC: u64 = 60;

/// Steps that are created in a second, as a careful estimate: large phases begin to be prepared earlier.
pub const PREPARED_STEPS_PER_SEC: u64 = 1_000;

/// Most bytes of an error message that a row keeps.
pub const MAX_ERROR_BYTES: usize = 8 * 1024;

/// Most members in one message that changes members; senders split longer lists.
pub const MEMBERS_PER_MESSAGE: usize = 500;
