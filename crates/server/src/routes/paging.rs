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

/// Most rows that one request looks at to find those that match.
const MAX_SCANNED: usize = 10_000;

/// Rows that a search reads at once after its first page: those that match may be rare.
const SCAN_ROWS: usize = 200;

/// A page of rows that match, found by reading pages of all rows, and the cursor of the next page. There is a cursor if there
/// is another row that matches, or if the search ended at [`MAX_SCANNED`] rows and there are more to look at.
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
    F: Fn(Option<String>, usize) -> Fut,
    Fut: Future<Output = Result<Vec<T>, Refusal>>,
{
    let (mut found, mut scanned) = (Vec::new(), 0);
    let mut wanted = (rows + 1).min(MAX_PAGE_ROWS);
    loop {
        let page = read(after.clone(), wanted).await?;
        let is_last = page.len() < wanted;
        scanned += page.len();
        for item in page {
            let Row { cursor, matches } = row(&item);
            if matches && found.len() == rows {
                return Ok((found, after));
            }
            after = Some(cursor);
            if matches {
                found.push(item);
            }
        }
        if is_last {
            return Ok((found, None));
        }
        if scanned >= MAX_SCANNED {
            return Ok((found, after));
        }
        wanted = wanted.max(SCAN_ROWS);
    }
}

/// What a search has to know of a row.
pub struct Row {
    /// Where the rows after it begin.
    pub cursor: String,
    /// Whether it is looked for.
    pub matches: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search over numbers as rows, of which some match: what it finds, and after which number the next page begins.
    async fn found(
        of: u32,
        rows: usize,
        after: Option<&str>,
        matches: fn(u32) -> bool,
    ) -> (Vec<u32>, Option<String>) {
        let read = |after: Option<String>, limit: usize| async move {
            let after = after.map_or(0, |after| after.parse::<u32>().unwrap());
            Ok((after + 1..=of).take(limit).collect())
        };
        let row = |number: &u32| Row { cursor: number.to_string(), matches: matches(*number) };
        search(rows, after.map(str::to_owned), read, row).await.unwrap()
    }

    #[tokio::test]
    async fn a_search_gives_a_cursor_only_if_another_row_matches() {
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

    #[tokio::test]
    async fn a_search_that_looked_at_enough_says_where_to_go_on() {
        let (rows, next) = found(50_000, 3, None, |number| number == 40_000).await;
        assert!(rows.is_empty());
        let next = next.unwrap();
        assert!((MAX_SCANNED..MAX_SCANNED + SCAN_ROWS).contains(&next.parse().unwrap()), "{next}");
    }
}
