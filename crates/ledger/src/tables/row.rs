//! What every row of every table can do.

use super::{Cell, Column, UnexpectedCell};

/// A row of one table.
pub trait Row: Clone + PartialEq + Send + Sync + 'static {
    /// The key columns, in their order.
    type Key: Ord + Clone + Send + Sync;
    /// The name of the table, as in its path.
    const TABLE: &'static str;
    /// All columns, `tenant_id` and `workspace_id` first.
    const COLUMNS: &'static [Column];

    /// Its key.
    fn key(&self) -> Self::Key;
    /// The id of the event that last changed it; of two versions the later one counts.
    fn row_version(&self) -> &str;
    /// Its cells, one for each of [`Row::COLUMNS`], in that order.
    fn to_cells(&self) -> Vec<Cell>;
    /// The row that has these cells, one for each of [`Row::COLUMNS`].
    fn from_cells(cells: Vec<Cell>) -> Result<Self, UnexpectedCell>;
}
