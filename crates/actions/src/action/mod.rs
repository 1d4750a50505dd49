//! Actions: a function to be called once, at a time or because a webhook came in.
//!
//! | file | what |
//! |---|---|
//! | `model.rs` | an action: trigger, status, what to run |
//! | `record.rs` | how it is stored, and what its writes are |
//! | `db.rs` | [`ActionDb`]: inserting, finding, changing |
//! | `next_run.rs` | the action that follows one that recurs |
//! | `settle.rs` | the end of the call of an action, written down |
//! | `error.rs` | how calls about actions fail |

mod db;
#[cfg(test)]
mod db_tests;
mod error;
mod model;
mod next_run;
pub(crate) mod record;
pub(crate) mod settle;

pub use db::{ActionDb, KEEP_FINISHED, MAX_RANGE_DUE};
pub use error::ActionError;
pub use model::{Action, ActionStatus, ActionTrigger, OnRestart};
pub use record::{ACTION_KIND, ACTION_RETIRE_KIND, ACTION_RUN_KIND, StoredAction};
