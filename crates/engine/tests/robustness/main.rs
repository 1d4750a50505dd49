//! What must not happen: lost work, blocked queues, silent hangs, late cancellation, wrong counts.

mod cancellation;
mod idle;
mod metrics;
mod shutdown;
mod support;
mod takeover;
mod unreadable;
