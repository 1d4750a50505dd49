//! What must not happen: lost work, blocked queues, silent hangs, late cancellation, wrong counts.

mod cancellation;
mod early_messages;
mod idle;
mod metrics;
mod shutdown;
mod store_trouble;
mod support;
mod takeover;
mod unreadable;
