#![doc = include_str!("lib.md")]

pub mod action;
mod assembly;
pub mod document;
mod ended;
pub mod free_text;
pub mod functions;
pub mod hooks;
mod keep;
mod listed;
pub mod listing;
pub mod moment;
pub mod objects;
mod options;
pub mod pools;
pub mod recurring;
pub mod schedule;
pub mod scheduler;
mod signature;
mod target;
pub mod telemetry;
pub mod template;

pub use assembly::MadeFor;
pub use keep::Keep;
pub use listed::{Listed, Unreadable};
pub use options::ActionOptions;
pub use target::{OrchestrationName, Target};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/functions.md")]
struct FunctionsGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/actions.md")]
struct ActionsGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/schedules.md")]
struct SchedulesGuide;
