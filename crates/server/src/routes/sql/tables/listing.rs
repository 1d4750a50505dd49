//! Tables that are made of the listings of the API: a row is the object of a listing, and a cell is a field of it.

use std::collections::BTreeMap;
use std::future::Future;

use axum::Json;
use axum::http::StatusCode;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use segno_api::Unreadable;
use segno_ledger::sql::{ColumnKind, Rows, Scan, Table, TableInfo, Value};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::app::Refused;
use crate::problem::{Code, Refusal};

/// The fields of an object, as text.
pub type Fields = BTreeMap<String, Box<RawValue>>;

/// Objects of a listing, some at a time.
pub type Parts = BoxStream<'static, Result<Vec<Fields>, Refusal>>;

/// Names of what rows belong to, some at a time.
pub type Ids<T> = BoxStream<'static, Result<T, Refusal>>;

/// A page of a listing.
pub struct Part {
    rows: Vec<Fields>,
    next: Option<String>,
}

/// A table that is made of a listing.
pub struct Listing {
    /// What it has.
    pub info: &'static TableInfo,
    /// Fields that columns have, if they have other names or are inside of objects.
    pub places: &'static [(&'static str, &'static [&'static str])],
    /// Reads it.
    pub open: Box<dyn Fn(Scan) -> Parts + Send + Sync>,
}

impl Part {
    /// The rows of a page. What cannot be read is a row with `key` and the reason.
    ///
    /// # Errors
    /// When a row has no JSON form.
    pub fn of<T: Serialize>(
        rows: &[T],
        unreadable: &[Unreadable],
        key: &str,
        next: Option<String>,
    ) -> Result<Self, Refusal> {
        let mut part = Part { rows: Vec::with_capacity(rows.len()), next };
        for row in rows {
            part.rows.push(fields(row)?);
        }
        for row in unreadable {
            let texts = [(key, &row.id), ("unreadable", &row.reason)];
            let texts = texts.map(|(name, text)| raw(text).map(|raw| (name.to_owned(), raw)));
            part.rows.push(texts.into_iter().collect::<Result<_, _>>()?);
        }
        Ok(part)
    }

    /// The same rows with one more field.
    ///
    /// # Errors
    /// When the value has no JSON form.
    pub fn with<T: Serialize>(mut self, name: &str, value: &T) -> Result<Self, Refusal> {
        let value = raw(value)?;
        for row in &mut self.rows {
            row.insert(name.to_owned(), value.clone());
        }
        Ok(self)
    }

    /// The same rows with a field for those that do not have it.
    ///
    /// # Errors
    /// When the value has no JSON form.
    pub fn or<T: Serialize>(mut self, name: &str, value: &T) -> Result<Self, Refusal> {
        let value = raw(value)?;
        for row in &mut self.rows {
            row.entry(name.to_owned()).or_insert_with(|| value.clone());
        }
        Ok(self)
    }

    /// The rows, if this is the last page.
    pub fn into_rows(self) -> Vec<Fields> {
        self.rows
    }
}

/// All pages of a listing.
pub fn pages<F, A>(read: F) -> Parts
where
    F: Fn(Option<String>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Part, Refusal>> + Send,
{
    let read = std::sync::Arc::new(read);
    let parts = stream::try_unfold(Some(None), move |cursor: Option<Option<String>>| {
        let read = read.clone();
        async move {
            let Some(cursor) = cursor else { return Ok(None) };
            let part = read(cursor).await?;
            Ok::<_, Refusal>(Some((part.rows, part.next.map(Some))))
        }
    });
    parts.boxed()
}

/// Rows that belong to others: each of `parents` has a stream of its own.
pub fn nested<P, F>(parents: Ids<P>, open: F) -> Parts
where
    P: Send + 'static,
    F: Fn(P) -> Parts + Send + 'static,
{
    let of_parent = move |parent: Result<P, Refusal>| match parent {
        Ok(parent) => open(parent),
        Err(refusal) => stream::iter([Err(refusal)]).boxed(),
    };
    parents.flat_map(of_parent).boxed()
}

/// A field of all rows of a listing.
pub fn ids<T: Send + 'static>(all: Parts, read: fn(&Fields) -> Option<T>) -> Ids<T> {
    let ids = all.flat_map(move |part| match part {
        Ok(rows) => stream::iter(rows.iter().filter_map(read).map(Ok).collect::<Vec<_>>()),
        Err(refusal) => stream::iter(vec![Err(refusal)]),
    });
    ids.boxed()
}

