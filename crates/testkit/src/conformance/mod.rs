//! The store contract of `segno::store` in executable form.
//!
//! A store brings a [`StoreHarness`] and one line, `segno_testkit::conformance!(MyHarness::new());`, which makes one
//! test of every case. No store lists cases: the list is in `list.rs`, and a case that is not in it does not compile
//! without a warning.
//!
//! * `harness`: how a store is opened, and how its time passes.
//! * `list`: all cases by group; drives the macro and [`cases`].
//! * `case`: what a case is and how it runs; `stalls`: whether the machine stood still meanwhile.
//! * `fixture`, `turn`, `wait`: the words that cases are written in.
//! * everything else: one file per group of rules.

mod case;
mod fixture;
mod harness;
mod list;
mod stalls;
mod turn;
mod wait;

mod admin_reads;
mod atomicity;
mod attempt_counts;
mod batched_fetch;
mod bulk_operations;
mod cancellation;
mod capability_filter;
mod contention;
mod custom_status;
mod deletion_and_hierarchy;
mod due_records;
mod durable_locks;
mod ended_trees;
mod instance_locks;
mod instance_queries;
mod joined_turns;
mod keep_lock;
mod lock_expiry_and_fencing;
mod multi_execution;
mod next_execution;
mod opaque_data;
mod pruning;
mod queue_order_and_visibility;
mod queued_activity;
mod record_listing;
mod records;
mod sessions;
mod start_guard;
mod tags;
mod transfer;
mod waiting_and_waking;
mod watching;
mod work_item_acks;

pub use case::{Case, Threads, cases, run};
pub use fixture::Env;
pub use harness::{ClockHandle, OpenStore, SteppedClock, StoreHarness};
