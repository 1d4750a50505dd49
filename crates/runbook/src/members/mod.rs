//! Members: rows of a data source, and the batches that they belong to.
//!
//! | file | what |
//! |---|---|
//! | `csv.rs` | rows from comma-separated values, all problems at once |
//! | `cells.rs` | rows from the values of a query |
//! | `values.rs` | cells that hold several values |
//! | `batch_time.rs` | when the batch of a row starts |
//! | `keys.rs` | which texts can be keys, each once |
//! | `error.rs` | why rows are refused |

mod batch_time;
mod cells;
mod csv;
mod error;
mod keys;
mod values;

pub use self::csv::{CsvLimits, Examined, Row, Rows, examine_csv, read_csv, read_csv_into};
pub use batch_time::{BatchStart, EARLIEST_START, check_start, immediate_start, parse_batch_time};
pub use cells::{Cell, read_cells, read_cells_into};
pub use error::{INVALID_MEMBERS, InvalidMembers};
pub use values::split_values;
