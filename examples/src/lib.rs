//! Small programs that show Segno, one thing each: `cargo run -p segno-examples --bin NAME`.
//!
//! | program | shows |
//! |---|---|
//! | `hello` | one orchestration, one activity |
//! | `order` | kill -9 and start again: the order goes on, on the embedded store |
//! | `fan_out` | many activities at once |
//! | `approval` | a signal with a time limit, by `ctx.timeout` |
//! | `saga` | undoing what was done when a later step fails |
//! | `eternal` | an endless loop with a mailbox and continue-as-new |
//! | `children` | orchestrations that run orchestrations |
//! | `inline_steps` | short steps without a queue |
//! | `retries` | pauses, failures that are final, pausing and resuming |
//! | `cancellation` | stopping, with cleaning up |
//! | `crash` | a process that goes away and one that takes over |
//! | `versions` | two versions side by side |
//! | `patching` | changing code under running instances |
//! | `sessions` | activities that stay on one worker |
//! | `tags` | activities for workers that can do them |
//! | `search` | labels, listing, acting on many |
//! | `testing` | days in milliseconds |
//!
//! `tests/examples.rs` runs each of them and compares what it prints with `expected/NAME.txt`.

/// The README as a doctest: what it shows compiles, or the tests fail.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
