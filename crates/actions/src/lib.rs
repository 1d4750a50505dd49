#![doc = include_str!("lib.md")]

pub mod functions;
pub mod schedule;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/functions.md")]
struct FunctionsGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/schedules.md")]
struct SchedulesGuide;
