//! The reference store, in memory: fast, flat, and the measure for every other store.
//!
//! One mutex guards one `State`, a pure machine that takes the time and plain data. It is never held across
//! an await. Around it, `waiting` lets fetches sleep until a commit or the clock makes work visible.
//!
//! | file | what |
//! |---|---|
//! | [`orchestrator_queue`], `messages` | messages per instance, instance locks, ready order |
//! | [`worker_queue`], [`sessions`], `tag_lanes` | activities by tag and session, their locks |
//! | [`peek_lock`] | what both queues share |
//! | `instance_table`, `instance_index` | rows, executions, histories, counters; listings |
//! | `record_table`, [`due_index`] | versioned documents, due times, lives |
//! | [`waiters`], [`wishes`], [`watch`] | who waits for work, for which, and for an instance |
//! | `state` | operations across all of these: check everything, then change everything |
//! | `waiting` | the lock, the clock, and the one loop of a waiting fetch |
//! | `provider`, `admin`, `records`, `transfer` | the four facets |
//!
//! **Invariants.** No cost grows with the number of instances, finished work, the length of a history, or the number of
//! delayed messages, other than by the logarithm of an ordered map. The queues know nothing of histories and
//! records, so that another store can use them as its hot state. An idle store does nothing.

mod admin;
pub mod due_index;
mod instance_index;
mod instance_table;
mod messages;
pub mod orchestrator_queue;
pub mod peek_lock;
mod provider;
mod record_table;
mod records;
pub mod sessions;
mod state;
mod tag_lanes;
mod transfer;
pub mod waiters;
mod waiting;
pub mod watch;
pub mod wishes;
pub mod worker_queue;

pub use waiting::MemoryStore;
