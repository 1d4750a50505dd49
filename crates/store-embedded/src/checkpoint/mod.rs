//! Checkpoints: rows move from the log into the base, and the log is freed. Recovery is the reverse:
//! the base, and the log beyond it, become the state.
//!
//! | file | concept |
//! |---|---|
//! | `checkpointer`, `throttle` | the checkpoint thread; it pauses while a burst of messages is fetched |
//! | `compaction` | a smaller base |
//! | `snapshot` | the rows of one moment, for exports |
//! | `recovery`, `stranded` | opening; instances that lost messages by damage |

pub(crate) mod checkpointer;
pub(crate) mod compaction;
pub(crate) mod recovery;
pub(crate) mod snapshot;
pub(crate) mod stranded;
pub(crate) mod throttle;
