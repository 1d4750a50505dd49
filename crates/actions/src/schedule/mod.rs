//! Schedules: which moments a cron expression, an interval or a single time stands for.
//!
//! Everything here is a pure function of its arguments: times come in, times go out. There is no clock and no store.
//!
//! | file | what |
//! |---|---|
//! | `spec.rs` | what is sent and stored, and how it is checked |
//! | `compiled.rs` | a schedule that is ready to answer |
//! | `expression.rs` | the grammar of cron expressions, and which dates one allows |
//! | `cron.rs` | a cron expression as a set of local times |
//! | `daylight.rs` | from local times to moments, where clocks are put forward and back |
//! | `stretch.rs` | stretches of time with one distance from UTC, and the changes between them |
//! | `exclusion.rs`, `calendar.rs` | days on which nothing happens: one as it is written, all of them together |
//! | `zones.rs` | the time zone database |
//! | `occurrence.rs` | one moment of a schedule, and what is odd about it |
//! | `preview.rs` | the next moments, for people to look at |
//! | `describe.rs` | a schedule in plain English |
//! | `jitter.rs` | spreading what is due at the same moment |
//! | `error.rs` | why a schedule is refused |
//!
//! **Invariants.** The moments of a schedule strictly increase, and [`Schedule::next_after`] never answers with one that is
//! not after what it was asked for. It does not matter from where one asks: the moments are the same.

mod calendar;
mod compiled;
mod cron;
mod daylight;
mod describe;
mod error;
mod exclusion;
mod expression;
mod jitter;
mod occurrence;
mod preview;
mod spec;
mod stretch;
mod zones;

pub use compiled::{Following, Schedule};
pub use error::{INVALID_SCHEDULE, ScheduleError};
pub use exclusion::{Exclusion, MonthDay};
pub use jitter::jitter_of;
pub use occurrence::{Note, Occurrence};
pub use preview::{MAX_PREVIEW_STEPS, Preview, PreviewLine, preview};
pub use spec::{Daylight, Gap, Overlap, ScheduleSpec};
pub use zones::Zones;
