//! What operators do with a store.
//!
//! | file | concept |
//! |---|---|
//! | `info` | sizes and counts |
//! | `control` | a socket, for other processes on the machine |
//! | `closed` | reads a store that no process has open |
//! | `export`, `import` | the content of a store |
//! | `fill_marker` | marks a directory that a command fills |
//! | `synced_log` | the log without the rest, for benchmarks |

pub(crate) mod closed;
pub(crate) mod control;
pub(crate) mod export;
pub(crate) mod fill_marker;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod synced_log;
