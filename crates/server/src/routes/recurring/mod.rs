//! Recurring actions: functions called again and again, by a schedule.
//!
//! | file | what |
//! |---|---|
//! | `manage.rs` | creating, reading, changing, pausing, deleting |
//! | `inspect.rs` | history, explanations, previews, backfills |
//! | `fields.rs` | what a request says, put into a recurring action |
//! | `view.rs` | a recurring action as it goes over the wire |

mod fields;
pub mod inspect;
pub mod manage;
pub mod view;
