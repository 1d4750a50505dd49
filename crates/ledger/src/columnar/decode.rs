//! Parquet bytes to cells. The footer is read first; then only row groups that can have what is
//! searched.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::guard::{DATA_PAGE, DICTIONARY_PAGE, check_structure, page_header};
use super::limits::{
    MAX_CHUNK_BYTES, MAX_COLUMNS, MAX_FILE_BYTES, MAX_FILE_ROWS, MAX_FOOTER_BYTES, MAX_ROW_GROUP_ROWS,
    MAX_ROW_GROUPS, MAX_TEXT_BYTES,
};
use super::{Damaged, Layout};
use crate::tables::{Cell, Kind, Row};

const MAGIC: &[u8] = b"PAR1";
/// Length of the footer and magic number, at the end of a file.
const TRAILER_BYTES: usize = 8;

/// Values that some text columns have to have: the beginning of a key, for example.
pub type Pattern<'a> = [(usize, &'a str)];

/// A file whose footer was read.
#[derive(Debug, Clone)]
pub struct ColumnarFile {
    layout: Layout,
    metadata: Arc<ParquetMetaData>,
    /// For each column of the layout its place in the file; files from before a column was added
    /// lack it.
    places: Vec<Option<usize>>,
}

impl ColumnarFile {
    /// Reads the footer from the last bytes of a file of a given length. `Ok(Err(bytes))` requests
    /// a longer tail.
    ///
    /// # Errors
    /// When the file is not a Parquet file of this table, or exceeds a limit.
    pub fn open(layout: &Layout, file_bytes: u64, tail: &Bytes) -> Result<Result<Self, u64>, Damaged> {
        if file_bytes > MAX_FILE_BYTES {
            return Err(Damaged(format!("it has {file_bytes} bytes; at most {MAX_FILE_BYTES} are read")));
        }
        let end = tail.len().checked_sub(TRAILER_BYTES).filter(|_| tail.ends_with(MAGIC));
        let end = end.ok_or_else(|| Damaged("it does not end like a Parquet file".to_owned()))?;
        let length = (&tail[end..end + 4]).get_u32_le() as usize;
        let needed = (length + TRAILER_BYTES) as u64;
        if length > MAX_FOOTER_BYTES || needed + MAGIC.len() as u64 > file_bytes {
            return Err(Damaged(format!("its footer claims {length} bytes")));
        }
        let Some(start) = end.checked_sub(length) else { return Ok(Err(needed)) };
        let footer = &tail[start..end];
        check_structure(footer)?;
        let metadata = guarded(|| Ok(ParquetMetaDataReader::decode_metadata(footer)?))?;
        let places = places_of(layout, &metadata)?;
        let file = ColumnarFile { layout: layout.clone(), metadata: Arc::new(metadata), places };
        file.check_sizes(file_bytes)?;
        Ok(Ok(file))
    }

    /// How many row groups it has.
    pub fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// The bytes of a row group.
    pub fn range(&self, group: usize) -> Range<u64> {
        let chunks = self.metadata.row_group(group).columns().iter().map(ColumnChunkMetaData::byte_range);
        let span = chunks.fold((u64::MAX, 0), |(start, end), (at, length)| {
            (start.min(at), end.max(at.saturating_add(length)))
        });
        span.0.min(span.1)..span.1
    }

    /// Whether a row group can have a row of this pattern, by the statistics of its columns.
    pub fn may_have(&self, group: usize, pattern: &Pattern<'_>) -> bool {
        pattern.iter().all(|(at, text)| {
            let Some(Some(place)) = self.places.get(*at) else { return true };
            let statistics = self.metadata.row_group(group).column(*place).statistics();
            let Some(statistics) = statistics else { return true };
            let text = text.as_bytes();
            statistics.min_bytes_opt().is_none_or(|min| min <= text)
                && statistics.max_bytes_opt().is_none_or(|max| max >= text)
        })
    }

    /// Bounds of a text column of a row group, as far as the file has them.
    pub fn bounds(&self, group: usize, column: usize) -> (Option<&[u8]>, Option<&[u8]>) {
        let place = self.places.get(column).copied().flatten();
        let statistics = place.and_then(|place| self.metadata.row_group(group).column(place).statistics());
        statistics.map_or((None, None), |found| (found.min_bytes_opt(), found.max_bytes_opt()))
    }

