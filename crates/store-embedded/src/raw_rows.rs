//! The rows of one checkpoint as redb has them, read past damage: a read that fails because an earlier one has met damage is
//! made again by [another redb](crate::aside).

use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{AccessGuard, Range, StorageError};

use crate::aside::{Aside, Place, RawTable};
use crate::error::RowError;

/// How often one read is made again because others have met damage meanwhile.
const MAX_REPEATS: u32 = 16;

/// Shared by a file and the snapshots of it.
#[derive(Debug, Default)]
pub struct Readers {
    /// The file was opened anew, so nothing keeps the pages of these snapshots from being reused.
    is_over: AtomicBool,
}

impl Readers {
    /// From now on the snapshots read nothing that they have not in memory. Comes before the first write to the file.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// The rows of one checkpoint. A clone reads the same.
#[derive(Debug, Clone)]
pub struct RawRows(Arc<Inner>);

struct Inner {
    /// Keeps the pages of the checkpoint from being reused. It is read until a read of its file fails.
    table: RawTable,
    is_left: AtomicBool,
    /// Where the same rows are for another redb; `None` if the file does not have all of them yet.
    place: Option<Place>,
    aside: Mutex<Option<Arc<Aside>>>,
    readers: Arc<Readers>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRows").field("is_left", &self.is_left).finish_non_exhaustive()
    }
}

/// What a read goes to.
#[derive(Clone)]
enum Reading {
    Table,
    Aside(Arc<Aside>),
}

type Guard = AccessGuard<'static, &'static [u8]>;
type RawRange = Range<'static, &'static [u8], &'static [u8]>;

impl RawRows {
    /// The rows of a table.
    pub fn new(table: RawTable, place: Option<Place>, readers: Arc<Readers>) -> Self {
        RawRows(Arc::new(Inner {
            table,
            is_left: AtomicBool::new(false),
            place,
            aside: Mutex::default(),
            readers,
        }))
    }

    /// Leaves the table to those that write, because its file is known to have damage.
    pub fn leave_table(self) -> Self {
        if self.0.place.is_some() {
            self.0.is_left.store(true, Ordering::Release);
        }
        self
    }

    /// One row.
    pub fn get(&self, key: &[u8]) -> Result<Option<Guard>, RowError> {
        self.0.read(|table| table.get(key))
    }

    /// Rows between two keys, from either end.
    pub fn range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<RawRowsRange, RowError> {
        let open = if is_empty(start, end) { None } else { Some(self.0.open_range(start, end)?) };
        Ok(RawRowsRange { rows: self.clone(), open, start: Own::of(start), end: Own::of(end) })
    }
}

/// Whether no key lies between two.
fn is_empty(start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    use Bound::{Excluded, Included};
    match (start, end) {
        (Included(start), Included(end)) => start > end,
        (Included(start) | Excluded(start), Included(end) | Excluded(end)) => start >= end,
        _ => false,
    }
}

impl Inner {
    fn aside(&self) -> MutexGuard<'_, Option<Arc<Aside>>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading(&self) -> Result<Reading, RowError> {
        let Some(place) = self.place.as_ref().filter(|_| self.is_left.load(Ordering::Acquire)) else {
            return Ok(Reading::Table);
        };
        if self.readers.is_over() {
            return Err(over());
        }
        let mut aside = self.aside();
        if let Some(aside) = &*aside {
            return Ok(Reading::Aside(Arc::clone(aside)));
        }
        let opened = Aside::open(place).map_err(|error| self.judged(error))?;
        let opened = Arc::new(opened);
        *aside = Some(Arc::clone(&opened));
        Ok(Reading::Aside(opened))
    }

    fn table<'a>(&'a self, reading: &'a Reading) -> &'a RawTable {
        match reading {
            Reading::Table => &self.table,
            Reading::Aside(aside) => &aside.table,
        }
    }

    /// Reads no more from a redb that refuses everything.
    fn leave(&self, reading: &Reading) {
        match reading {
            Reading::Table => self.is_left.store(self.place.is_some(), Ordering::Release),
            Reading::Aside(left) => drop(self.aside().take_if(|aside| Arc::ptr_eq(aside, left))),
        }
    }

    fn read<T>(&self, read: impl Fn(&RawTable) -> Result<T, StorageError>) -> Result<T, RowError> {
        for _ in 0..MAX_REPEATS {
            let reading = self.reading()?;
            match read(self.table(&reading)) {
                Ok(output) => return Ok(output),
                Err(error) => self.repeat(&reading, error)?,
            }
        }
        Err(too_often())
    }

    fn open_range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<OpenRange, RowError> {
        for _ in 0..MAX_REPEATS {
            let reading = self.reading()?;
            match self.table(&reading).range::<&[u8]>((start, end)) {
                Ok(range) => return Ok(OpenRange { range, reading }),
                Err(error) => self.repeat(&reading, error)?,
            }
        }
        Err(too_often())
    }

    /// Whether a read that failed is to be made again.
    ///
    /// # Errors
    /// When it is the one that has met the damage.
    fn repeat(&self, reading: &Reading, error: StorageError) -> Result<(), RowError> {
        self.leave(reading);
        let can_go_on = self.place.is_some() && matches!(error, StorageError::PreviousIo);
        if can_go_on { Ok(()) } else { Err(self.judged(error.into())) }
    }

    /// What is to be made of an error: pages that were reused meanwhile are no damage.
    fn judged(&self, error: RowError) -> RowError {
        if self.readers.is_over() { over() } else { error }
    }
}

