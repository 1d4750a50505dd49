//! Members from comma-separated values. The first record has the names of the columns.

use std::collections::BTreeSet;

use csv::{ByteRecord, ReaderBuilder};
use segno_actions::document::{did_you_mean, folded, shown};
use serde_json::{Map, Value};

use super::batch_time::parse_batch_time;
use super::error::InvalidMembers;
use super::keys::MemberKeys;
use super::values::split_values;
use crate::definition::{BatchTime, DataSource};
use crate::limits::{
    MAX_COLUMNS, MAX_CSV_BYTES, MAX_CSV_ROWS, MAX_ROW_BYTES, MAX_SOURCE_BYTES, MAX_SOURCE_ROWS, in_mib,
};
use crate::names::NameKind;
use crate::problem::{Position, Problem, Problems};

/// The byte order mark that some programs write at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvLimits {
    /// Largest text in bytes.
    pub max_bytes: usize,
    /// Most rows.
    pub max_rows: usize,
    /// What to do with more.
    pub advice: &'static str,
}

impl CsvLimits {
    /// For the file of a manual batch.
    pub const MANUAL: CsvLimits = CsvLimits {
        max_bytes: MAX_CSV_BYTES,
        max_rows: MAX_CSV_ROWS,
        advice: "split the file, and add the other parts with `segno batch add-members`",
    };

    /// For the answer of a data source.
    pub const SOURCE: CsvLimits = CsvLimits {
        max_bytes: MAX_SOURCE_BYTES,
        max_rows: MAX_SOURCE_ROWS,
        advice: "let the source return fewer rows, or split it into several runbooks",
    };
}

/// A member's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Line of the text on which it begins, from 1.
    pub line: u64,
    /// The member's key.
    pub key: String,
    /// Values by column: texts, and lists of texts for multi-valued columns.
    pub columns: Map<String, Value>,
}

/// All rows of a text. Keys are unique, compared case-insensitively.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// Reads rows of a data source, which must have the columns that are required.
///
/// # Errors
/// `invalid-members` with all problems.
pub fn read_csv(
    bytes: &[u8],
    source: &DataSource,
    required: &BTreeSet<String>,
    limits: CsvLimits,
) -> Result<Rows, InvalidMembers> {
    let mut rows = Vec::new();
    let columns = read_csv_into(bytes, source, required, limits, &mut |row| rows.push(row))?;
    Ok(Rows { columns, rows })
}

/// The same row by row, for a caller that does not keep them. Returns the columns.
///
/// # Errors
/// `invalid-members` with all problems; rows that were taken before do not count.
pub fn read_csv_into(
    bytes: &[u8],
    source: &DataSource,
    required: &BTreeSet<String>,
    limits: CsvLimits,
    take: &mut dyn FnMut(Row),
) -> Result<Vec<String>, InvalidMembers> {
    let mut reading = Reading::new(source, BatchTimes::Taken);
    let mut columns = Vec::new();
    reading.fill(&mut columns, &Text { bytes, required, limits }, take);
    reading.problems.sort();
    let problems = reading.problems;
    if problems.has_errors() { Err(InvalidMembers { problems }) } else { Ok(columns) }
}

/// Reads the rows that can be used, and lists the problems of all others: of columns, of rows, and
/// of batch times, which a data source may leave wrong in single rows.
pub fn examine_csv(
    bytes: &[u8],
    source: &DataSource,
    required: &BTreeSet<String>,
    limits: CsvLimits,
) -> Examined {
    let mut required = required.clone();
    if let BatchTime::Column(column) = &source.batch_time {
        required.insert(column.clone());
    }
    let mut reading = Reading::new(source, BatchTimes::Checked);
    let mut rows = Rows::default();
    let text = Text { bytes, required: &required, limits };
    let is_usable = reading.fill(&mut rows.columns, &text, &mut |row| rows.rows.push(row));
    reading.problems.sort();
    Examined { rows, is_usable, problems: reading.problems }
}

/// A text of members, examined.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// The rows without a problem.
    pub rows: Rows,
    /// Whether the rows can be used: all columns are there that are needed, and all rows were read.
    pub is_usable: bool,
    /// What is wrong, by line.
    pub problems: Problems,
}

