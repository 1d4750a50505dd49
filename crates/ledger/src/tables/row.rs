//! What every row of every table can do, and the macros that derive it from the list of its
//! columns.

use std::fmt::Debug;
use std::sync::Arc;

use super::{Cell, Column, UnexpectedCell};
use crate::ids::Ulid;

/// A row of one table.
pub trait Row: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The values of the key columns, in the order of [`Row::KEY`]: an array of texts.
    type Key: Ord
        + Clone
        + Debug
        + Send
        + Sync
        + AsRef<[Arc<str>]>
        + TryFrom<Vec<Arc<str>>, Error = Vec<Arc<str>>>
        + 'static;
    /// The name of the table, as in its path.
    const TABLE: &'static str;
    /// All columns, `tenant_id` and `workspace_id` first.
    const COLUMNS: &'static [Column];
    /// The names of the key columns, `tenant_id` and `workspace_id` first. All of them are texts.
    const KEY: &'static [&'static str];

    /// Its key.
    fn key(&self) -> Self::Key;
    /// The id of the event that last changed it; of two versions the later one counts.
    fn row_version(&self) -> Ulid;
    /// Which of two rows with the same `row_version` counts: the higher one, and the later written
    /// of equals.
    fn tie_rank(&self) -> u32 {
        0
    }
    /// Its cells, one for each of [`Row::COLUMNS`], in that order.
    fn to_cells(&self) -> Vec<Cell>;
    /// The row that has these cells, one for each of [`Row::COLUMNS`].
    fn from_cells(cells: Vec<Cell>) -> Result<Self, UnexpectedCell>;
}

/// The seed's rule for two versions of one row: the larger `row_version` counts; of equals the one
/// with the higher rank; of equals again the incoming one, which was written later.
pub fn merge_rows<R: Row>(existing: R, incoming: R) -> R {
    let order = |row: &R| (row.row_version(), row.tie_rank());
    if order(&incoming) >= order(&existing) { incoming } else { existing }
}

/// Declares the struct of a row and derives [`Row`] from its fields, each of which is a column.
macro_rules! row {
    (
        $(#[$doc:meta])*
        $name:ident in $table:literal
        key $keys:literal [$($key:ident),+ $(,)?]
        version $version:ident
        $(rank $rank:expr;)?
        { $($(#[$column_doc:meta])* $column:ident: $kind:ty,)+ }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[$column_doc])* pub $column: $kind,)+ }

        impl $crate::tables::Row for $name {
            type Key = [std::sync::Arc<str>; $keys];
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [$crate::tables::Column] = &[$($crate::tables::Column {
                name: stringify!($column),
                kind: <$kind as $crate::tables::Value>::KIND,
                nullable: <$kind as $crate::tables::Value>::NULLABLE,
            },)+];
            const KEY: &'static [&'static str] = &[$(stringify!($key),)+];

            fn key(&self) -> Self::Key {
                [$(std::sync::Arc::clone(&self.$key),)+]
            }

            fn row_version(&self) -> $crate::ids::Ulid {
                self.$version
            }

            $(fn tie_rank(&self) -> u32 {
                let rank: fn(&Self) -> u32 = $rank;
                rank(self)
            })?

            fn to_cells(&self) -> Vec<$crate::tables::Cell> {
                vec![$($crate::tables::Value::to_cell(&self.$column),)+]
            }

            fn from_cells(
                cells: Vec<$crate::tables::Cell>,
            ) -> Result<Self, $crate::tables::UnexpectedCell> {
                let mut cells = cells.into_iter();
                Ok($name { $($column: {
                    let cell = cells.next().unwrap_or($crate::tables::Cell::Null);
                    $crate::tables::Value::from_cell(cell).map_err(|problem| {
                        $crate::tables::UnexpectedCell { column: stringify!($column), problem }
                    })?
                },)+ })
            }
        }
    };
}

/// Declares an enum of a text column: each value with its text, which is stored and never changes.
macro_rules! text_enum {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }
    ) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name { $($(#[$value_doc])* #[serde(rename = $text)] $value,)+ }

        impl $name {
            /// All values.
            pub const ALL: &'static [$name] = &[$($name::$value,)+];

            /// Its text in the tables.
            pub const fn text(self) -> &'static str {
                match self { $($name::$value => $text,)+ }
            }
        }

        impl $crate::tables::Value for $name {
            const KIND: $crate::tables::Kind = $crate::tables::Kind::Text;

            fn to_cell(&self) -> $crate::tables::Cell {
                static TEXTS: std::sync::LazyLock<Vec<std::sync::Arc<str>>> =
                    std::sync::LazyLock::new(|| {
                        $name::ALL.iter().map(|value| value.text().into()).collect()
                    });
                $crate::tables::Cell::Text(std::sync::Arc::clone(&TEXTS[*self as usize]))
            }

            fn from_cell(cell: $crate::tables::Cell) -> Result<Self, String> {
                let text: std::sync::Arc<str> = $crate::tables::Value::from_cell(cell)?;
                let value = $name::ALL.iter().find(|value| value.text() == &*text);
                value.copied().ok_or_else(|| format!("{text:?} is none of its values"))
            }
        }
    };
}

pub(crate) use {row, text_enum};
