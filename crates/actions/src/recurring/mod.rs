//! Recurring actions: a function to be called again and again, by a schedule.
//!
//! | file | what |
//! |---|---|
//! | `model.rs`, `policy.rs` | a recurring action: schedule, template, policies, how far it is |
//! | `check.rs` | what is refused, and with which field |
//! | `decide.rs` | what to do with the next occurrence: a pure function |
//! | `advance.rs` | what a decision changes |
//! | `ending.rs` | why one does not fire any more |
//! | `dispatch.rs` | the call that an occurrence becomes |
//! | `plan.rs` | all that is decided at one moment, and the commit that it becomes |
//! | `history.rs` | what became of each occurrence |
//! | `record.rs` | how all of it is stored |
//! | `settle.rs` | the end of an occurrence's call, written down |
//! | `run_end.rs` | ends that the action has not taken in yet |
//! | `book.rs` | [`RecurringActions`]: creating, finding, deleting |
//! | `change.rs` | changing one that is stored |
//! | `pausing.rs` | pausing and resuming |
//! | `explain.rs` | why something did or did not run |
//! | `backfill.rs` | running what lies in the past |
//! | `run.rs` | running one now, out of schedule |
//! | `named.rs` | the index by name |

pub(crate) mod advance;
mod backfill;
mod book;
mod change;
mod check;
pub mod decide;
#[cfg(test)]
mod decide_tests;
pub(crate) mod dispatch;
mod ending;
mod explain;
pub(crate) mod history;
mod model;
mod named;
mod pausing;
pub(crate) mod plan;
mod policy;
pub(crate) mod record;
mod run;
pub(crate) mod run_end;
pub(crate) mod settle;

pub use backfill::{Backfill, BackfillLine, BackfillOutcome};
pub use book::{NewRecurringAction, RecurringActions};
pub use explain::Explanation;
pub use history::{Decision, HistoryEntry, Outcome, SkipReason};
pub use model::{Progress, RecurringAction, RecurringActionTemplate, RunningOccurrence};
pub use named::MAX_CANDIDATES;
pub use pausing::Pause;
pub use policy::{MissedPolicy, OverlapPolicy, RecurringPolicy};
pub use record::{RECURRING_HISTORY_KIND, RECURRING_KIND};
pub use run::{MAX_RUN_KEY_BYTES, Run, RunAnswer};
