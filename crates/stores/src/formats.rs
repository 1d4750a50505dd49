//! The versions of all that stores write.

use serde::Serialize;

use crate::backup;

/// Versions of formats. A program opens what is of its own version or older, and refuses what is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Formats {
    /// Of the files of an embedded store.
    pub embedded: u32,
    /// Of the schema in PostgreSQL: its number of migrations.
    pub postgres: usize,
    /// Of backup files.
    pub backup: u32,
}

impl Formats {
    /// What this program writes.
    pub const CURRENT: Formats = Formats {
        embedded: segno_embedded::FORMAT_VERSION,
        postgres: segno_postgres::SCHEMA_VERSION,
        backup: backup::FORMAT_VERSION,
    };
}
