//! Time series of a tenant: what was started and how it ended, by the minute.
//!
//! | file | what |
//! |---|---|
//! | `histogram` | times in logarithmic buckets, for quantiles |
//! | `minute` | the counts of one minute, and their stored form |
//! | `collector` | counting what the runtime of this node commits, and writing it down |
//! | `series` | the counts of all nodes, summed |
//!
//! Each process counts in memory and writes a record per tenant and minute every few seconds, which
//! it overwrites until the minute is over. Records live for a day. After `kill -9` what was counted
//! since the last write is missing.

mod collector;
mod histogram;
mod minute;
mod series;

pub use collector::Collector;
pub use minute::{MinuteCounts, NameCounts, OTHERS};
pub use series::{QueueSample, read_minutes, read_queues};

/// Kind of the records with the counts of a tenant, a minute and a process.
const KIND: &str = "segno.stats";

/// Kind of the records with the lengths of the queues in a minute.
const QUEUES_KIND: &str = "segno.stats-queues";

/// A minute in milliseconds.
pub const MINUTE_MS: u64 = 60_000;

/// Minutes that records live.
pub const KEPT_MINUTES: u64 = 24 * 60;

/// The part of an id that is the minute.
fn minute_id(minute: u64) -> String {
    format!("{minute:010}")
}
