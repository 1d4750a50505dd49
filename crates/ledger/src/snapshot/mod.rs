//! Reading tables: only files that a manifest names, never the log.
//!
//! | file | what it has |
//! |---|---|
//! | `tables.rs` | all tables by name, with the layouts of their files |
//! | `fetch.rs` | a file of a table: verified whole, or only the row groups that can have what is searched |
//! | `group.rs` | the live rows of a table at one place: newer pieces before older ones, tombstones applied |
//! | `reader.rs` | snapshots for controllers and queries, by key and by day |
//! | `page.rs` | the first rows of a key after a place, without reading the others |
//! | `scan.rs` | some columns of a table, for queries |
//! | `limits.rs` | every limit |

mod fetch;
mod group;
pub mod limits;
mod page;
mod reader;
mod scan;
mod tables;

pub(crate) use fetch::TableFile;
pub(crate) use group::{Key, key_of, live_rows};
pub use page::PageOf;
pub(crate) use reader::rows_of;
pub use reader::{Days, Filter, Reader, Snapshot};
pub use scan::Part;
pub(crate) use tables::{Spec, Tables};