/// Whether the batch times of rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchTimes {
    Taken,
    Checked,
}

/// A text that is to be read.
struct Text<'t> {
    bytes: &'t [u8],
    required: &'t BTreeSet<String>,
    limits: CsvLimits,
}

struct Reading<'s> {
    source: &'s DataSource,
    batch_times: BatchTimes,
    problems: Problems,
    keys: MemberKeys,
}

impl<'s> Reading<'s> {
    fn new(source: &'s DataSource, batch_times: BatchTimes) -> Self {
        Reading { source, batch_times, problems: Problems::default(), keys: MemberKeys::new("line") }
    }

    /// Reads rows up to the end or to a limit. Whether all were read, with the columns that are needed.
    fn fill(&mut self, columns: &mut Vec<String>, text: &Text<'_>, take: &mut dyn FnMut(Row)) -> bool {
        let Text { bytes, required, limits } = *text;
        if bytes.len() > limits.max_bytes {
            // Not how many there are: the caller may have stopped reading at the limit.
            let problem = format!("the text has more than the limit of {}", in_mib(limits.max_bytes));
            let problem = Problem::error(Position::of_line(1), "", problem);
            self.problems.push(problem.advice(limits.advice));
            return false;
        }
        let mut has_columns = false;
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        // A part of the rows must not pass for all of them.
        if let Some(line) = first_beyond(bytes, limits.max_rows) {
            let problem = format!("there are more than {} rows, which is the limit", limits.max_rows);
            let problem = Problem::error(Position::of_line(line), "", problem);
            self.problems.push(problem.advice(limits.advice));
            return false;
        }
        let mut lines = Lines { bytes, counted: 0, line: 1 };
        // Lengths of records are checked here, so that all wrong ones are reported.
        let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        let mut record = ByteRecord::new();
        // Reading from memory does not fail, and bytes need no decoding.
        while reader.read_byte_record(&mut record).unwrap_or(false) {
            let from = record.position().map_or(0, csv::Position::byte);
            let line = lines.line_of(from);
            if reader.is_done() || reader.position().byte() >= bytes.len() as u64 {
                self.check_quotes(&bytes[offset(from)..], line);
            }
            if columns.is_empty() {
                let before = self.problems.errors();
                *columns = self.header(&record, required);
                has_columns = self.problems.errors() == before;
                // Rows are read all the same, so that all their problems are reported.
                if columns.is_empty() {
                    return false;
                }
            } else if let Some(row) = self.row(&record, line, columns) {
                take(row);
            }
        }
        if columns.is_empty() {
            let problem = Problem::error(Position::of_line(1), "", "the text is empty");
            self.problems.push(problem.advice("write the names of the columns into the first line"));
        }
        has_columns
    }

    /// A quote that is not closed takes the rest of the text into one cell.
    fn check_quotes(&mut self, record: &[u8], line: u64) {
        let quotes = record.iter().filter(|byte| **byte == b'"').count();
        if quotes % 2 == 1 {
            let problem = Problem::error(Position::of_line(line), "", "a quote in this row is not closed");
            self.problems.push(problem.advice("write a quote within a cell as \"\""));
        }
    }

