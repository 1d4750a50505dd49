//! Actions from their time to their end: on a node and a scheduler in virtual time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod crash;
mod ends;
mod golden;
mod history;
mod lanes;
mod one_shot;
mod orchestrations;
mod recurring;
mod support;
mod telemetry;
