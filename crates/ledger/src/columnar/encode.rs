//! Cells to Parquet bytes. Equal rows give equal bytes: no clock, no host name, no hash order.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};

use super::limits::{PAGE_BYTES, ROW_GROUP_ROWS};
use super::{Damaged, Layout};
use crate::tables::{Cell, Column, Kind, Row};

/// The name of the writer in the footer. It is part of the bytes, so it changes only together with
/// the format.
const CREATED_BY: &str = "segno-ledger version 1.0.0 (build 1)";

/// Column and page indexes stay out: row groups are small, and they would be a third of a small
/// file.
static PROPERTIES: LazyLock<WriterPropertiesPtr> = LazyLock::new(|| {
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(true)
        .set_dictionary_page_size_limit(PAGE_BYTES)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build();
    Arc::new(properties)
});

/// Writes one file, row by row, in the order in which the rows come.
pub struct Encoder {
    layout: Layout,
    writer: SerializedFileWriter<Vec<u8>>,
    waiting: Vec<Vec<Cell>>,
    rows: u64,
}

impl Encoder {
    /// An empty file.
    ///
    /// # Errors
    /// When the Parquet crate refuses the schema.
    pub fn new(layout: Layout) -> Result<Self, Damaged> {
        let schema = layout.schema().root_schema_ptr();
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::clone(&PROPERTIES))?;
        Ok(Encoder { layout, writer, waiting: Vec::new(), rows: 0 })
    }

    /// Adds a row: one cell for each column.
    ///
    /// # Errors
    /// When a cell does not fit its column.
    pub fn push(&mut self, row: Vec<Cell>) -> Result<(), Damaged> {
        self.waiting.push(row);
        self.rows += 1;
        if self.waiting.len() == ROW_GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Roughly how many bytes it has.
    pub fn bytes_written(&self) -> usize {
        self.writer.bytes_written()
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// When a cell does not fit its column.
    pub fn finish(mut self) -> Result<Bytes, Damaged> {
        if !self.waiting.is_empty() {
            self.write_group()?;
        }
        Ok(Bytes::from(self.writer.into_inner()?))
    }

    fn write_group(&mut self) -> Result<(), Damaged> {
        let rows = std::mem::take(&mut self.waiting);
        let mut group = self.writer.next_row_group()?;
        for (at, column) in self.layout.columns().iter().enumerate() {
            let writer = group.next_column()?;
            let mut writer = writer.ok_or_else(|| Damaged("a column is missing".to_owned()))?;
            write_column(&mut writer, column, rows.iter().map(|row| row.get(at)))?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// The file of some rows, in their order.
///
/// # Errors
/// When a cell does not fit its column, which is a defect of the row.
pub fn encode_rows<R: Row>(rows: &[R]) -> Result<Bytes, Damaged> {
    let mut encoder = Encoder::new(Layout::of::<R>())?;
    for row in rows {
        encoder.push(row.to_cells())?;
    }
    encoder.finish()
}

fn write_column<'a>(
    writer: &mut SerializedColumnWriter<'_>,
    column: &Column,
    cells: impl Iterator<Item = Option<&'a Cell>> + Clone,
) -> Result<(), Damaged> {
    let levels: Option<Vec<i16>> = column
        .nullable
        .then(|| cells.clone().map(|cell| i16::from(!matches!(cell, Some(Cell::Null)))).collect());
    let levels = levels.as_deref();
    let values = cells.filter(|cell| !column.nullable || !matches!(cell, Some(Cell::Null)));
    let unfit = || Damaged(format!("a cell does not fit column {}", column.name));
    match (writer.untyped(), column.kind) {
        (ColumnWriter::ByteArrayColumnWriter(writer), Kind::Text) => {
            let texts: Option<Vec<&str>> = values
                .map(|cell| match cell {
                    Some(Cell::Text(text)) => Some(text.as_ref()),
                    _ => None,
                })
                .collect();
            writer.write_batch(&byte_arrays(&texts.ok_or_else(unfit)?), levels, None)?;
        }
        (ColumnWriter::Int64ColumnWriter(writer), Kind::Integer) => {
            let integers: Option<Vec<i64>> = values
                .map(|cell| match cell {
                    Some(Cell::Integer(integer)) => Some(*integer),
                    _ => None,
                })
                .collect();
            writer.write_batch(&integers.ok_or_else(unfit)?, levels, None)?;
        }
        (ColumnWriter::Int32ColumnWriter(writer), Kind::Count) => {
            let counts: Option<Vec<i32>> = values
                .map(|cell| match cell {
                    Some(Cell::Count(count)) => Some(count.cast_signed()),
                    _ => None,
                })
                .collect();
            writer.write_batch(&counts.ok_or_else(unfit)?, levels, None)?;
        }
        (ColumnWriter::BoolColumnWriter(writer), Kind::Flag) => {
            let flags: Option<Vec<bool>> = values
                .map(|cell| match cell {
                    Some(Cell::Flag(flag)) => Some(*flag),
                    _ => None,
                })
                .collect();
            writer.write_batch(&flags.ok_or_else(unfit)?, levels, None)?;
        }
        _ => return Err(unfit()),
    }
    Ok(())
}

/// The texts as slices of one allocation.
fn byte_arrays(texts: &[&str]) -> Vec<ByteArray> {
    let mut joined = Vec::with_capacity(texts.iter().map(|text| text.len()).sum());
    for text in texts {
        joined.extend_from_slice(text.as_bytes());
    }
    let joined = Bytes::from(joined);
    let mut start = 0;
    let slice = |text: &&str| {
        let end = start + text.len();
        let slice = joined.slice(start..end);
        start = end;
        ByteArray::from(slice)
    };
    texts.iter().map(slice).collect()
}
