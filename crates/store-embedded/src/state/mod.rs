//! The state machine, and what the operations do with it. Pure: time and plain data come in, changes
//! of rows go out.
//!
//! | file | concept |
//! |---|---|
//! | `machine` | the state, and fetches |
//! | `commit`, `restart`, `removal` | the changes |
//! | `listing` | the queries |
//! | `record_index`, `expiries` | due times and expiries of records |
//! | `leasing` | locks that outlive the process |
//! | `pending` | changes that are not durable yet |
//! | `quarantine` | instances whose last change may be lost |

pub(crate) mod commit;
pub(crate) mod expiries;
pub(crate) mod leasing;
pub(crate) mod listing;
pub(crate) mod machine;
pub(crate) mod pending;
pub(crate) mod quarantine;
pub(crate) mod record_index;
pub(crate) mod removal;
pub(crate) mod restart;
