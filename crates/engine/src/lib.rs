#![doc = include_str!("lib.md")]

pub mod activity;
mod activity_set;
pub mod client;
pub mod clock;
mod codec;
pub mod context;
mod dead_letter;
mod epilogue;
mod error;
pub mod event;
mod failure;
mod failure_form;
#[cfg(doctest)]
mod guide;
mod handles;
pub mod ids;
mod json_rule;
pub mod limits;
mod metric;
mod names;
mod payload;
pub mod published;
mod registry;
mod replay;
mod requirement;
mod retry;
pub mod runtime;
mod schemas;
pub mod store;
pub mod telemetry;
pub mod work;
pub mod work_item;

pub use activity::ActivityContext;
pub use activity_set::ActivitySet;
pub use client::{Client, InstanceHandle};
pub use context::{Context, race, race_all};
pub use dead_letter::{DeadLetter, GivenUp, LetterPrefix};
pub use epilogue::{Epilogue, InstanceEnd};
pub use error::{Code, Error};
pub use failure::{Category, Failure};
pub use handles::{Activity, Mailbox, Orchestration, Signal};
pub use names::{RESERVED_LABEL_PREFIX, is_reserved_label};
pub use payload::Payload;
pub use registry::{Registry, RegistryBuilder};
pub use replay::Nondeterminism;
pub use requirement::Requirement;
pub use retry::Retry;
pub use runtime::{Retention, Runtime, RuntimeOptions};
pub use schemas::OrchestrationSchemas;

/// Waiting for several at once, from the `futures` crate: deterministic in orchestrations.
pub use futures_util::future::{join, join_all, join3, try_join, try_join_all};