    /// The rows of a row group, from the bytes of [`ColumnarFile::range`].
    ///
    /// # Errors
    /// When its pages are damaged or exceed a limit.
    pub fn rows(&self, group: usize, bytes: &Bytes) -> Result<Vec<Vec<Cell>>, Damaged> {
        let columns: Vec<usize> = (0..self.layout.columns().len()).collect();
        self.some_columns(group, bytes, &columns)
    }

    /// The same with some columns only; the others are not decoded.
    ///
    /// # Errors
    /// When its pages are damaged or exceed a limit.
    pub fn some_columns(
        &self,
        group: usize,
        bytes: &Bytes,
        columns: &[usize],
    ) -> Result<Vec<Vec<Cell>>, Damaged> {
        let mut columns =
            self.cells(group, bytes, columns)?.into_iter().map(Vec::into_iter).collect::<Vec<_>>();
        let count = self.row_count(group);
        let row = |_| columns.iter_mut().map(|cells| cells.next().unwrap_or(Cell::Null)).collect();
        Ok((0..count).map(row).collect())
    }

    /// The cells of some columns of a row group, column by column.
    ///
    /// # Errors
    /// When its pages are damaged or exceed a limit.
    pub fn cells(&self, group: usize, bytes: &Bytes, columns: &[usize]) -> Result<Vec<Vec<Cell>>, Damaged> {
        let window = Arc::new(Window { start: self.range(group).start, bytes: bytes.clone() });
        let count = self.row_count(group);
        let read = |at: &usize| match self.places.get(*at) {
            Some(Some(place)) => {
                let chunk = self.metadata.row_group(group).column(*place);
                check_pages(chunk, &window, count)?;
                guarded(|| self.column(*at, chunk, &window, count))
            }
            _ => Ok(vec![Cell::Null; count]),
        };
        columns.iter().map(read).collect()
    }

    fn row_count(&self, group: usize) -> usize {
        usize::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    fn check_sizes(&self, file_bytes: u64) -> Result<(), Damaged> {
        let groups = self.metadata.row_groups();
        let rows = |rows: i64, most: i64| (0..=most).contains(&rows);
        let total = groups.iter().try_fold(0_i64, |total, group| total.checked_add(group.num_rows()));
        if groups.len() > MAX_ROW_GROUPS
            || !groups.iter().all(|group| rows(group.num_rows(), MAX_ROW_GROUP_ROWS))
            || !total.is_some_and(|total| rows(total, MAX_FILE_ROWS))
        {
            return Err(Damaged(format!("its {} row groups have too many rows", groups.len())));
        }
        for chunk in groups.iter().flat_map(|group| group.columns()) {
            let offsets = [Some(chunk.data_page_offset()), chunk.dictionary_page_offset()];
            let is_placed = offsets.into_iter().flatten().all(|at| at >= MAGIC.len() as i64)
                && (0..=MAX_CHUNK_BYTES).contains(&chunk.compressed_size())
                && (0..=MAX_CHUNK_BYTES).contains(&chunk.uncompressed_size());
            let end = if is_placed { chunk.byte_range() } else { (u64::MAX, 0) };
            if !is_placed || end.0.saturating_add(end.1) > file_bytes {
                return Err(Damaged(format!("column {} lies outside of the file", chunk.column_path())));
            }
            if !matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::SNAPPY) {
                return Err(Damaged(format!("column {} is compressed otherwise", chunk.column_path())));
            }
            if let Some(other) = chunk.encodings().find(|encoding| !is_known(*encoding)) {
                return Err(Damaged(format!("column {} has the encoding {other}", chunk.column_path())));
            }
        }
        Ok(())
    }

