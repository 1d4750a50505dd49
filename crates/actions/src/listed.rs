//! Rows of listings: what is stored, or the id of a record that cannot be read.
//!
//! One damaged record must not hide all others, nor be hidden itself: it is listed by its id, which is enough to delete it.

use std::fmt::Display;

/// A row of a listing.
#[derive(Debug, Clone, PartialEq)]
pub enum Listed<T> {
    /// What is stored.
    Readable(T),
    /// A record that cannot be read.
    Unreadable(Unreadable),
}

/// A record that cannot be read. One that does not decode can be deleted by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its id, without namespace and tenant.
    pub id: String,
    /// Why it cannot be read.
    pub reason: String,
}

impl<T> Listed<T> {
    /// What came of reading the record of an id.
    pub(crate) fn of<E: Display>(read: Result<T, E>, id: &str) -> Self {
        match read {
            Ok(value) => Listed::Readable(value),
            Err(error) => Listed::Unreadable(Unreadable { id: id.to_owned(), reason: error.to_string() }),
        }
    }

    /// The same row in another form.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Listed<U> {
        match self {
            Listed::Readable(value) => Listed::Readable(change(value)),
            Listed::Unreadable(row) => Listed::Unreadable(row),
        }
    }

    /// The same row, read further, which may fail too.
    pub fn and_then<U>(self, read: impl FnOnce(T) -> Listed<U>) -> Listed<U> {
        match self {
            Listed::Readable(value) => read(value),
            Listed::Unreadable(row) => Listed::Unreadable(row),
        }
    }

    /// What is stored, if it can be read.
    pub fn readable(self) -> Option<T> {
        match self {
            Listed::Readable(value) => Some(value),
            Listed::Unreadable(_) => None,
        }
    }

    /// The rows that can be read, and those that cannot, each in their order.
    pub fn split(rows: Vec<Self>) -> (Vec<T>, Vec<Unreadable>) {
        let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
        for row in rows {
            match row {
                Listed::Readable(value) => readable.push(value),
                Listed::Unreadable(row) => unreadable.push(row),
            }
        }
        (readable, unreadable)
    }
}
