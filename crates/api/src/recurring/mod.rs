//! Recurring actions: functions that are called again and again, by a schedule.

mod action;
mod backfill;
mod fields;
mod history;
mod preview;

pub use action::{
    PauseRecurring, RecentOccurrence, RecurringAction, RecurringList, RecurringState, RecurringSummary,
    RecurringTemplate,
};
pub use backfill::{BackfillRecurring, BackfillResult, Backfilled};
pub use fields::{
    Daylight, DaylightGap, DaylightOverlap, MissedPolicy, OverlapPolicy, RecurringCreated, RecurringFields,
};
pub use history::{RecurringEntry, RecurringExplanation, RecurringHistory, RecurringRun, RunRecurring};
pub use preview::{PreviewTime, RecurringPreview};