    fn header(&mut self, record: &ByteRecord, required: &BTreeSet<String>) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        let at = Position::of_line(1);
        if record.len() > MAX_COLUMNS {
            let problem = format!("there are {} columns, the limit is {MAX_COLUMNS}", record.len());
            self.problems.push(Problem::error(at, "", problem));
            return columns;
        }
        for (index, name) in record.iter().enumerate() {
            let path = format!("column {}", index + 1);
            let Ok(name) = std::str::from_utf8(name) else {
                let problem = Problem::error(at, path.as_str(), "its name is not UTF-8");
                self.problems.push(problem.advice("save the file as UTF-8"));
                columns.push(path);
                continue;
            };
            let name = name.trim();
            if let Err(problem) = NameKind::Column.check(name) {
                self.problems.push(Problem::error(at, path.as_str(), problem));
            } else if columns.iter().any(|other| folded(other) == folded(name)) {
                let problem =
                    format!("{:?} is the name of two columns; letter case does not matter", shown(name));
                self.problems.push(Problem::error(at, path.as_str(), problem));
            }
            columns.push(name.to_owned());
        }
        let others = required.iter().filter(|name| **name != self.source.primary_key);
        for name in std::iter::once(&self.source.primary_key).chain(others) {
            if !columns.contains(name) {
                let problem = Problem::error(at, "", format!("the column {name:?} is missing"));
                self.problems.push(problem.maybe_advice(missing_advice(name, &columns)));
            }
        }
        columns
    }

    fn row(&mut self, record: &ByteRecord, line: u64, names: &[String]) -> Option<Row> {
        let at = Position::of_line(line);
        if record.len() != names.len() {
            let problem = format!("expected {} cells as in the header, found {}", names.len(), record.len());
            let advice = "write a cell that has a comma or a line end in quotes";
            self.problems.push(Problem::error(at, "", problem).advice(advice));
            return None;
        }
        let bytes = record.as_slice().len();
        if bytes > MAX_ROW_BYTES {
            let problem = format!("the row has {bytes} bytes, the limit is {MAX_ROW_BYTES}");
            self.problems.push(Problem::error(at, "", problem));
            return None;
        }
        let mut columns = Map::new();
        let (mut key, mut is_usable) = (None, true);
        for (name, cell) in names.iter().zip(record) {
            let Ok(text) = std::str::from_utf8(cell) else {
                let problem = Problem::error(at, name.as_str(), "the cell is not UTF-8");
                self.problems.push(problem.advice("save the file as UTF-8"));
                continue;
            };
            if *name == self.source.primary_key {
                match self.keys.take(text, line) {
                    Ok(taken) => key = Some(taken),
                    Err(problem) => self.problems.push(Problem::error(at, name.as_str(), problem)),
                }
            }
            is_usable &= self.batch_time(name, text, at);
            let value = match self.source.multi_valued(name) {
                None => Value::String(text.to_owned()),
                Some(format) => match split_values(text, format) {
                    Ok(values) => values.into_iter().map(Value::String).collect(),
                    Err(problem) => {
                        self.problems.push(Problem::error(at, name.as_str(), problem));
                        continue;
                    }
                },
            };
            columns.insert(name.clone(), value);
        }
        let row = Row { line, key: key?, columns };
        is_usable.then_some(row)
    }

    /// Whether a cell can be used: it is not the batch time, or is one, or is not checked here.
    fn batch_time(&mut self, name: &str, text: &str, at: Position) -> bool {
        let is_time = matches!(&self.source.batch_time, BatchTime::Column(column) if column == name);
        if !is_time || self.batch_times == BatchTimes::Taken {
            return true;
        }
        match parse_batch_time(text) {
            Ok(_) => true,
            Err(problem) => {
                self.problems.push(Problem::error(at, name, problem));
                false
            }
        }
    }
}

fn missing_advice(name: &str, columns: &[String]) -> Option<String> {
    match columns {
        [only] if only.contains([';', '\t']) => Some("separate cells with commas".to_owned()),
        _ => did_you_mean(name, columns.iter().map(String::as_str)),
    }
}

/// The line of the first row beyond a limit, before any row is kept.
fn first_beyond(bytes: &[u8], max_rows: usize) -> Option<u64> {
    // No text has more rows than line ends, and those are counted fast.
    if bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() <= max_rows {
        return None;
    }
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut record = ByteRecord::new();
    // The first record has the names of the columns.
    for _ in 0..max_rows.saturating_add(2) {
        if !reader.read_byte_record(&mut record).unwrap_or(false) {
            return None;
        }
    }
    let from = record.position().map_or(0, csv::Position::byte);
    Some(Lines { bytes, counted: 0, line: 1 }.line_of(from))
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// Counts lines up to records, which come in order.
struct Lines<'b> {
    bytes: &'b [u8],
    counted: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line of the record that begins at a byte, empty lines before it left out.
    fn line_of(&mut self, from: u64) -> u64 {
        let mut from = offset(from);
        while matches!(self.bytes.get(from), Some(b'\r' | b'\n')) {
            from += 1;
        }
        let passed = self.bytes.get(self.counted..from).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = self.counted.max(from);
        self.line
    }
}
