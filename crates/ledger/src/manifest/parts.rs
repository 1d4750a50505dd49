//! Parts of a manifest that do not change with every fold, so that a manifest does not grow with
//! history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Part, Piece};

/// The merged part of the active rows: pieces by table, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// Pieces by table, oldest first.
    pub tables: BTreeMap<String, Vec<Piece>>,
}

/// All months that have day partitions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The months, oldest first.
    pub months: Vec<MonthRef>,
}

/// Where the partitions of a month are listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MonthRef {
    /// `YYYY-MM`.
    pub month: String,
    /// The list, a [`Month`].
    #[serde(flatten)]
    pub part: Part,
}

/// The day partitions of a month.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Month {
    /// Pieces by day (`YYYY-MM-DD`) and table, oldest first.
    pub days: BTreeMap<String, BTreeMap<String, Vec<Piece>>>,
}
