//! Numbers on their way in and out of the database, which has no unsigned ones.

use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{ErrorKind, ExecutionStatus, ProviderError};

/// The latest time that is kept apart from "never"; leaves room for adding two.
const FAR_MS: i64 = i64::MAX / 2;

/// A time. Beyond a hundred million years all are the same.
pub(crate) fn time(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX).min(FAR_MS)
}

/// A span of time.
pub(crate) fn span(duration: Duration) -> i64 {
    time(duration_ms(duration))
}

/// A number that counts; negative ones are not stored.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// An id that the runtime made up, which may be any 64 bits.
pub(crate) fn bits(number: u64) -> i64 {
    number.cast_signed()
}

/// A limit for the database; none is larger than it can count.
pub(crate) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The number of a state.
pub(crate) fn status_code(status: ExecutionStatus) -> i16 {
    match status {
        ExecutionStatus::Pending => 0,
        ExecutionStatus::Running => 1,
        ExecutionStatus::Paused => 2,
        ExecutionStatus::Completed => 3,
        ExecutionStatus::Failed => 4,
        ExecutionStatus::Cancelled => 5,
        ExecutionStatus::ContinuedAsNew => 6,
    }
}

/// The state with this number.
pub(crate) fn status(operation: &'static str, code: i64) -> Result<ExecutionStatus, ProviderError> {
    let found = ExecutionStatus::ALL.into_iter().find(|status| i64::from(status_code(*status)) == code);
    found.ok_or_else(|| {
        let text = format!("the database has an unknown state {code}; was the schema changed by hand?");
        ProviderError::new(ErrorKind::Corrupt, operation, text)
    })
}
