//! A check of every byte of a store that is not open: is everything readable, and consistent?

use std::path::Path;
use std::sync::Arc;

use crate::disk::directory::Directory;
use crate::disk::files::Files;
use crate::error::{OpenError, RowError};
use crate::log::{self, Scanned, scan};
use crate::operate::fill_marker;
use crate::repair::consistency::{self, FindingSink};
use crate::repair::salvage_reader::{SalvageReader, Unreadable};
use crate::rows::base::{Base, Size};
use crate::rows::checkpoint_meta::FILLING;
use crate::rows::keys::{self, Key, Table};
use crate::rows::stored::stored_len;
use crate::rows::tables::Tables;

/// Most findings that a report lists.
const MAX_FINDINGS: usize = 1_000;

/// Progress is reported after this many rows.
const ROWS_PER_REPORT: u64 = 10_000;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The table or file.
    pub place: String,
    /// Which row or part of it.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.key, self.problem)
    }
}

/// Progress of a check. Every row is read twice: alone, and together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckProgress {
    /// Rows read.
    pub rows_done: u64,
    /// Rows to read, as far as that is known.
    pub rows_total: u64,
}

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Rows in the state file.
    pub rows: u64,
    /// Records in the log.
    pub log_records: u64,
    /// What is wrong; nothing if the store is sound.
    pub findings: Vec<Finding>,
    /// How many more findings there are than are listed.
    pub more_findings: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Collects findings and reports progress.
pub(crate) struct Notebook<'a> {
    pub(crate) report: CheckReport,
    progress: &'a mut dyn FnMut(CheckProgress),
    state: CheckProgress,
}

impl<'a> Notebook<'a> {
    pub(crate) fn new(progress: &'a mut dyn FnMut(CheckProgress)) -> Self {
        let state = CheckProgress { rows_done: 0, rows_total: 0 };
        Notebook { report: CheckReport::default(), progress, state }
    }

    pub(crate) fn expect_rows(&mut self, rows_total: u64) {
        self.state.rows_total = rows_total;
    }

    pub(crate) fn note(&mut self, place: &str, key: impl Into<String>, problem: impl Into<String>) {
        self.find(Finding { place: place.to_owned(), key: key.into(), problem: problem.into() });
    }
}

impl FindingSink for Notebook<'_> {
    fn find(&mut self, finding: Finding) {
        if self.report.findings.len() < MAX_FINDINGS {
            self.report.findings.push(finding);
        } else {
            self.report.more_findings += 1;
        }
    }

    fn row_done(&mut self) {
        self.state.rows_done += 1;
        if self.state.rows_done.is_multiple_of(ROWS_PER_REPORT) {
            self.state.rows_total = self.state.rows_total.max(self.state.rows_done);
            (self.progress)(self.state);
        }
    }
}

/// Reads every row and every log record of a store that is not open, and compares them. Changes nothing.
///
/// # Errors
/// When there is no such directory, it is in use, of an unknown format, or cannot be read. Damage
/// is no error, but a finding.
pub fn check(
    path: impl AsRef<Path>,
    mut progress: impl FnMut(CheckProgress),
) -> Result<CheckReport, OpenError> {
    let path = path.as_ref();
    let mut open = || check_files(&(Arc::new(Directory::existing(path)?) as Arc<dyn Files>), &mut progress);
    open().map_err(|error| error.in_directory(path))
}

