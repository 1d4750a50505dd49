//! The rows of one checkpoint as redb has them, read past damage: a read that fails because an earlier
//! one has met damage is repeated by [another redb](crate::rows::isolated).

use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{AccessGuard, Range, StorageError};

use crate::error::RowError;
use crate::rows::isolated::{CheckpointLocation, IsolatedReader, RawTable};

/// Most repeats of one read because other reads have met damage meanwhile.
const MAX_REPEATS: u32 = 16;

/// Shared by a file and the snapshots of it.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// The file was reopened, so the pages of these snapshots may be reused.
    is_over: AtomicBool,
}

impl Readers {
    /// RangeEnd now on the snapshots read nothing that they have not in memory. Comes before the first write to the file.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// The rows of one checkpoint. A clone reads the same.
#[derive(Debug, Clone)]
pub(crate) struct RawRows(Arc<RawRowsInner>);

struct RawRowsInner {
    /// Keeps the pages of the checkpoint from being reused. It is read until a read of its file fails.
    table: RawTable,
    is_abandoned: AtomicBool,
    /// Where the same rows are for another redb; `None` if the file does not have all of them yet.
    place: Option<CheckpointLocation>,
    isolated: Mutex<Option<Arc<IsolatedReader>>>,
    readers: Arc<Readers>,
}

impl fmt::Debug for RawRowsInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRows").field("is_abandoned", &self.is_abandoned).finish_non_exhaustive()
    }
}

/// What a read uses.
#[derive(Clone)]
enum ReadSource {
    Table,
    IsolatedReader(Arc<IsolatedReader>),
}

type Guard = AccessGuard<'static, &'static [u8]>;
type RawRange = Range<'static, &'static [u8], &'static [u8]>;

impl RawRows {
    /// The rows of a table.
    pub(crate) fn new(table: RawTable, place: Option<CheckpointLocation>, readers: Arc<Readers>) -> Self {
        RawRows(Arc::new(RawRowsInner {
            table,
            is_abandoned: AtomicBool::new(false),
            place,
            isolated: Mutex::default(),
            readers,
        }))
    }

    /// Reads from another redb from now on, because the file is known to be damaged.
    pub(crate) fn abandon_table(self) -> Self {
        if self.0.place.is_some() {
            self.0.is_abandoned.store(true, Ordering::Release);
        }
        self
    }

    /// One row.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Guard>, RowError> {
        self.0.read(|table| table.get(key))
    }

    /// Rows between two keys, from either end.
    pub(crate) fn range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<RawRowsRange, RowError> {
        let open = if is_empty(start, end) { None } else { Some(self.0.open_range(start, end)?) };
        Ok(RawRowsRange { rows: self.clone(), open, start: OwnedBound::of(start), end: OwnedBound::of(end) })
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

impl RawRowsInner {
    fn isolated(&self) -> MutexGuard<'_, Option<Arc<IsolatedReader>>> {
        self.isolated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading(&self) -> Result<ReadSource, RowError> {
        let Some(place) = self.place.as_ref().filter(|_| self.is_abandoned.load(Ordering::Acquire)) else {
            return Ok(ReadSource::Table);
        };
        if self.readers.is_over() {
            return Err(over());
        }
        let mut isolated = self.isolated();
        if let Some(isolated) = &*isolated {
            return Ok(ReadSource::IsolatedReader(Arc::clone(isolated)));
        }
        let opened = IsolatedReader::open(place).map_err(|error| self.judged(error))?;
        let opened = Arc::new(opened);
        *isolated = Some(Arc::clone(&opened));
        Ok(ReadSource::IsolatedReader(opened))
    }

    fn table<'a>(&'a self, reading: &'a ReadSource) -> &'a RawTable {
        match reading {
            ReadSource::Table => &self.table,
            ReadSource::IsolatedReader(isolated) => &isolated.table,
        }
    }

    /// Abandons a redb that refuses all reads.
    fn abandon(&self, reading: &ReadSource) {
        match reading {
            ReadSource::Table => self.is_abandoned.store(self.place.is_some(), Ordering::Release),
            ReadSource::IsolatedReader(left) => {
                drop(self.isolated().take_if(|isolated| Arc::ptr_eq(isolated, left)))
            }
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

    /// Whether a failed read is to be repeated.
    ///
    /// # Errors
    /// If the read itself has met the damage.
    fn repeat(&self, reading: &ReadSource, error: StorageError) -> Result<(), RowError> {
        self.abandon(reading);
        let can_go_on = self.place.is_some() && matches!(error, StorageError::PreviousIo);
        if can_go_on { Ok(()) } else { Err(self.judged(error.into())) }
    }

    /// Classifies an error: pages that were reused meanwhile are no damage.
    fn judged(&self, error: RowError) -> RowError {
        if self.readers.is_over() { over() } else { error }
    }
}

fn over() -> RowError {
    RowError::Unreadable(
        "the state was reopened while it was read, because it is damaged; try again".to_owned(),
    )
}

fn too_often() -> RowError {
    RowError::Unreadable("other reads have met damage repeatedly meanwhile; try again".to_owned())
}

struct OpenRange {
    range: RawRange,
    /// Keeps the source of the range alive.
    reading: ReadSource,
}

/// The end of a range, with its own copy of the bytes.
struct OwnedBound {
    bytes: Vec<u8>,
    kind: BoundKind,
}

enum BoundKind {
    Included,
    Excluded,
    Unbounded,
}

impl OwnedBound {
    fn of(bound: Bound<&[u8]>) -> Self {
        let (bytes, kind) = match bound {
            Bound::Included(key) => (key.to_vec(), BoundKind::Included),
            Bound::Excluded(key) => (key.to_vec(), BoundKind::Excluded),
            Bound::Unbounded => (Vec::new(), BoundKind::Unbounded),
        };
        OwnedBound { bytes, kind }
    }

    fn exclude(&mut self, key: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(key);
        self.kind = BoundKind::Excluded;
    }

    fn bound(&self) -> Bound<&[u8]> {
        match self.kind {
            BoundKind::Included => Bound::Included(&self.bytes),
            BoundKind::Excluded => Bound::Excluded(&self.bytes),
            BoundKind::Unbounded => Bound::Unbounded,
        }
    }
}

/// Rows between two keys. Ends with the first error.
pub(crate) struct RawRowsRange {
    rows: RawRows,
    /// `None` at the end.
    open: Option<OpenRange>,
    /// What is still to be read.
    start: OwnedBound,
    end: OwnedBound,
}

#[derive(Clone, Copy)]
enum RangeEnd {
    Start,
    End,
}

impl RawRowsRange {
    fn take(&mut self, from: RangeEnd) -> Option<Result<(Guard, Guard), RowError>> {
        for _ in 0..MAX_REPEATS {
            let open = self.open.as_mut()?;
            let next = match from {
                RangeEnd::Start => open.range.next(),
                RangeEnd::End => open.range.next_back(),
            };
            let error = match next {
                Some(Ok((key, value))) => {
                    match from {
                        RangeEnd::Start => self.start.exclude(key.value()),
                        RangeEnd::End => self.end.exclude(key.value()),
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

    /// Continues behind the last row, if the damage was met elsewhere.
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
        self.take(RangeEnd::Start)
    }
}

impl DoubleEndedIterator for RawRowsRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(RangeEnd::End)
    }
}
