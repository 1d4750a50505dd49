//! Rows: their bytes, and the layers that store them. A commit changes the overlay in memory, a
//! checkpoint moves the overlay into the base, which is a redb file.
//!
//! | file | concept |
//! |---|---|
//! | `key`, `keys`, `codec` | the bytes of keys and values |
//! | `instance_row`, `queue_row`, `checkpoint_meta` | the rows by kind |
//! | `packed` | prefix compression of index entries |
//! | `tables`, `row_cache` | typed reads and changes; decoded rows of busy instances |
//! | `layers`, `overlay`, `base` | all rows: changes since the checkpoint over the file |
//! | `stored`, `raw_rows` | the rows of one checkpoint |
//! | `isolated`, `damage_scan` | reads that continue past damage |
//! | `view` | all rows of one moment |

pub(crate) mod base;
pub(crate) mod checkpoint_meta;
pub(crate) mod codec;
pub(crate) mod damage_scan;
pub(crate) mod instance_row;
pub(crate) mod isolated;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod layers;
pub(crate) mod overlay;
pub(crate) mod packed;
pub(crate) mod queue_row;
pub(crate) mod raw_rows;
pub(crate) mod row_cache;
pub(crate) mod stored;
pub(crate) mod tables;
pub(crate) mod view;