/// The same on any directory; for tests.
#[doc(hidden)]
pub fn check_files(
    files: &Arc<dyn Files>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, OpenError> {
    let _lock = files.lock().map_err(OpenError::of_lock)?;
    fill_marker::refuse_unfinished(&**files)?;
    // What a newer build wrote is not damage; the format of the base is checked when it is
    // opened.
    log::refuse_unknown_format(files)?;
    let mut notes = Notebook::new(progress);
    let readable = SalvageReader::new(files);
    let base = match readable.open() {
        Ok(mut base) => {
            match base.verify() {
                Ok(true) => {}
                Ok(false) => notes.note("state.redb", "pages", "redb had to repair them"),
                Err(error) => notes.note("state.redb", "pages", error),
            }
            Some(base)
        }
        Err(OpenError::Corrupt(what)) => {
            notes.note("state.redb", "file", what);
            None
        }
        Err(error) => return Err(error),
    };
    if let Some(base) = &base {
        notes.expect_rows(2 * base.size().rows);
        check_rows(base, &readable, &mut notes)?;
    }
    let mut tables = match &base {
        Some(base) if notes.report.is_sound() => Some(Tables::new(base.snapshot()?)?),
        _ => None,
    };
    check_log(files, tables.as_mut(), &mut notes)?;
    match tables {
        Some(tables) if notes.report.is_sound() => {
            if tables.rows.get(&keys::meta(FILLING))?.is_some() {
                notes.note(
                    "all tables",
                    "-",
                    "filling the store was interrupted; run the restore or copy again",
                );
            }
            consistency::compare(&tables, &mut notes)?;
        }
        _ => notes.note("all tables", "-", "they were not compared, because not everything can be read"),
    }
    Ok(notes.report)
}

fn check_rows(base: &Base, readable: &SalvageReader, notes: &mut Notebook<'_>) -> Result<(), OpenError> {
    let mut size = Size::default();
    let mut unknown = Vec::new();
    let unreadable = readable.rows(&mut |key, value| {
        notes.row_done();
        if !keys::is_meta(&key) {
            size.add(&key, stored_len(&value));
        }
        if Table::of_key(&key).is_none() {
            unknown.push(key);
        }
    })?;
    notes.report.rows = size.rows;
    for key in unknown {
        notes.note("state.redb", format!("{key:?}"), "there is no such table");
    }
    for place in &unreadable {
        let (key, problem) = describe(place);
        notes.note("state.redb", key, problem);
    }
    // What is saved by storing many entries in one row is not seen here.
    size.saved = base.size().saved;
    if unreadable.is_empty() && size != base.size() {
        notes.note("state.redb", "size", format!("it is said to hold {:?}, but holds {size:?}", base.size()));
    }
    Ok(())
}

/// Which rows cannot be read, and why.
pub(crate) fn describe(unreadable: &Unreadable) -> (String, String) {
    match unreadable {
        Unreadable::Row(key, why) => (keys::describe(key), why.clone()),
        Unreadable::Rows { after, before, why } => {
            let name = |key: &Option<Key>, open: &str| key.as_deref().map_or(open.to_owned(), keys::describe);
            let stretch = format!("between {} and {}", name(after, "the beginning"), name(before, "the end"));
            (stretch, why.clone())
        }
    }
}

fn check_log(
    files: &Arc<dyn Files>,
    mut tables: Option<&mut Tables>,
    notes: &mut Notebook<'_>,
) -> Result<(), OpenError> {
    let covered = tables.as_ref().map(|tables| tables.meta.covered);
    let anchor = tables.as_ref().map_or(Ok(None), |tables| tables.anchor())?;
    let mut last = covered;
    let mut outcome: Result<(), RowError> = Ok(());
    scan(files, anchor, &mut |scanned| match scanned {
        Scanned::Damage { file, what } => notes.note(file, "record", what),
        Scanned::Missing { file, first_sequence, what } => {
            notes.note(file, format!("commits from {first_sequence} on"), what);
        }
        Scanned::Record { sequence, body } => {
            notes.report.log_records += 1;
            let Some(before) = last.filter(|last| sequence > *last) else { return };
            if sequence != before + 1 {
                notes.note(
                    "log",
                    format!("commit {}", before + 1),
                    format!("it is missing; {sequence} follows"),
                );
            }
            last = Some(sequence);
            if let Some(tables) = &mut tables
                && outcome.is_ok()
            {
                outcome = tables.replay(body);
            }
        }
    })?;
    if let Err(error) = outcome {
        notes.note("log", "record", error.to_string());
    }
    let logged = tables.map_or(Ok(0), |tables| tables.logged());
    if let (Ok(logged), Some(last)) = (logged, last)
        && last < logged
    {
        let what = format!("the log ends with commit {last}; it was cut short, or a file of it is gone");
        notes.note("log", format!("commit {logged}"), what);
    }
    Ok(())
}
