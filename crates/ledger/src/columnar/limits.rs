//! Limits of Parquet files. What is written stays far below those for reading.

/// Rows of one row group: what a reader decodes at least, also for one row.
pub const ROW_GROUP_ROWS: usize = 4_096;
/// Rows of a row group that is read.
pub const MAX_ROW_GROUP_ROWS: i64 = 1 << 20;
/// Row groups of a file that is read.
pub const MAX_ROW_GROUPS: usize = 4_096;
/// Rows of a file that is read.
pub const MAX_FILE_ROWS: i64 = 1 << 26;
/// Bytes of a file that is read.
pub const MAX_FILE_BYTES: u64 = 1 << 30;
/// Bytes of the footer of a file that is read.
pub const MAX_FOOTER_BYTES: usize = 8 << 20;
/// Columns of a table.
pub const MAX_COLUMNS: usize = 128;
/// Bytes of one page before and after decompression.
pub const MAX_PAGE_BYTES: i64 = 64 << 20;
/// Bytes of the header of one page.
pub const MAX_PAGE_HEADER_BYTES: usize = 16 << 10;
/// Bytes of one row group of one column, decompressed.
pub const MAX_CHUNK_BYTES: i64 = 512 << 20;
/// Bytes of one text.
pub const MAX_TEXT_BYTES: usize = 16 << 20;
/// Nesting of the structures of a footer.
pub const MAX_DEPTH: usize = 16;
/// Bytes after which a page is closed when writing.
pub const PAGE_BYTES: usize = 1 << 20;
/// Bytes read from the end of a file in the hope that they have its footer.
pub const TAIL_BYTES: u64 = 64 << 10;
