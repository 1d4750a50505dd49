//! Every limit of the controllers, with its unit.

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;

/// Actions of one reconcile; the rest follows in the next one.
pub const MAX_ACTIONS: usize = 1_000;
/// Lag up to which controllers act whose actions can be repeated without harm.
pub(super) const LENIENT_LAG_MS: i64 = 5 * MINUTE_MS;
/// Lag up to which controllers act that depend on time.
pub(super) const STRICT_LAG_MS: i64 = 30 * SECOND_MS;
/// How long a task may be ready, or a retry overdue, before anti-entropy dispatches it.
pub(super) const STUCK_READY_MS: i64 = 5 * MINUTE_MS;
/// How long an accepted dispatch may wait for a worker before it is queued again.
pub(super) const STUCK_DISPATCH_MS: i64 = 10 * MINUTE_MS;
/// How long an attempt may be lost before anti-entropy ends it.
pub(super) const STUCK_LOST_MS: i64 = MINUTE_MS;
/// The window of a schedule that has none of its own.
pub(super) const DEFAULT_CATCHUP_MS: i64 = 24 * 60 * MINUTE_MS;
/// The shortest time between two polls of a sensor.
pub(super) const MIN_POLL_MS: i64 = 30 * SECOND_MS;
/// Ticks of a schedule that are looked at in one reconcile.
pub(super) const MAX_TICKS_SCANNED: usize = 100_000;
