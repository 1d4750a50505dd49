//! Pages of listings.

use segno::limits::MAX_PAGE_ROWS;
use segno_actions::Listed;
use segno_api::Unreadable;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::Refusal;

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

/// A page of what was found when one more than the page was asked for, and the cursor of the next page if there is one.
pub fn cut<T>(mut found: Vec<T>, rows: usize, cursor: impl FnOnce(&T) -> String) -> (Vec<T>, Option<String>) {
    let more = found.len() > rows;
    found.truncate(rows);
    let next_cursor = found.last().filter(|_| more).map(cursor);
    (found, next_cursor)
}

/// The rows that can be read, and those that cannot as they go over the wire.
pub fn split<T>(rows: Vec<Listed<T>>) -> (Vec<T>, Vec<Unreadable>) {
    let (readable, unreadable) = Listed::split(rows);
    let unreadable = unreadable.into_iter().map(|row| Unreadable { id: row.id, reason: row.reason });
    (readable, unreadable.collect())
}

/// Most rows that one request looks at to find those that match.
const MAX_SCANNED: usize = 10_000;

/// A page of rows that match, found by reading pages of all rows, and the cursor of the next page if there may be one.
///
/// # Errors
/// Those of reading.
pub async fn search<T, F, Fut>(
    rows: usize,
    mut after: Option<String>,
    read: F,
    row: impl Fn(&T) -> Row,
) -> Result<(Vec<T>, Option<String>), Refusal>
where
    F: Fn(Option<String>) -> Fut,
    Fut: Future<Output = Result<Vec<T>, Refusal>>,
{
    let (mut found, mut scanned) = (Vec::new(), 0);
    loop {
        let page = read(after.clone()).await?;
        let is_last = page.len() < rows;
        scanned += page.len();
        let mut left = page.into_iter().peekable();
        while let Some(item) = left.next() {
            let Row { cursor, matches } = row(&item);
            after = Some(cursor);
            if matches {
                found.push(item);
            }
            if found.len() == rows {
                let is_end = is_last && left.peek().is_none();
                return Ok((found, after.filter(|_| !is_end)));
            }
        }
        if is_last || scanned >= MAX_SCANNED {
            return Ok((found, after.filter(|_| !is_last)));
        }
    }
}

/// What a search has to know of a row.
pub struct Row {
    /// Where the rows after it begin.
    pub cursor: String,
    /// Whether it is looked for.
    pub matches: bool,
}
