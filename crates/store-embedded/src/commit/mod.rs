//! How an operation runs: one caller at a time changes the state (`combiner`), the writer makes the
//! changes of many callers durable with one sync (group commit), then the callers are answered.
//!
//! | file | concept |
//! |---|---|
//! | `shared` | the state with its waiters |
//! | `combiner` | flat combining: the lock holder runs the operations of other callers |
//! | `execute`, `submission` | operations that change rows |
//! | `start_and_watch` | a start that waits for the end of its instance |
//! | `waiting` | operations that change no rows; waiting fetches |
//! | `writer`, `writer_signal`, `delay` | the writer thread, its wake-up, its group-commit delay |
//! | `refusal` | why the store refuses writes |

pub(crate) mod combiner;
pub(crate) mod delay;
pub(crate) mod execute;
pub(crate) mod refusal;
pub(crate) mod shared;
pub(crate) mod start_and_watch;
pub(crate) mod submission;
pub(crate) mod waiting;
pub(crate) mod writer;
pub(crate) mod writer_signal;
