//! Tables as Parquet files: rows in, bytes out, and back.
//!
//! | file | what it has |
//! |---|---|
//! | `layout.rs` | what a file of a table looks like: columns, key, Parquet schema |
//! | `encode.rs` | cells to bytes; equal rows give equal bytes |
//! | `decode.rs` | bytes to cells: footer first, then only the row groups that can have what is searched |
//! | `guard.rs` | checks of a file before the Parquet crate allocates anything for it |
//! | `limits.rs` | every limit |

mod decode;
mod encode;
mod guard;
mod layout;
pub mod limits;
#[cfg(test)]
mod tests;

pub use decode::{ColumnarFile, Pattern, read_rows};
pub use encode::{Encoder, encode_rows};
pub use layout::Layout;

/// A file that is not one of ours, or one that is damaged. Nothing of it is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the Parquet file cannot be read: {0}")]
pub struct Damaged(pub String);

impl From<parquet::errors::ParquetError> for Damaged {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Damaged(error.to_string())
    }
}
