//! The reference store, in memory: fast, flat, and the oracle in the tests of every other store.
//!
//! One mutex guards one `State`, a pure machine that takes the time and plain data. It is never
//! held across an await. Around it, `waiting` lets fetches sleep until a commit or the clock makes
//! work visible. The queues and the waiters are in `store/core/`, which the embedded store uses as
//! well.
//!
//! | file | concept |
//! |---|---|
//! | `instance_table`, `instance_index` | rows, executions, histories, counters; listings |
//! | `record_table` | versioned documents, due times, time-to-live |
//! | `state` | operations across all of these: check everything, then change everything |
//! | `waiting` | the lock, the clock, and the one loop of a waiting fetch |
//! | `provider`, `admin`, `records`, `transfer` | the four facets |
//!
//! **Invariants.** No cost grows with the number of instances, finished work, the length of a
//! history, or the number of delayed messages, other than by the logarithm of an ordered map. An
//! idle store does nothing.

mod admin;
mod instance_index;
mod instance_table;
mod provider;
mod record_table;
mod records;
mod state;
mod transfer;
mod waiting;

pub use waiting::MemoryStore;
