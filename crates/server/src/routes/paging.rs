//! Pages of listings.

use segno::limits::MAX_PAGE_ROWS;
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