fn over() -> RowError {
    RowError::Unreadable(
        "the state was opened anew while it was read, because it is damaged; try again".to_owned(),
    )
}

fn too_often() -> RowError {
    RowError::Unreadable("other reads have met damage again and again meanwhile; try again".to_owned())
}

struct OpenRange {
    range: RawRange,
    /// Holds on to what the range is read from.
    reading: Reading,
}

/// The end of a range, with bytes of its own.
struct Own {
    bytes: Vec<u8>,
    kind: Kind,
}

enum Kind {
    Included,
    Excluded,
    Unbounded,
}

impl Own {
    fn of(bound: Bound<&[u8]>) -> Self {
        let (bytes, kind) = match bound {
            Bound::Included(key) => (key.to_vec(), Kind::Included),
            Bound::Excluded(key) => (key.to_vec(), Kind::Excluded),
            Bound::Unbounded => (Vec::new(), Kind::Unbounded),
        };
        Own { bytes, kind }
    }

    fn exclude(&mut self, key: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(key);
        self.kind = Kind::Excluded;
    }

    fn bound(&self) -> Bound<&[u8]> {
        match self.kind {
            Kind::Included => Bound::Included(&self.bytes),
            Kind::Excluded => Bound::Excluded(&self.bytes),
            Kind::Unbounded => Bound::Unbounded,
        }
    }
}

/// Rows between two keys. Ends with the first error.
pub struct RawRowsRange {
    rows: RawRows,
    /// `None` at the end.
    open: Option<OpenRange>,
    /// What is still to be read.
    start: Own,
    end: Own,
}

#[derive(Clone, Copy)]
enum From {
    Start,
    End,
}

impl RawRowsRange {
    fn take(&mut self, from: From) -> Option<Result<(Guard, Guard), RowError>> {
        for _ in 0..MAX_REPEATS {
            let open = self.open.as_mut()?;
            let next = match from {
                From::Start => open.range.next(),
                From::End => open.range.next_back(),
            };
            let error = match next {
                Some(Ok((key, value))) => {
                    match from {
                        From::Start => self.start.exclude(key.value()),
                        From::End => self.end.exclude(key.value()),
                    }
                    return Some(Ok((key, value)));
                }
                None => {
                    self.open = None;
                    return None;
                }
                Some(Err(error)) => error,
            };
            if let Err(error) = self.resume(error) {
                return Some(Err(error));
            }
        }
        self.open = None;
        Some(Err(too_often()))
    }

    /// Goes on behind the last row, if the damage was met elsewhere.
    fn resume(&mut self, error: StorageError) -> Result<(), RowError> {
        let Some(OpenRange { reading, .. }) = self.open.take() else { return Ok(()) };
        let inner = &self.rows.0;
        inner.repeat(&reading, error)?;
        if !is_empty(self.start.bound(), self.end.bound()) {
            self.open = Some(inner.open_range(self.start.bound(), self.end.bound())?);
        }
        Ok(())
    }
}

impl Iterator for RawRowsRange {
    type Item = Result<(Guard, Guard), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(From::Start)
    }
}

impl DoubleEndedIterator for RawRowsRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(From::End)
    }
}
