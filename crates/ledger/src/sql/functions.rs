//! Which functions a query may call: those that compute and nothing else. Functions whose cost grows with the product
//! of two arguments are replaced by ones of linear cost, because SQLite cannot interrupt a function.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};

use super::instant;
use super::like::{self, IsOver};
use super::limits::MAX_VALUE_BYTES;

/// Functions of one row, whose result follows from their arguments.
pub const SCALAR: &[&str] = &[
    "abs",
    "ago",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "date",
    "datetime",
    "format",
    "glob",
    "hex",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_extract",
    "json_object",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "julianday",
    "length",
    "like",
    "lower",
    "ltrim",
    "now",
    "nullif",
    "octet_length",
    "printf",
    "quote",
    "replace",
    "round",
    "rtrim",
    "sign",
    "strftime",
    "substr",
    "substring",
    "time",
    "timediff",
    "trim",
    "typeof",
    "unicode",
    "unixepoch",
    "upper",
];

/// Aggregate and window functions, functions without a fixed result, and the names under which SQLite calls operators.
const OTHERS: &[&str] = &[
    "->",
    "->>",
    "avg",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "dense_rank",
    "first_value",
    "group_concat",
    "json_group_array",
    "json_group_object",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "nth_value",
    "ntile",
    "percent_rank",
    "random",
    "rank",
    "row_number",
    "string_agg",
    "sum",
    "total",
];

/// Table functions.
pub const TABLES: &[&str] = &["json_each", "json_tree"];

/// Whether a query may call a function.
pub fn is_allowed(name: &str) -> bool {
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    SCALAR.iter().any(is) || OTHERS.iter().any(is) || TABLES.iter().any(is)
}

/// Whether the result of a function follows from its arguments and the time of the query alone.
pub fn is_scalar(name: &str) -> bool {
    SCALAR.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// All functions that a query may call.
pub fn names() -> impl Iterator<Item = &'static str> {
    let is_word = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
    SCALAR.iter().chain(OTHERS).chain(TABLES).copied().filter(is_word)
}

/// Adds the functions of our own: `now()` and `ago('15m')`, and the replacements.
pub fn register(connection: &Connection, now_ms: i64, is_over: &IsOver) -> rusqlite::Result<()> {
    like::register(connection, is_over)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("now", 0, flags, move |_| Ok(instant::text(now_ms)))?;
    connection.create_scalar_function("ago", 1, flags, move |context| {
        let text: String = context.get(0)?;
        let duration: jiff::SignedDuration = text.trim().parse().map_err(|_| {
            failed(format!("ago({text:?}) is not a duration; write one such as '15m', '1h 30m' or '24h'"))
        })?;
        let ms =
            i64::try_from(duration.as_millis()).map_err(|_| failed("ago() is out of range".to_owned()))?;
        Ok(instant::text(now_ms.saturating_sub(ms)))
    })?;
    connection.create_scalar_function("instr", 2, flags, |context| {
        let (Some(text), Some(part)) = (text(context.get_raw(0)), text(context.get_raw(1))) else {
            return Ok(None);
        };
        let place = text.find(&part).map_or(0, |at| text[..at].chars().count() + 1);
        Ok(Some(i64::try_from(place).unwrap_or(i64::MAX)))
    })?;
    connection.create_scalar_function("replace", 3, flags, |context| {
        let [Some(text), Some(from), Some(to)] = [0, 1, 2].map(|place| text(context.get_raw(place))) else {
            return Ok(None);
        };
        if from.is_empty() {
            return Ok(Some(text));
        }
        let max = usize::try_from(MAX_VALUE_BYTES).unwrap_or(usize::MAX);
        let longer = text.matches(from.as_str()).count().saturating_mul(to.len().saturating_sub(from.len()));
        if text.len().saturating_add(longer) > max {
            return Err(Error::UserFunctionError("string or blob too big".into()));
        }
        Ok(Some(text.replace(from.as_str(), &to)))
    })?;
    for (name, ends) in [("trim", Ends::Both), ("ltrim", Ends::Left), ("rtrim", Ends::Right)] {
        for arguments in [1, 2] {
            connection.create_scalar_function(name, arguments, flags, move |context| {
                let Some(text) = text(context.get_raw(0)) else { return Ok(None) };
                if arguments == 1 {
                    return Ok(Some(ends.trim(&text, &[' '])));
                }
                let Some(characters) = self::text(context.get_raw(1)) else { return Ok(None) };
                let mut characters: Vec<char> = characters.chars().collect();
                characters.sort_unstable();
                Ok(Some(ends.trim(&text, &characters)))
            })?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Ends {
    Left,
    Right,
    Both,
}

impl Ends {
    /// Without sorted characters at these ends.
    fn trim(self, text: &str, characters: &[char]) -> String {
        let is_trimmed = |c: char| characters.binary_search(&c).is_ok();
        match self {
            Ends::Left => text.trim_start_matches(is_trimmed),
            Ends::Right => text.trim_end_matches(is_trimmed),
            Ends::Both => text.trim_matches(is_trimmed),
        }
        .to_owned()
    }
}

/// An argument as text; `None` for NULL.
fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(format!("{number:?}")),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

fn failed(detail: String) -> Error {
    Error::UserFunctionError(detail.into())
}
