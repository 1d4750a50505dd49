//! Archived rows beside live ones: a table that reads both as one.
//!
//! Live rows come newest first, a page at a time. After each page the archive is looked at again, so that a row that retention
//! moves while the query runs is in one of the two. Rows of files that begin in the time of the page are merged into it. Files
//! whose names say that they have nothing for the query are not opened.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use futures_util::stream::{self, BoxStream, StreamExt as _};
use segno_ledger::archive::{ArchivedFile, Doubts, INSTANCES, day_of};
use segno_ledger::sql::{Row, Rows, Scan, Value};
use segno_ledger::tables::Cell;

use super::listing::is_absence;
use crate::app::{Refused, Tenant};
use crate::problem::Refusal;

/// Newest first; of equal age, ascending by id.
type Place = (Reverse<u64>, String);

/// Columns that archived rows do not have.
const LIVE_ONLY: [&str; 3] = ["start_at", "pause_reason", "unreadable"];

/// Columns whose conditions files can apply by the minima and maxima of their row groups, and whose cells never change while an
/// instance is archived again.
const FIXED: [&str; 2] = ["function", "parent"];

/// A live row with its place.
pub struct LiveRow {
    /// When its instance was created, in Unix milliseconds.
    pub created_at_ms: u64,
    /// The id of the instance.
    pub id: String,
    /// Its cells.
    pub row: Row,
}

/// Pages of live rows, newest first.
pub type LiveRows = BoxStream<'static, Result<Vec<LiveRow>, Refusal>>;

/// An archived row. The one that counts is the greatest.
struct ArchivedRow {
    place: Place,
    revision: i64,
    row: Row,
}

impl PartialEq for ArchivedRow {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ArchivedRow {}

impl PartialOrd for ArchivedRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ArchivedRow {
    /// The first in the order of places is the greatest, for a heap; of one place the one with the largest revision.
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place).then(self.revision.cmp(&other.revision))
    }
}

/// The archived instances of a scan.
struct ArchivedInstances {
    tenant: Tenant,
    scan: Scan,
    /// Columns of the archive that are read: the place, the revision, then those of the scan that there are.
    columns: Vec<&'static str>,
    /// Files that have not been read, the one with the newest row last.
    unread: Vec<ArchivedFile>,
    read: HashSet<String>,
    heap: BinaryHeap<ArchivedRow>,
    doubts: Doubts,
    generation: Option<u64>,
    /// The last row that was delivered.
    last: Option<Place>,
}

/// Live and archived instances as one, newest first. A live row wins.
pub fn with_archive(tenant: Tenant, live: LiveRows, scan: Scan) -> Rows {
    let archived = ArchivedInstances::new(tenant, scan);
    let rows = stream::try_unfold(Some((live, archived)), |state| async move {
        let Some((mut live, mut archived)) = state else { return Ok(None) };
        match live.next().await.transpose()? {
            Some(page) => {
                archived.look().await?;
                let rows = archived.merged(page).await?;
                Ok(Some((rows, Some((live, archived)))))
            }
            None => {
                archived.look().await?;
                let rows = archived.next_rows().await?;
                let state = (!rows.is_empty()).then(|| (stream::empty().boxed(), archived));
                Ok::<_, Refusal>(Some((rows, state)))
            }
        }
    });
    rows.map(|page| page.map_err(|refusal| Refused(refusal).into())).boxed()
}

impl ArchivedInstances {
    fn new(tenant: Tenant, scan: Scan) -> Self {
        let there =
            scan.columns.iter().copied().filter(|name| !LIVE_ONLY.contains(name) && *name != "archived");
        let columns = ["id", "incarnation", "revision"].into_iter().chain(there).collect();
        ArchivedInstances {
            tenant,
            scan,
            columns,
            unread: Vec::new(),
            read: HashSet::new(),
            heap: BinaryHeap::new(),
            doubts: Doubts::new(),
            generation: None,
            last: None,
        }
    }

    /// Lists the files again if rows came into the archive since the last look.
    async fn look(&mut self) -> Result<(), Refusal> {
        let generation = self.tenant.archive_generation().await?;
        if self.generation == Some(generation) {
            return Ok(());
        }
        self.list().await?;
        self.generation = Some(generation);
        Ok(())
    }

    async fn list(&mut self) -> Result<(), Refusal> {
        self.unread = match self.scan.equals_text("id") {
            Some(id) => self.tenant.archived_files_of(&INSTANCES, id).await?,
            None => self.tenant.archived_files(&INSTANCES).await?,
        };
        let (created_from, created_before) = self.scan.range("created_at");
        let (ended_from, ended_before) = self.scan.range("completed_at");
        let read = &self.read;
        self.unread.retain(|file| {
            let name = &file.name;
            !read.contains(&name.digest)
                && created_from.is_none_or(|from| name.to_ms >= from)
                && created_before.is_none_or(|before| name.from_ms < before)
                && ended_from.is_none_or(|from| name.day >= day_of(from))
                && ended_before.is_none_or(|before| name.day <= day_of(before.saturating_sub(1)))
        });
        self.unread.sort_by_key(|file| file.name.to_ms);
        self.doubts = self.tenant.archive_doubts().await?;
        Ok(())
    }

    /// Reads the files that may have a row before or at a time of creation.
    async fn read_until(&mut self, created_at_ms: i64) -> Result<(), Refusal> {
        while let Some(file) = self.unread.pop_if(|file| file.name.to_ms >= created_at_ms) {
            self.read_file(&file).await?;
        }
        Ok(())
    }

