//! The disk: every access goes through [`files`], so that tests can record, tear and refuse it.
//!
//! | file | concept |
//! |---|---|
//! | `files`, `directory`, `permissions` | the trait; the real directory; who else may read it |
//! | `blocks` | a file of blocks with checksums, below redb |
//! | `full_disk` | backpressure: the checkpointer waits for room |
//! | `copy_on_write` | a read-only directory; writes stay in memory |

pub(crate) mod blocks;
pub(crate) mod copy_on_write;
pub(crate) mod directory;
pub(crate) mod files;
pub(crate) mod full_disk;
pub(crate) mod permissions;
