//! Functions through a real engine: tools that are real processes, calls to real servers, crashes at every commit.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod catalogue;
mod http;
mod invoke;
mod pools;
mod process;
mod schema;
mod secrets;
mod server;
mod settlers;
mod support;