/// A field that is a text.
pub fn text_of(row: &Fields, name: &str) -> Option<String> {
    serde_json::from_str(row.get(name)?.get()).ok()
}

/// A field that is a number. Rows that cannot be read have it as text.
pub fn number_of(row: &Fields, name: &str) -> Option<u64> {
    row.get(name)?.get().trim_matches('"').parse().ok()
}

/// Something that is there no more, or never was, has no rows.
pub fn if_there<T>(found: Result<Json<T>, Refusal>) -> Result<Option<T>, Refusal> {
    match found {
        Ok(Json(found)) => Ok(Some(found)),
        Err(refusal) if is_absence(&refusal) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Whether a refusal means that nothing has the id: also one that nothing can have, or a name in place of an id.
pub fn is_absence(refusal: &Refusal) -> bool {
    matches!(refusal.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST | StatusCode::CONFLICT)
}

/// An object as its fields.
///
/// # Errors
/// When it has no JSON form.
pub fn fields<T: Serialize>(row: &T) -> Result<Fields, Refusal> {
    let text = serde_json::to_string(row).map_err(unshown)?;
    serde_json::from_str(&text).map_err(unshown)
}

fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>, Refusal> {
    serde_json::value::to_raw_value(value).map_err(unshown)
}

pub fn unshown(error: impl std::fmt::Display) -> Refusal {
    tracing::error!(%error, "a row cannot be shown");
    Refusal::new(Code::Internal, "a row cannot be shown; the server's log has the reason")
}

impl Table for Listing {
    fn info(&self) -> &'static TableInfo {
        self.info
    }

    fn scan(&self, scan: Scan) -> Rows {
        let place = |name: &&'static str| {
            let kind = self.info.column(name).map_or(ColumnKind::Text, |column| column.kind);
            let path = self.places.iter().find(|(column, _)| column == name).map(|(_, path)| path.to_vec());
            (kind, path.unwrap_or_else(|| vec![*name]))
        };
        let places: Vec<(ColumnKind, Vec<&'static str>)> = scan.columns.iter().map(place).collect();
        let parts = (self.open)(scan).map(move |part| {
            let rows = part.map_err(Refused)?;
            let cells = |row: &Fields| places.iter().map(|(kind, path)| cell(row, *kind, path)).collect();
            Ok(rows.iter().map(cells).collect())
        });
        parts.boxed()
    }
}

/// The cell of a column.
fn cell(row: &Fields, kind: ColumnKind, path: &[&'static str]) -> Value {
    let [name, inner @ ..] = path else { return Value::Null };
    let Some(raw) = row.get(*name) else { return Value::Null };
    if inner.is_empty() {
        return value(raw.get(), kind);
    }
    serde_json::from_str::<Fields>(raw.get()).map_or(Value::Null, |row| cell(&row, kind, inner))
}

/// JSON text as a cell.
pub fn value(text: &str, kind: ColumnKind) -> Value {
    if text == "null" {
        return Value::Null;
    }
    let string = || serde_json::from_str::<String>(text).ok();
    match kind {
        ColumnKind::Text => Value::Text(string().unwrap_or_else(|| text.to_owned())),
        ColumnKind::Json => Value::Text(text.to_owned()),
        ColumnKind::Integer => text.parse().map_or(Value::Null, Value::Integer),
        ColumnKind::Real => text.parse().map_or(Value::Null, Value::Real),
        ColumnKind::Flag => text.parse().map_or(Value::Null, Value::flag),
        ColumnKind::Time => {
            let time = string().and_then(|text| text.parse::<jiff::Timestamp>().ok());
            time.map_or(Value::Null, |time| Value::Integer(time.as_millisecond()))
        }
    }
}
