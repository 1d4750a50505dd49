//! What tests of Segno need: the store contract in executable form, and a clock that tests own.
//!
//! * [`clock`]: [`clock::VirtualClock`], so that days pass in microseconds.
//! * [`conformance`]: every rule of `segno::store` as a case; [`conformance!`](crate::conformance!) runs all of them
//!   against a store with one line.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the job of this crate is to assert, and a failed assertion panics"
)]

pub mod clock;
pub mod conformance;
