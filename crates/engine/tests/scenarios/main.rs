//! Scenarios: whole orchestrations on the memory store in virtual time, one module per concept.
//!
//! Most run twice, with resident executions and with a replay on every turn, and must leave the same histories.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the job of these tests is to assert, and a failed assertion panics"
)]

mod activities;
mod archive;
mod cancellation;
mod children;
mod client;
mod continue_as_new;
mod determinism;
mod epilogues;
mod joined_turns;
mod limits;
mod messages;
mod pause;
mod payload_rule;
mod races;
mod registrations;
mod restart;
mod retention;
mod retries;
mod sessions;
mod steps;
mod support;
mod timeouts;
mod timers;
mod versions;
mod work_leases;
mod work_queue;
