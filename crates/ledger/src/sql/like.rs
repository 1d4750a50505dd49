//! LIKE and GLOB of our own, in place of SQLite's. SQLite cannot interrupt a function, and its matcher recurses at every
//! wildcard, so that a short pattern over long texts runs for minutes. This one backtracks to the last wildcard alone:
//! its steps grow with the product of pattern and text, and every [`STEPS_PER_CHECK`] of them it asks whether the query
//! is over.
//!
//! Results are those of SQLite with `PRAGMA case_sensitive_like = ON`, also for odd patterns: texts end at a NUL, an
//! escape character at the end of a pattern and a set without `]` match nothing.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::ffi;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};

use super::limits::MAX_PATTERN_BYTES;

/// Whether the query has to end. It is called by the progress handler of SQLite and by functions.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// Between two checks of the deadline, in characters that are compared.
const STEPS_PER_CHECK: u32 = 16 * 1024;

/// Registers both over the functions of SQLite, which evaluates the operators by them.
pub fn register(connection: &Connection, is_over: &IsOver) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let over = Arc::clone(is_over);
    connection.create_scalar_function("like", 2, flags, move |context| {
        let compile = |text: &str| Pattern::like(text, None);
        evaluate(context, "LIKE", compile, &over)
    })?;
    let over = Arc::clone(is_over);
    connection.create_scalar_function("like", 3, flags, move |context| {
        let Some(escape) = text(context.get_raw(2)) else { return Ok(None) };
        let mut characters = escape.chars();
        let (Some(escape), None) = (characters.next(), characters.next()) else {
            return Err(failed("ESCAPE expression must be a single character".to_owned()));
        };
        evaluate(context, "LIKE", |text| Pattern::like(text, Some(escape)), &over)
    })?;
    let over = Arc::clone(is_over);
    connection.create_scalar_function("glob", 2, flags, move |context| {
        evaluate(context, "GLOB", Pattern::glob, &over)
    })
}

/// The value of `text LIKE pattern`, which SQLite calls as `like(pattern, text)`. NULL when either is NULL.
fn evaluate(
    context: &Context<'_>,
    operator: &str,
    compile: impl FnOnce(&str) -> Pattern,
    is_over: &IsOver,
) -> rusqlite::Result<Option<bool>> {
    let Some(pattern) = text(context.get_raw(0)) else { return Ok(None) };
    if pattern.len() > usize::try_from(MAX_PATTERN_BYTES).unwrap_or(usize::MAX) {
        let (bytes, limit) = (pattern.len(), MAX_PATTERN_BYTES);
        return Err(failed(format!("the pattern of {operator} has {bytes} bytes, the limit is {limit}")));
    }
    let Some(text) = text(context.get_raw(1)) else { return Ok(None) };
    match compile(&pattern).matches(&text, &**is_over) {
        Ok(found) => Ok(Some(found)),
        // As SQLite reports a query that its progress handler ends.
        Err(Interrupted) => Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None)),
    }
}

/// An argument as text up to its first NUL; `None` for NULL.
fn text(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    let bytes = match value {
        ValueRef::Null => return None,
        ValueRef::Integer(number) => return Some(number.to_string().into()),
        ValueRef::Real(number) => return Some(format!("{number:?}").into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
    };
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Some(String::from_utf8_lossy(&bytes[..end]))
}

fn failed(detail: String) -> Error {
    Error::UserFunctionError(detail.into())
}

/// The query was over before the end of the text was reached.
#[derive(Debug, PartialEq, Eq)]
struct Interrupted;

/// A pattern, read once for a text.
#[derive(Debug, PartialEq, Eq)]
struct Pattern(Vec<Part>);

/// A part of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// `%` or `*`: any characters, also none.
    Many,
    /// `_` or `?`: one character.
    One,
    /// This character.
    Literal(char),
    /// `[…]`: one character of these ranges, or of none of them.
    Set { ranges: Vec<(char, char)>, is_inverted: bool },
    /// Nothing matches it.
    Never,
}

impl Pattern {
    fn like(text: &str, escape: Option<char>) -> Self {
        let mut characters = text.chars();
        let mut parts = Vec::new();
        while let Some(c) = characters.next() {
            // An escape character that is a wildcard is no wildcard.
            parts.push(match c {
                c if Some(c) == escape => characters.next().map_or(Part::Never, Part::Literal),
                '%' => Part::Many,
                '_' => Part::One,
                c => Part::Literal(c),
            });
        }
        Pattern(parts)
    }

    fn glob(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let (mut parts, mut rest) = (Vec::new(), characters.as_slice());
        while let [c, after @ ..] = rest {
            rest = after;
            parts.push(match c {
                '*' => Part::Many,
                '?' => Part::One,
                '[' => {
                    let (set, after) = set(rest);
                    rest = after;
                    set
                }
                c => Part::Literal(*c),
            });
        }
        Pattern(parts)
    }

    /// Whether the whole text matches.
    fn matches(&self, text: &str, is_over: &dyn Fn() -> bool) -> Result<bool, Interrupted> {
        let parts = self.0.as_slice();
        let (mut part, mut rest) = (0, text.chars());
        // Behind the last wildcard that was met: the next part, and the text that the wildcard leaves to it.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        let mut steps = 0_u32;
        loop {
            steps += 1;
            if steps == STEPS_PER_CHECK {
                steps = 0;
                if is_over() {
                    return Err(Interrupted);
                }
            }
            if parts.get(part) == Some(&Part::Many) {
                part += 1;
                if part == parts.len() {
                    return Ok(true);
                }
                retry = Some((part, rest.clone()));
                continue;
            }
            let next = rest.next();
            match (parts.get(part), next) {
                (None, None) => return Ok(true),
                (Some(wanted), Some(c)) if wanted.accepts(c) => part += 1,
                // Every part needs a character, so a wildcard that takes more leaves too few.
                (Some(_), None) => return Ok(false),
                _ => {
                    let Some((first, text)) = &mut retry else { return Ok(false) };
                    if text.next().is_none() {
                        return Ok(false);
                    }
                    (part, rest) = (*first, text.clone());
                }
            }
        }
    }
}

impl Part {
    fn accepts(&self, c: char) -> bool {
        match self {
            Part::One => true,
            Part::Literal(wanted) => *wanted == c,
            Part::Set { ranges, is_inverted } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *is_inverted
            }
            Part::Many | Part::Never => false,
        }
    }
}

/// The set whose `[` was read, and what comes behind it. A `]` that comes first is a character of the set.
fn set(characters: &[char]) -> (Part, &[char]) {
    let (is_inverted, mut rest) = match characters {
        ['^', after @ ..] => (true, after),
        all => (false, all),
    };
    let mut ranges = Vec::new();
    if let [']', after @ ..] = rest {
        ranges.push((']', ']'));
        rest = after;
    }
    // The character that a range may begin with.
    let mut from: Option<char> = None;
    loop {
        rest = match (rest, from) {
            ([], _) => return (Part::Never, rest),
            ([']', after @ ..], _) => return (Part::Set { ranges, is_inverted }, after),
            (['-', to, after @ ..], Some(first)) if *to != ']' => {
                ranges.push((first, *to));
                from = None;
                after
            }
            ([c, after @ ..], _) => {
                ranges.push((*c, *c));
                from = Some(*c);
                after
            }
        };
    }
}

#[cfg(test)]
#[path = "like_tests.rs"]
mod tests;
