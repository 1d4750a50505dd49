//! The server over real sockets.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

mod access;
mod idempotency;
mod instances;
mod requests;
mod stand;
mod streams;