    async fn read_file(&mut self, file: &ArchivedFile) -> Result<(), Refusal> {
        let wanted: Vec<(&str, &str)> =
            FIXED.iter().filter_map(|name| Some((*name, self.scan.equals_text(name)?))).collect();
        let found = self.tenant.archived_rows(&INSTANCES, file, &self.columns, &wanted).await?;
        let Some(found) = found else {
            // It was merged with others: their rows are in a file that is listed now.
            return self.list().await;
        };
        self.read.insert(file.name.digest.clone());
        let prefix = self.scan.prefix("id").map(str::to_owned);
        for cells in found {
            let row = self.row(cells);
            let is_wanted = prefix.as_ref().is_none_or(|prefix| row.place.1.starts_with(prefix.as_str()));
            // What lies before the last delivered row was in the store when its page was read.
            if is_wanted && self.last.as_ref().is_none_or(|last| row.place > *last) {
                self.heap.push(row);
            }
        }
        Ok(())
    }

    fn row(&self, cells: Vec<Cell>) -> ArchivedRow {
        let mut cells = cells.into_iter();
        let mut next = || cells.next().map_or(Value::Null, value);
        let (id, created, revision) = (next(), next(), next());
        let number = |value| match value {
            Value::Integer(number) => number,
            _ => 0,
        };
        let id = match id {
            Value::Text(id) => id,
            _ => String::new(),
        };
        let cell = |name: &&'static str| match *name {
            "archived" => Value::flag(true),
            name if LIVE_ONLY.contains(&name) => Value::Null,
            _ => next(),
        };
        let row = self.scan.columns.iter().map(cell).collect();
        let created_at_ms = u64::try_from(number(created)).unwrap_or(0);
        ArchivedRow { place: (Reverse(created_at_ms), id), revision: number(revision), row }
    }

    /// A page of live rows with the archived rows among them.
    async fn merged(&mut self, page: Vec<LiveRow>) -> Result<Vec<Row>, Refusal> {
        let Some(oldest) = page.last() else { return Ok(Vec::new()) };
        let oldest_ms = i64::try_from(oldest.created_at_ms).unwrap_or(i64::MAX);
        self.read_until(oldest_ms).await?;
        let mut rows = Vec::with_capacity(page.len());
        for live in page {
            let place = (Reverse(live.created_at_ms), live.id);
            while self.heap.peek().is_some_and(|archived| archived.place < place) {
                self.deliver_archived(&mut rows).await?;
            }
            rows.push(live.row);
            self.last = Some(place);
        }
        Ok(rows)
    }

    /// The next archived rows when there are no more live ones; none at the end.
    async fn next_rows(&mut self) -> Result<Vec<Row>, Refusal> {
        let mut rows = Vec::new();
        while rows.is_empty() {
            match self.unread.last().map(|file| file.name.to_ms) {
                Some(newest_ms) => self.read_until(newest_ms).await?,
                None if self.heap.is_empty() => break,
                None => {}
            }
            let behind = self.unread.last().map(|file| u64::try_from(file.name.to_ms).unwrap_or(0));
            while self.heap.peek().is_some_and(|one| behind.is_none_or(|behind| one.place.0.0 > behind)) {
                self.deliver_archived(&mut rows).await?;
            }
        }
        Ok(rows)
    }

    /// Delivers the next archived row, unless a live row or a later revision stands for it.
    async fn deliver_archived(&mut self, rows: &mut Vec<Row>) -> Result<(), Refusal> {
        let Some(archived) = self.heap.pop() else { return Ok(()) };
        if self.last.as_ref().is_some_and(|last| archived.place <= *last) {
            return Ok(());
        }
        let (Reverse(created_at_ms), id) = archived.place.clone();
        self.last = Some(archived.place);
        let in_doubt = (id, created_at_ms);
        if self.doubts.contains(&in_doubt) && is_live(&self.tenant, &in_doubt).await? {
            return Ok(());
        }
        rows.push(archived.row);
        Ok(())
    }
}

/// Whether the store has the instance that was created then.
async fn is_live(tenant: &Tenant, (id, created_at_ms): &(String, u64)) -> Result<bool, Refusal> {
    match tenant.instance(id).await {
        Ok(found) => Ok(found.created_at_ms == *created_at_ms),
        Err(refusal) if is_absence(&refusal) => Ok(false),
        Err(refusal) => Err(refusal),
    }
}

/// The archived instances of an id, but for the one that is live.
pub async fn of_id(tenant: Tenant, id: String, live: Option<u64>, scan: Scan) -> Result<Vec<Row>, Refusal> {
    let mut archived = ArchivedInstances::new(tenant, scan);
    for _ in 0..TRIES {
        archived.list().await?;
        let files = std::mem::take(&mut archived.unread);
        let mut found = Vec::new();
        let mut is_whole = true;
        for file in &files {
            let wanted = [("id", id.as_str())];
            let rows = archived.tenant.archived_rows(&INSTANCES, file, &archived.columns, &wanted).await?;
            match rows {
                Some(rows) => found.extend(rows.into_iter().map(|cells| archived.row(cells))),
                None => is_whole = false,
            }
        }
        if !is_whole {
            continue;
        }
        found.sort_by(|one, other| other.cmp(one));
        found.dedup_by(|later, first| later.place == first.place);
        let is_other = |row: &ArchivedRow| live != Some(row.place.0.0);
        return Ok(found.into_iter().filter(is_other).map(|one| one.row).collect());
    }
    Err(Refusal::unavailable(
        "the files of the archive change faster than they are read",
        crate::operation::effect(),
    ))
}

/// Tries of a read whose files were merged meanwhile.
const TRIES: u32 = 5;

/// A cell of the archive as one of a query.
pub fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Text(text) => Value::Text(text.as_ref().to_owned()),
        Cell::Integer(number) => Value::Integer(number),
        Cell::Count(count) => Value::Integer(i64::from(count)),
        Cell::Flag(flag) => Value::flag(flag),
    }
}
