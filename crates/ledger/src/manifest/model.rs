//! The stored form of a manifest. Names are never reused; fields are only added, and added fields
//! have defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::Ulid;

/// The version of the form. A reader refuses a larger one, so an old writer cannot drop what it
/// does not know.
pub const SCHEMA_VERSION: u32 = 1;

/// One state of the tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its number.
    pub manifest_id: u64,
    /// The epoch of the compactor that wrote it; it never falls.
    pub epoch: u64,
    /// The manifest before it.
    pub previous_manifest_path: Option<String>,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// A unique id of this state, in the order of publication.
    pub revision_ulid: Ulid,
    /// When it was written, in Unix milliseconds.
    pub published_at: u64,
    /// How far the log is folded.
    pub watermarks: Watermarks,
    /// The merged part of the active rows.
    pub base_snapshot: Option<BaseSnapshot>,
    /// What was folded since, oldest first.
    pub l0_deltas: Vec<Delta>,
    /// How many deltas there are.
    pub l0_count: usize,
    /// When deltas are merged.
    pub l0_limits: L0Limits,
    /// The day partitions of finished runs and of joined events.
    pub history: Option<Part>,
    /// The newest day whose partition retention has removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired_through: Option<String>,
    /// Objects of the log that are folded and not joined yet.
    pub log: LogState,
}

/// How far the log is folded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Watermarks {
    /// The newest event that was committed to the log when it was folded.
    pub last_committed_event_id: Option<Ulid>,
    /// The newest event that readers see.
    pub last_visible_event_id: Option<Ulid>,
    /// The newest event that was folded. Older ones that arrive later are folded too.
    pub events_processed_through: Option<Ulid>,
    /// The last object that was folded.
    pub last_processed_file: Option<String>,
    /// When it was folded, in Unix milliseconds.
    pub last_processed_at: Option<u64>,
}

/// When deltas are merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct L0Limits {
    /// By their number.
    pub max_count: usize,
    /// By their rows.
    pub max_rows: u64,
    /// By the age of the oldest.
    pub max_age_ms: u64,
}

/// An object that has a part of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its path below `manifests/orchestration_parts/`.
    pub path: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// The merged part of the active rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseSnapshot {
    /// Its id: the number of the manifest that first named it.
    pub snapshot_id: String,
    /// When it was written, in Unix milliseconds.
    pub published_at: u64,
    /// The list of its files, [`super::Base`].
    #[serde(flatten)]
    pub part: Part,
}

/// The changes of one fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// Its id: the number of the manifest that first named it.
    pub delta_id: String,
    /// When it was written, in Unix milliseconds.
    pub created_at: u64,
    /// Which events it has.
    pub event_range: EventRange,
    /// Rows in their new version, by table.
    pub tables: BTreeMap<String, FileRef>,
    /// How many, by table.
    pub row_counts: BTreeMap<String, u64>,
    /// Tombstones of rows that are gone, by table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deletions: BTreeMap<String, FileRef>,
    /// How many tombstones, in all tables.
    #[serde(default)]
    pub deletion_count: u64,
}

/// Which events a delta has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRange {
    /// The oldest.
    pub from: Option<Ulid>,
    /// The newest.
    pub to: Option<Ulid>,
    /// How many.
    pub count: u64,
}

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// Its path below `state/orchestration/`; for events the name below
    /// `ledger/orchestration_segments/`.
    pub path: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// How many rows or tombstones.
    pub rows: u64,
    /// The smallest value of the first key column after the scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_key: Option<String>,
    /// The largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_key: Option<String>,
}

/// The files of one step of a table: rows, and tombstones of rows in older pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The newest manifest whose changes it has: of two pieces with one key the larger counts.
    pub sequence: u64,
    /// How often it was merged.
    pub level: u32,
    /// Rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<FileRef>,
    /// Tombstones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletions: Option<FileRef>,
}

impl Piece {
    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &FileRef> {
        self.rows.iter().chain(self.deletions.iter())
    }
}

/// What the compactor knows of the folder of the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogState {
    /// First event ids of objects that are folded and not joined yet.
    pub folded: Vec<Ulid>,
    /// First event ids of objects that are joined; they are about to be deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<Ulid>,
}
