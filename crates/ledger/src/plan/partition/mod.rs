//! Partitions: pure arithmetic of keys, windows and ranges. Definitions and times come in, keys and times go out.
//!
//! | file | what |
//! |---|---|
//! | `calendar.rs` | windows by the clocks of a zone, across changes of these clocks |
//! | `window_key.rs` | keys of windows: `2026-03-29`, `2026-W13`, `2026-03`, `2026-03-29T01:00+01:00` |
//! | `set.rs` | a checked definition: its keys, ranges of them, and what templates know of one |
//! | `grid.rs` | keys with two dimensions: `2026-03-29\|eu` |
//! | `mapping.rs` | from the partition of one asset to those of another |
//! | `error.rs` | why a key, range or definition is refused |

mod calendar;
mod error;
mod grid;
mod mapping;
mod set;
mod window_key;

pub use calendar::Window;
pub use error::{INVALID_PARTITION, PartitionError};
pub use mapping::map_partition;
pub use set::PartitionSet;