    fn column(
        &self,
        at: usize,
        chunk: &ColumnChunkMetaData,
        window: &Arc<Window>,
        count: usize,
    ) -> Result<Vec<Cell>, Damaged> {
        let pages = SerializedPageReader::new(Arc::clone(window), chunk, count, None)?;
        let reader = get_column_reader(chunk.column_descr_ptr(), Box::new(pages));
        let column = self.layout.columns()[at];
        let mut levels = Vec::new();
        // Whether a column is optional is checked against the layout when the file is opened.
        macro_rules! read {
            ($reader:ident, $cell:expr) => {{
                let mut reader = $reader;
                let mut values = Vec::new();
                let (mut records, mut found) = (0, 0);
                while records < count {
                    let levels = column.nullable.then_some(&mut levels);
                    let (read, some, _) = reader.read_records(count - records, levels, None, &mut values)?;
                    if read == 0 {
                        break;
                    }
                    records += read;
                    found += some;
                }
                if records != count || found != values.len() {
                    return Err(Damaged(format!("column {} has {records} of {count} values", column.name)));
                }
                spread(values, column.nullable.then_some(&levels[..]), $cell)
            }};
        }
        match (reader, column.kind) {
            (ColumnReader::ByteArrayColumnReader(reader), Kind::Text) => {
                let mut last: Option<Arc<str>> = None;
                read!(reader, |value: ByteArray| text(&value, &mut last, column.name))
            }
            (ColumnReader::Int64ColumnReader(reader), Kind::Integer) => {
                read!(reader, |value| Ok(Cell::Integer(value)))
            }
            (ColumnReader::Int32ColumnReader(reader), Kind::Count) => {
                read!(reader, |value: i32| Ok(Cell::Count(value.cast_unsigned())))
            }
            (ColumnReader::BoolColumnReader(reader), Kind::Flag) => {
                read!(reader, |value| Ok(Cell::Flag(value)))
            }
            _ => Err(Damaged(format!("column {} has another type", column.name))),
        }
    }
}

/// All rows of a file.
///
/// # Errors
/// When the file is damaged, exceeds a limit, or is not of this table.
pub fn read_rows<R: Row>(bytes: &Bytes) -> Result<Vec<R>, Damaged> {
    let layout = Layout::of::<R>();
    let opened = ColumnarFile::open(&layout, bytes.len() as u64, bytes)?;
    let file = opened.map_err(|_| Damaged("its footer is longer than the file".to_owned()))?;
    let mut rows = Vec::new();
    for group in 0..file.groups() {
        let cells = file.rows(group, &slice(bytes, file.range(group))?)?;
        let read =
            cells.into_iter().map(|cells| R::from_cells(cells).map_err(|error| Damaged(error.to_string())));
        rows.extend(read.collect::<Result<Vec<R>, Damaged>>()?);
    }
    Ok(rows)
}

/// A part of the bytes.
fn slice(bytes: &Bytes, range: Range<u64>) -> Result<Bytes, Damaged> {
    let (start, end) = (range.start as usize, range.end as usize);
    if start > end || end > bytes.len() {
        return Err(Damaged("a row group lies outside of the file".to_owned()));
    }
    Ok(bytes.slice(start..end))
}

/// A panic of the Parquet crate is a damaged file, not the end of the process.
fn guarded<T>(read: impl FnOnce() -> Result<T, Damaged>) -> Result<T, Damaged> {
    let outcome = catch_unwind(AssertUnwindSafe(read));
    outcome.unwrap_or_else(|_| Err(Damaged("its pages contradict each other".to_owned())))
}

fn is_known(encoding: Encoding) -> bool {
    #[expect(deprecated, reason = "the footer names it for levels that are not there")]
    let known = [
        Encoding::PLAIN,
        Encoding::RLE,
        Encoding::RLE_DICTIONARY,
        Encoding::PLAIN_DICTIONARY,
        Encoding::BIT_PACKED,
    ];
    known.contains(&encoding)
}

/// Where the columns of the layout are in the file. Columns that were added later may be missing if
/// they are nullable.
fn places_of(layout: &Layout, metadata: &ParquetMetaData) -> Result<Vec<Option<usize>>, Damaged> {
    let schema = metadata.file_metadata().schema_descr();
    if schema.num_columns() > MAX_COLUMNS {
        return Err(Damaged(format!(
            "it has {} columns; at most {MAX_COLUMNS} are read",
            schema.num_columns()
        )));
    }
    let expected = layout.schema();
    let place = |at: usize| {
        let wanted = expected.column(at);
        let found = schema.columns().iter().position(|column| column.path() == wanted.path());
        let nullable = layout.columns()[at].nullable;
        let fits = found.map_or(nullable, |place| {
            let column = schema.column(place);
            let required = |optional| i16::from(optional);
            column.physical_type() == wanted.physical_type()
                && column.max_def_level() == required(nullable)
                && column.max_rep_level() == 0
        });
        if fits {
            return Ok(found);
        }
        Err(Damaged(format!("column {} of {} is missing or has another type", wanted.name(), layout.table())))
    };
    let places: Result<Vec<Option<usize>>, Damaged> = (0..layout.columns().len()).map(place).collect();
    let places = places?;
    let is_whole =
        |group: &parquet::file::metadata::RowGroupMetaData| group.num_columns() == schema.num_columns();
    if !metadata.row_groups().iter().all(is_whole) {
        return Err(Damaged("a row group lacks columns".to_owned()));
    }
    Ok(places)
}

