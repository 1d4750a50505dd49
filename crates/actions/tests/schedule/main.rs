//! Schedules as their users meet them: cron, daylight saving, intervals, zones.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod calendar;
mod cron;
mod daylight;
mod grammar;
mod intervals;
mod oracle;
mod refusals;
mod support;
mod transitions;
mod words;
mod zones;
