//! What tests of Segno need: the store contract in executable form, time that tests own, and the tools to show that a
//! program survives whatever happens to it.
//!
//! For tests of orchestrations:
//!
//! * [`run`](fn@run) and [`environment`]: a store, a clock, nodes and a client in virtual time; three days take milliseconds.
//! * [`fakes`]: activities that answer by a script and remember how they were called.
//! * [`histories`]: recorded histories as golden files, replayed against today's code.
//! * [`crash`]: runs a scenario once for every commit of its node and kills the node there.
//!
//! For tests of Segno itself, and of stores:
//!
//! * [`clock`]: [`clock::VirtualClock`], so that days pass in microseconds.
//! * [`seeded`]: ids and random numbers that follow from a seed.
//! * [`mod@conformance`]: every rule of `segno::store` as a case; [`conformance!`](crate::conformance!) runs all of them
//!   against a store with one line.
//! * [`faults`]: a store that fails, hangs, goes away or kills its node when told to.
//! * [`invariants`]: what must be true of every history and queue, whatever happened.
//! * [`simulation`]: random programs on random nodes with random faults, checked against a pure oracle.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the job of this crate is to assert, and a failed assertion panics"
)]

pub mod clock;
pub mod conformance;
pub mod crash;
pub mod environment;
pub mod fakes;
pub mod faults;
pub mod histories;
pub mod invariants;
pub mod seeded;
pub mod simulation;

pub use environment::{TestEnv, run};
pub use fakes::Fake;