/// Walks the pages of a column chunk: they lie within it, and have as many values as there are
/// rows.
fn check_pages(chunk: &ColumnChunkMetaData, window: &Window, count: usize) -> Result<(), Damaged> {
    let (start, length) = chunk.byte_range();
    let pages = window.part(start, length as usize)?;
    let compressed = matches!(chunk.compression(), Compression::SNAPPY);
    let mut at = 0;
    let (mut values, mut bytes) = (0_i64, 0_i64);
    while at < pages.len() && values < count as i64 {
        let header = page_header(&pages[at..])?;
        let body = at + header.header_bytes;
        let end = body.saturating_add(header.compressed_bytes as usize);
        let Some(page) = pages.get(body..end) else {
            return Err(Damaged(format!("a page of column {} is cut off", chunk.column_path())));
        };
        let claimed =
            if compressed && !page.is_empty() { snappy_length(page) } else { Some(page.len() as u64) };
        if claimed != Some(header.uncompressed_bytes as u64) {
            return Err(Damaged(format!("a page of column {} has another size", chunk.column_path())));
        }
        match header.kind {
            DATA_PAGE => values += header.values,
            DICTIONARY_PAGE if header.values <= header.uncompressed_bytes => (),
            other => return Err(Damaged(format!("a page of type {other} has {} values", header.values))),
        }
        bytes += header.uncompressed_bytes;
        if values > count as i64 || bytes > MAX_CHUNK_BYTES {
            return Err(Damaged(format!("column {} has more values than rows", chunk.column_path())));
        }
        at = end;
    }
    if values != count as i64 {
        return Err(Damaged(format!("column {} has {values} of {count} values", chunk.column_path())));
    }
    Ok(())
}

/// The length with which a Snappy block begins.
fn snappy_length(block: &[u8]) -> Option<u64> {
    let mut value = 0;
    for (at, byte) in block.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn text(value: &ByteArray, last: &mut Option<Arc<str>>, column: &str) -> Result<Cell, Damaged> {
    let bytes = value.data();
    if let Some(last) = last.as_ref().filter(|last| last.as_bytes() == bytes) {
        return Ok(Cell::Text(Arc::clone(last)));
    }
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_TEXT_BYTES);
    let text: Arc<str> =
        text.ok_or_else(|| Damaged(format!("column {column} has bytes that are no text")))?.into();
    *last = Some(Arc::clone(&text));
    Ok(Cell::Text(text))
}

/// Values with the gaps that the definition levels describe.
fn spread<T>(
    values: Vec<T>,
    levels: Option<&[i16]>,
    mut cell: impl FnMut(T) -> Result<Cell, Damaged>,
) -> Result<Vec<Cell>, Damaged> {
    let Some(levels) = levels else { return values.into_iter().map(cell).collect() };
    let mut values = values.into_iter();
    let place = |level: &i16| match level {
        0 => Ok(Cell::Null),
        _ => values.next().map_or_else(|| Err(Damaged("a value is missing".to_owned())), &mut cell),
    };
    levels.iter().map(place).collect()
}

/// A part of a file, read by the offsets of the whole.
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    fn part(&self, start: u64, length: usize) -> Result<Bytes, Damaged> {
        let from = start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let range = from.and_then(|from| Some(from..from.checked_add(length)?));
        match range.filter(|range| range.end <= self.bytes.len()) {
            Some(range) => Ok(self.bytes.slice(range)),
            None => Err(Damaged("a column lies outside of its row group".to_owned())),
        }
    }
}

impl Length for Window {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Window {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let length = self.len().saturating_sub(start) as usize;
        Ok(self.get_bytes(start, length)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.part(start, length).map_err(|error| ParquetError::EOF(error.to_string()))
    }
}
