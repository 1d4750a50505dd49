//! The hot state that the stores of this repository share: queues with peek-lock, the due index,
//! and the waiters of both. Not part of the store contract: another store needs none of it, and it
//! changes without notice.
//!
//! | file | concept |
//! |---|---|
//! | `orchestrator_queue`, `messages` | messages per instance, instance locks, ready order |
//! | `worker_queue`, `sessions`, `tag_lanes` | activities by tag and session, their locks |
//! | `peek_lock` | ids, attempt counts and depths of both queues |
//! | `due_index` | records by due time |
//! | `demand`, `waiters` | what a fetch waits for; the waiting fetches, woken without polling |
//! | `watch` | watches on instances |
//!
//! **Invariants.** The queues contain no histories and no records. They take the time and plain data, and do no
//! I/O. No cost grows with finished work or with the number of delayed messages, other than by the
//! logarithm of an ordered map.

pub mod demand;
pub mod due_index;
mod messages;
pub mod orchestrator_queue;
pub mod peek_lock;
pub mod sessions;
mod tag_lanes;
pub mod waiters;
pub mod watch;
pub mod worker_queue;
