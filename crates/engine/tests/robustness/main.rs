//! What must not happen: lost work, blocked queues, silent hangs, late cancellation, wrong counts.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

mod cancellation;
mod early_messages;
mod idle;
mod metrics;
mod shutdown;
mod store_trouble;
mod support;
mod takeover;
mod unreadable;
