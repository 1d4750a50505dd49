//! The archive: what retention has removed from the store.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the archive of a tenant has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArchiveSummary {
    /// Whether this server has an archive (`archive.enabled`).
    pub enabled: bool,
    /// Kinds of rows, by name.
    pub kinds: Vec<ArchivedKind>,
}

/// The files of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArchivedKind {
    /// Its name, as in paths.
    #[schema(example = "instances")]
    pub kind: String,
    /// How many files it has.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The first day (UTC) on which something ended that is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_day: Option<String>,
    /// The last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_day: Option<String>,
}

/// What ids in the archive are ids of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArchivedGroup {
    /// Instances, with their events.
    Instances,
    /// Actions.
    Actions,
    /// Recurring actions, with their histories.
    Recurring,
    /// Entries of the audit log.
    Audit,
    /// Batches of runbooks, with their members, phases and steps.
    Batches,
}

impl ArchivedGroup {
    /// All of them.
    pub const ALL: [ArchivedGroup; 5] = [
        ArchivedGroup::Instances,
        ArchivedGroup::Actions,
        ArchivedGroup::Recurring,
        ArchivedGroup::Audit,
        ArchivedGroup::Batches,
    ];

    /// Its name, as in paths.
    pub fn as_str(self) -> &'static str {
        match self {
            ArchivedGroup::Instances => "instances",
            ArchivedGroup::Actions => "actions",
            ArchivedGroup::Recurring => "recurring",
            ArchivedGroup::Audit => "audit",
            ArchivedGroup::Batches => "batches",
        }
    }
}

/// What an erasure removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Erased {
    /// Rows that are gone; 0 where whole files were removed unread.
    pub rows: u64,
    /// Files that were rewritten or removed.
    pub files: u64,
    /// Of the archive of a tenant: what the caller may not erase, so that it is still there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<ArchivedGroup>,
}
