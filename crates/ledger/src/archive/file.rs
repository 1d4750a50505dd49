//! Names of files. A name follows from the bytes, and says which creation times are in the file, so that readers open only what
//! they need.

use std::fmt;

use bytes::Bytes;
use object_store::path::Path;

use super::kind::{ENDED_AT, INCARNATION, integer};
use crate::manifest::sha256;
use crate::tables::Cell;

/// Digits of a time in Unix milliseconds: enough until the year 2286.
const TIME_DIGITS: usize = 13;

/// Hexadecimal digits of the digest.
const DIGEST_DIGITS: usize = 32;

/// The name of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// The day (UTC) on which its rows ended, `YYYY-MM-DD`.
    pub day: String,
    /// The smallest incarnation in it.
    pub from_ms: i64,
    /// The largest incarnation in it.
    pub to_ms: i64,
    /// The beginning of the SHA-256 of its bytes.
    pub digest: String,
}

/// A file of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Where it is.
    pub path: Path,
    /// Its name.
    pub name: FileName,
    /// Its size.
    pub bytes: u64,
}

impl FileName {
    /// The name of some rows, all of which ended on one day. There is at least one.
    pub(super) fn of(rows: &[Vec<Cell>], bytes: &Bytes) -> Self {
        let incarnations = rows.iter().map(|row| integer(row, INCARNATION));
        let ended_at = rows.first().map_or(0, |row| integer(row, ENDED_AT));
        FileName {
            day: day_of(ended_at),
            from_ms: incarnations.clone().min().unwrap_or(0),
            to_ms: incarnations.max().unwrap_or(0),
            digest: digest(bytes),
        }
    }

    /// The name of a path below the folder of a kind; `None` for what is no file of the archive.
    pub(super) fn parse(day: &str, file: &str) -> Option<Self> {
        let day = day.strip_prefix("day=").filter(|day| day.parse::<jiff::civil::Date>().is_ok())?;
        let mut parts = file.strip_suffix(".parquet")?.split('-');
        let mut time = || parts.next().filter(|part| part.len() == TIME_DIGITS)?.parse().ok();
        let (from_ms, to_ms) = (time()?, time()?);
        let digest = parts.next().filter(|part| part.len() == DIGEST_DIGITS && parts.next().is_none())?;
        let is_hexadecimal = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hexadecimal.then(|| FileName { day: day.to_owned(), from_ms, to_ms, digest: digest.to_owned() })
    }

    /// Whether the bytes are those that it was named after.
    pub(super) fn fits(&self, bytes: &Bytes) -> bool {
        digest(bytes) == self.digest
    }
}

/// As below the folder of its kind.
impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileName { day, from_ms, to_ms, digest } = self;
        write!(f, "day={day}/{from_ms:0TIME_DIGITS$}-{to_ms:0TIME_DIGITS$}-{digest}.parquet")
    }
}

fn digest(bytes: &Bytes) -> String {
    let mut digest = sha256(bytes);
    digest.truncate(DIGEST_DIGITS);
    digest
}

/// The day of a time (UTC), as folders have it. Times before 1970 count as its first day.
pub fn day_of(at_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(at_ms.max(0)).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_others_are_passed_over() {
        let row = |incarnation, ended_at| {
            let text = |text: &str| Cell::Text(text.into());
            let [one, two] = [Cell::Integer(incarnation), Cell::Integer(1)];
            vec![text("acme"), text("prod"), text("a"), one, two, Cell::Integer(ended_at)]
        };
        let rows = [row(1_700_000_000_000, 1_700_092_800_000), row(5, 1_700_092_900_000)];
        let bytes = Bytes::from_static(b"bytes");
        let name = FileName::of(&rows, &bytes);
        assert_eq!((name.day.as_str(), name.from_ms, name.to_ms), ("2023-11-16", 5, 1_700_000_000_000));
        let shown = name.to_string();
        let (day, file) = shown.split_once('/').unwrap();
        assert_eq!(FileName::parse(day, file), Some(name.clone()));
        assert!(name.fits(&bytes) && !name.fits(&Bytes::from_static(b"other")));
        for (day, file) in [
            ("day=2023-02-31", file),
            ("2023-11-16", file),
            (day, "x.parquet"),
            (day, &file.replace(".parquet", ".tmp")),
            (day, &file.replace(".parquet", "-1.parquet")),
            (day, &file.replacen('0', "", 1)),
        ] {
            assert_eq!(FileName::parse(day, file), None, "{day}/{file}");
        }
    }
}
