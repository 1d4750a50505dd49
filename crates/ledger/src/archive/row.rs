//! What every row of the archive has, and the macro that derives it from its columns.

use crate::tables::{Cell, Column, UnexpectedCell};

/// A row of one kind.
pub trait ArchivedRow: Clone + Send + Sync + 'static {
    /// All columns. The first six are the same for all kinds: `tenant_id`, `workspace_id`, `id`, `incarnation`, `revision` and
    /// `ended_at`.
    const COLUMNS: &'static [Column];

    /// Its cells, one for each column.
    fn to_cells(&self) -> Vec<Cell>;

    /// The row that has these cells.
    ///
    /// # Errors
    /// When a cell does not fit its column.
    fn from_cells(cells: Vec<Cell>) -> Result<Self, UnexpectedCell>;
}

/// Declares the struct of a row and derives [`ArchivedRow`] from its fields, each of which is a column.
macro_rules! archived_row {
    ($(#[$doc:meta])* $name:ident { $($(#[$column_doc:meta])* $column:ident: $kind:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// The tenant.
            pub tenant_id: std::sync::Arc<str>,
            /// The workspace: our namespace.
            pub workspace_id: std::sync::Arc<str>,
            /// The id in the tenant: what is looked up and erased by.
            pub id: std::sync::Arc<str>,
            /// When what has the id was created, in Unix milliseconds: tells two of the same id apart.
            pub incarnation: i64,
            /// Of rows with one key, the one with the largest revision counts.
            pub revision: i64,
            /// When it ended, in Unix milliseconds: the day of the folder.
            pub ended_at: i64,
            $($(#[$column_doc])* pub $column: $kind,)+
        }

        impl $crate::archive::row::ArchivedRow for $name {
            const COLUMNS: &'static [$crate::tables::Column] = &[
                $crate::archive::row::required("tenant_id", $crate::tables::Kind::Text),
                $crate::archive::row::required("workspace_id", $crate::tables::Kind::Text),
                $crate::archive::row::required("id", $crate::tables::Kind::Text),
                $crate::archive::row::required("incarnation", $crate::tables::Kind::Integer),
                $crate::archive::row::required("revision", $crate::tables::Kind::Integer),
                $crate::archive::row::required("ended_at", $crate::tables::Kind::Integer),
                $($crate::tables::Column {
                    name: stringify!($column),
                    kind: <$kind as $crate::tables::Value>::KIND,
                    nullable: <$kind as $crate::tables::Value>::NULLABLE,
                },)+
            ];

            fn to_cells(&self) -> Vec<$crate::tables::Cell> {
                use $crate::tables::Value as _;
                vec![
                    self.tenant_id.to_cell(),
                    self.workspace_id.to_cell(),
                    self.id.to_cell(),
                    self.incarnation.to_cell(),
                    self.revision.to_cell(),
                    self.ended_at.to_cell(),
                    $($crate::tables::Value::to_cell(&self.$column),)+
                ]
            }

            fn from_cells(
                cells: Vec<$crate::tables::Cell>,
            ) -> Result<Self, $crate::tables::UnexpectedCell> {
                let mut cells = cells.into_iter();
                let mut next = || cells.next().unwrap_or($crate::tables::Cell::Null);
                Ok($name {
                    tenant_id: $crate::archive::row::value("tenant_id", next())?,
                    workspace_id: $crate::archive::row::value("workspace_id", next())?,
                    id: $crate::archive::row::value("id", next())?,
                    incarnation: $crate::archive::row::value("incarnation", next())?,
                    revision: $crate::archive::row::value("revision", next())?,
                    ended_at: $crate::archive::row::value("ended_at", next())?,
                    $($column: $crate::archive::row::value(stringify!($column), next())?,)+
                })
            }
        }
    };
}

pub(super) use archived_row;

/// A column that every row has a value for.
pub(super) const fn required(name: &'static str, kind: crate::tables::Kind) -> Column {
    Column { name, kind, nullable: false }
}

/// The value of a cell.
pub(super) fn value<T: crate::tables::Value>(column: &'static str, cell: Cell) -> Result<T, UnexpectedCell> {
    T::from_cell(cell).map_err(|problem| UnexpectedCell { column, problem })
}
