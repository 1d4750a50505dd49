//! Pages of listings, bounded in rows and in bytes.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use segno::limits::MAX_PAGE_ROWS;
use segno_actions::Listed;
use segno_api::Unreadable;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::operation::damage;
use crate::problem::{Code, Refusal};

/// Rows of a page when a request does not say.
const DEFAULT_ROWS: usize = 50;

/// Which page.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Rows of a page.
///
/// # Errors
/// When it is out of range.
pub fn limit(asked: Option<usize>) -> Result<usize, Refusal> {
    match asked {
        None => Ok(DEFAULT_ROWS),
        Some(rows) if (1..=MAX_PAGE_ROWS).contains(&rows) => Ok(rows),
        Some(_) => Err(Refusal::field("limit", format!("must be 1 to {MAX_PAGE_ROWS}"))),
    }
}

/// Refuses a name to filter by that nothing can have.
///
/// # Errors
/// `invalid-request` when the check fails.
pub fn named<E: ToString>(
    field: &str,
    name: Option<&str>,
    check: impl FnOnce(&str) -> Result<(), E>,
) -> Result<(), Refusal> {
    name.map_or(Ok(()), check).map_err(|error| Refusal::field(field, error.to_string()))
}

/// What a cursor is, as its listing reads it.
///
/// # Errors
/// When it is not one of that listing.
pub fn cursor<'a, T>(
    text: Option<&'a str>,
    read: impl FnOnce(&'a str) -> Option<T>,
) -> Result<Option<T>, Refusal> {
    text.map(|text| read(text).ok_or_else(Refusal::broken_cursor)).transpose()
}

/// A cursor that is the id of a record whose ids ascend from new to old: 16 digits of time, then what tells it from others.
///
/// # Errors
/// When it cannot be such an id.
pub fn newest_first(text: Option<&str>) -> Result<Option<&str>, Refusal> {
    cursor(text, |text| {
        let (time, rest) = text.split_at_checked(16)?;
        let is_time = time.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_time && rest.starts_with('-')).then_some(text)
    })
}

/// A cursor that stands for any text, such as a name that users choose: base64url, so that it is told apart from what is none.
pub fn of_text(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// The text of a cursor that [`of_text`] made. No name of a listing has control characters, and some stores have no text with
/// U+0000.
///
/// # Errors
/// When it is none.
pub fn text_of(text: Option<&str>) -> Result<Option<String>, Refusal> {
    cursor(text, |text| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| !bytes.is_empty())?;
        String::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control))
    })
}

