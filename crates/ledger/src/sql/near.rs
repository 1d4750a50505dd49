//! "Did you mean" for columns: SQLite names the one that it does not know, and here is which ones there are.

use segno_actions::document::did_you_mean;

use super::error::SqlError;
use super::plan::Fetch;

/// What SQLite reports of a column that no table has, before its name.
const NO_COLUMN: &str = "no such column: ";

/// The error, with the columns nearest to one that it does not know, of the tables that the query names.
pub fn with_suggestion(error: SqlError, fetches: &[Fetch]) -> SqlError {
    let SqlError::Failed(detail) = error else { return error };
    let columns = || fetches.iter().flat_map(|fetch| fetch.table.columns).map(|column| column.name);
    match unknown(&detail).and_then(|name| did_you_mean(name, columns())) {
        Some(advice) => SqlError::Failed(format!("{detail}; {advice}")),
        None => SqlError::Failed(detail),
    }
}

/// The name of an unknown column, without what stands before it and without quotes.
fn unknown(detail: &str) -> Option<&str> {
    let name = detail.strip_prefix(NO_COLUMN)?;
    let name = match name.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => name.split(' ').next()?,
    };
    Some(name.rsplit_once('.').map_or(name, |(_, name)| name))
}
