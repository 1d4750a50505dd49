//! One cell of a row.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

/// A cell, as SQLite knows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A whole number; also a flag (0 or 1) and, from a table, a time in Unix milliseconds.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes that a query made.
    Blob(Vec<u8>),
}

impl Value {
    /// A text, or nothing.
    pub fn text(text: Option<impl Into<String>>) -> Self {
        text.map_or(Value::Null, |text| Value::Text(text.into()))
    }

    /// A number, or nothing. Numbers beyond SQLite's range become the largest one.
    pub fn integer(number: Option<u64>) -> Self {
        number.map_or(Value::Null, |number| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    /// A flag.
    pub fn flag(flag: bool) -> Self {
        Value::Integer(i64::from(flag))
    }

    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        match self {
            Value::Null => 1,
            Value::Integer(_) | Value::Real(_) => 8,
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
        }
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