/// The name that a cursor of [`of_text`] stands for, as its listing reads it.
///
/// # Errors
/// When it is no name of that listing.
pub fn name_of<T>(text: Option<&str>, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Refusal> {
    text_of(text)?.map(|name| read(&name).ok_or_else(Refusal::broken_cursor)).transpose()
}

/// A page ends before the row with which it would have more bytes than this, as JSON. It has at least one row.
pub const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Most rows that one request looks at to find those that match.
const MAX_SCANNED: usize = 10_000;

/// Most bytes of rows that one request looks at: a search among large rows ends with a cursor too.
const MAX_SCANNED_BYTES: usize = 64 * 1024 * 1024;

/// Rows that are read from the store at first: how large they are is not known yet.
const FIRST_CHUNK_ROWS: usize = 16;

/// Most rows that are read from the store at once. Small rows may be followed by large ones, so this bounds memory.
const MAX_CHUNK_ROWS: usize = 64;

/// Rows that were read at once.
pub struct Chunk<T> {
    /// The rows, in order.
    pub rows: Vec<T>,
    /// Whether no row follows.
    pub is_last: bool,
    /// Why rows are missing among them whose ids cannot be read.
    pub damaged: Option<String>,
}

impl<T> Chunk<T> {
    /// What was found when so many were wanted: fewer are the last.
    pub fn of(rows: Vec<T>, wanted: usize) -> Self {
        Chunk { is_last: rows.len() < wanted, rows, damaged: None }
    }
}

/// What a page has to know of a row that was read.
pub struct Row<W> {
    /// Where the rows after it begin.
    pub cursor: String,
    /// The row as it is shown.
    pub shown: Listed<W>,
    /// Whether it is looked for.
    pub matches: bool,
    /// Bytes that were read of it and are not shown, about.
    pub unshown_bytes: usize,
}

impl<W> Row<W> {
    /// A row of a listing that shows all rows, and all of each.
    pub fn new(cursor: String, shown: Listed<W>) -> Self {
        Row { cursor, shown, matches: true, unshown_bytes: 0 }
    }
}

/// A page that was read.
#[derive(Debug, PartialEq)]
pub struct Found<W> {
    /// Rows that can be read.
    pub rows: Vec<W>,
    /// Rows that cannot.
    pub unreadable: Vec<Unreadable>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

impl<W> Found<W> {
    /// Reports rows whose ids cannot be read, once for each reason.
    fn add_missing(&mut self, reason: String) {
        let missing = Unreadable { id: String::new(), reason };
        if !self.unreadable.contains(&missing) {
            self.unreadable.push(missing);
        }
    }
}

/// A page of the rows that match, at most `rows` and about [`MAX_PAGE_BYTES`] of them. Rows are read in chunks that shrink as
/// rows grow, so a page of large rows takes the memory of one chunk more than it shows. There is a cursor if another row
/// matches, or if the search ended at [`MAX_SCANNED`] rows or [`MAX_SCANNED_BYTES`] and there are more to look at.
///
/// # Errors
/// Those of reading, and of showing a row.
pub async fn page<T, W, F, Fut>(
    rows: usize,
    mut after: Option<String>,
    read: F,
    show: impl Fn(T) -> Result<Row<W>, Refusal>,
) -> Result<Found<W>, Refusal>
where
    W: Serialize,
    F: Fn(Option<String>, usize) -> Fut,
    Fut: Future<Output = Result<Chunk<T>, Refusal>>,
{
    let mut found = Found { rows: Vec::new(), unreadable: Vec::new(), next_cursor: None };
    let (mut count, mut bytes, mut scan) = (0, 0, Scan::default());
    loop {
        let read = damage::shown_around(read(after.clone(), scan.wanted(rows + 1 - count)));
        let (chunk, missing) = read.await;
        let chunk = chunk?;
        missing.into_iter().chain(chunk.damaged).for_each(|reason| found.add_missing(reason));
        // A chunk without rows cannot be read on after its last one.
        let is_last = chunk.is_last || chunk.rows.is_empty();
        for item in chunk.rows {
            let row = show(item)?;
            let row_bytes = bytes_of(&row.shown)?;
            scan.saw(row_bytes + row.unshown_bytes);
            if row.matches && (count == rows || (count > 0 && bytes + row_bytes > MAX_PAGE_BYTES)) {
                return Ok(Found { next_cursor: after, ..found });
            }
            after = Some(row.cursor);
            if row.matches {
                (count, bytes) = (count + 1, bytes + row_bytes);
                match row.shown {
                    Listed::Readable(shown) => found.rows.push(shown),
                    Listed::Unreadable(row) => {
                        found.unreadable.push(Unreadable { id: row.id, reason: row.reason });
                    }
                }
            }
        }
        if is_last {
            return Ok(found);
        }
        if scan.is_enough() {
            return Ok(Found { next_cursor: after, ..found });
        }
        // A store in this process answers without a pause, so a page would hold up all other requests to its end.
        tokio::task::yield_now().await;
    }
}

/// A page of rows that were read at once, one more than it may have: of tables where every read costs as much as a page.
///
/// # Errors
/// When a row cannot be shown.
pub fn of_rows<T: Serialize>(
    rows: usize,
    read: Vec<T>,
    cursor: impl Fn(&T) -> String,
) -> Result<Found<T>, Refusal> {
    let mut found = Found { rows: Vec::new(), unreadable: Vec::new(), next_cursor: None };
    let mut bytes = 0;
    for row in read {
        let row_bytes = json_bytes(&row)?;
        let is_full = found.rows.len() == rows || bytes + row_bytes > MAX_PAGE_BYTES;
        if let Some(last) = found.rows.last().filter(|_| is_full) {
            found.next_cursor = Some(cursor(last));
            return Ok(found);
        }
        bytes += row_bytes;
        found.rows.push(row);
    }
    Ok(found)
}

/// How much was looked at, and how much to read next.
#[derive(Default)]
struct Scan {
    rows: usize,
    bytes: usize,
    chunk: usize,
}

impl Scan {
    /// Rows to read next when so many would end the page. Rows that do not match may be many, so a search reads on in whole
    /// chunks.
    fn wanted(&mut self, left: usize) -> usize {
        let is_first = self.rows == 0;
        let by_bytes = MAX_PAGE_BYTES.checked_div(self.bytes / self.rows.max(1)).unwrap_or(MAX_CHUNK_ROWS);
        self.chunk = match is_first {
            true => FIRST_CHUNK_ROWS.min(left),
            false => (self.chunk.max(FIRST_CHUNK_ROWS) * 2).min(MAX_CHUNK_ROWS).min(by_bytes).max(1),
        };
        self.chunk
    }

    fn saw(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    fn is_enough(&self) -> bool {
        self.rows >= MAX_SCANNED || self.bytes >= MAX_SCANNED_BYTES
    }
}

/// The bytes of a row as JSON.
fn bytes_of<W: Serialize>(row: &Listed<W>) -> Result<usize, Refusal> {
    match row {
        Listed::Readable(shown) => json_bytes(shown),
        Listed::Unreadable(row) => Ok(row.id.len() + row.reason.len()),
    }
}

/// The bytes of something as JSON.
///
/// # Errors
/// `internal` when it cannot be JSON.
pub fn json_bytes(shown: &impl Serialize) -> Result<usize, Refusal> {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, shown).map_err(|error| {
        tracing::error!(%error, "a row of a listing cannot be shown");
        Refusal::new(Code::Internal, "a row cannot be shown; the server's log has the reason")
    })?;
    Ok(counted.0)
}

/// Counts what is written, and keeps nothing.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A page of numbers as rows, of which some match: what it has, and after which number the next page begins.
    async fn found(
        of: u32,
        rows: usize,
        after: Option<&str>,
        matches: fn(u32) -> bool,
    ) -> (Vec<u32>, Option<String>) {
        let row = |number: u32| {
            let row = Row::new(number.to_string(), Listed::Readable(number));
            Ok(Row { matches: matches(number), ..row })
        };
        let found = page(rows, after.map(str::to_owned), |after, limit| numbers(of, after, limit), row);
        let found = found.await.unwrap();
        (found.rows, found.next_cursor)
    }

    async fn numbers(of: u32, after: Option<String>, limit: usize) -> Result<Chunk<u32>, Refusal> {
        let after = after.map_or(0, |after| after.parse::<u32>().unwrap());
        Ok(Chunk::of((after + 1..=of).take(limit).collect(), limit))
    }

    #[tokio::test]
    async fn a_page_has_a_cursor_only_if_another_row_matches() {
        let all: fn(u32) -> bool = |_| true;
        let even: fn(u32) -> bool = |number| number % 2 == 0;
        let early: fn(u32) -> bool = |number| number <= 3;
        for (of, rows, matches, wanted) in [
            (0, 3, all, (vec![], None)),
            (2, 3, all, (vec![1, 2], None)),
            (3, 3, all, (vec![1, 2, 3], None)),
            (4, 3, all, (vec![1, 2, 3], Some("3"))),
            (7, 3, even, (vec![2, 4, 6], None)),
            (8, 3, even, (vec![2, 4, 6], Some("7"))),
            (5_000, 3, early, (vec![1, 2, 3], None)),
            (1_000, 1_000, all, ((1..=1_000).collect(), None)),
            (1_001, 1_000, all, ((1..=1_000).collect(), Some("1000"))),
        ] {
            let (found, next) = found(of, rows, None, matches).await;
            assert_eq!((found, next.as_deref()), wanted, "{of} rows, pages of {rows}");
        }
        let (rest, next) = found(8, 3, Some("7"), even).await;
        assert_eq!((rest, next), (vec![8], None));
    }

    #[test]
    fn a_page_of_rows_that_were_read_at_once_ends_at_its_rows_and_at_its_bytes() {
        let cursor = |row: &String| row.chars().take(3).collect();
        let page = |rows, texts: &[&str]| {
            let found = of_rows(rows, texts.iter().map(ToString::to_string).collect(), cursor).unwrap();
            (found.rows.len(), found.next_cursor)
        };
        assert_eq!(page(2, &[]), (0, None));
        assert_eq!(page(2, &["aaa", "bbb"]), (2, None));
        assert_eq!(page(2, &["aaa", "bbb", "ccc"]), (2, Some("bbb".to_owned())));
        let large = "x".repeat(MAX_PAGE_BYTES);
        assert_eq!(page(5, &["aaa", &large, "ccc"]), (1, Some("aaa".to_owned())));
        assert_eq!(page(5, &[&large, "ccc"]), (1, Some("xxx".to_owned())), "it has at least one row");
    }

    #[tokio::test]
    async fn a_page_gives_way_to_other_requests() {
        let others = Arc::new(AtomicUsize::new(0));
        let turns = Arc::clone(&others);
        let other = tokio::spawn(async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        found(1_000, 1_000, None, |_| true).await;
        other.abort();
        assert!(others.load(Ordering::Relaxed) >= 1_000 / MAX_CHUNK_ROWS, "{others:?}");
    }

    #[tokio::test]
    async fn what_is_missing_is_reported_once_and_does_not_count() {
        let read = |after, limit| async move {
            damage::note("block 7 fails its checksum".to_owned());
            let chunk = numbers(100, after, limit).await?;
            Ok(Chunk { damaged: Some("block 9 fails its checksum".to_owned()), ..chunk })
        };
        let row = |number: u32| Ok(Row::new(number.to_string(), Listed::Readable(number)));
        let found = page(40, None, read, row).await.unwrap();
        assert_eq!((found.rows.len(), found.next_cursor.as_deref()), (40, Some("40")));
        let missing: Vec<_> =
            found.unreadable.iter().map(|row| (row.id.as_str(), row.reason.as_str())).collect();
        assert_eq!(missing, [("", "block 7 fails its checksum"), ("", "block 9 fails its checksum")]);
        assert!(!damage::is_shown_around(), "only while a page is read");
    }

    #[tokio::test]
    async fn a_search_that_looked_at_enough_says_where_to_go_on() {
        let (rows, next) = found(50_000, 3, None, |number| number == 40_000).await;
        assert!(rows.is_empty());
        let next = next.unwrap();
        assert!((MAX_SCANNED..MAX_SCANNED + MAX_CHUNK_ROWS).contains(&next.parse().unwrap()), "{next}");
    }

    /// Pages of texts of so many bytes, until the last: the rows of each, and the rows that were read at once.
    async fn pages(of: u32, shown_bytes: usize, unshown_bytes: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut pages, chunks, mut after) = (Vec::new(), RefCell::new(Vec::new()), None);
        loop {
            let read = |after, limit| {
                chunks.borrow_mut().push(limit);
                numbers(of, after, limit)
            };
            let row = |number: u32| {
                let row = Row::new(number.to_string(), Listed::Readable("x".repeat(shown_bytes)));
                Ok(Row { unshown_bytes, ..row })
            };
            let found = page(1_000, after, read, row).await.unwrap();
            pages.push(found.rows.len());
            after = found.next_cursor;
            if after.is_none() {
                return (pages, chunks.into_inner());
            }
        }
    }

    #[tokio::test]
    async fn a_page_ends_at_its_bytes_and_has_at_least_one_row() {
        let mib = 1024 * 1024;
        assert_eq!(pages(7, mib, 0).await.0, [3, 3, 1]);
        assert_eq!(pages(3, MAX_PAGE_BYTES * 2, 0).await.0, [1, 1, 1]);
        assert_eq!(pages(1_000, 100, 0).await.0, [1_000]);
    }

    #[tokio::test]
    async fn large_rows_are_read_a_few_at_once_also_if_they_are_not_shown() {
        let mib = 1024 * 1024;
        let (found, chunks) = pages(200, 10, mib).await;
        assert_eq!(chunks[0], FIRST_CHUNK_ROWS);
        // Each page looks at no more bytes than a search may.
        assert!(found.iter().all(|rows| *rows <= MAX_SCANNED_BYTES / mib), "{found:?}");
        assert_eq!(found.iter().sum::<usize>(), 200);
        let later = chunks.iter().filter(|rows| **rows != FIRST_CHUNK_ROWS);
        assert!(later.clone().count() > 0 && later.clone().all(|rows| *rows <= 4), "{chunks:?}");
        let (_, chunks) = pages(1_000, 10, 0).await;
        assert!(chunks.contains(&MAX_CHUNK_ROWS), "{chunks:?}");
    }
}
