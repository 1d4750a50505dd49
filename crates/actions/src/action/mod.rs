//! Actions: a function to be called once, at a time or because a webhook came in.
//!
//! | file | what |
//! |---|---|
//! | `model.rs` | an action: trigger, status, what to run |
//! | `record.rs` | how it is stored, and what its writes are |
//! | `db.rs` | [`ActionDb`]: inserting, finding, changing |
//! | `finish.rs` | the end of an action: its status, and its next run |
//! | `error.rs` | how calls about actions fail |

mod db;
#[cfg(test)]
mod db_tests;
mod error;
mod finish;
mod model;
mod record;

pub use db::{ActionDb, RECOVERED};
pub use error::ActionError;
pub use model::{Action, ActionStatus, ActionTrigger, OnRestart};
pub use record::{ACTION_KIND, ACTION_RUN_KIND, StoredAction};
