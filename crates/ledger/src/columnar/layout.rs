//! What a file of a table looks like: its columns, its key, and its Parquet schema.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr};

use crate::tables::{Cell, Column, Kind, Row};

/// The layout of the files of one table, or of the tombstones of one table.
#[derive(Clone, Debug)]
pub struct Layout {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    table: &'static str,
    columns: Vec<Column>,
    key: Vec<usize>,
    schema: SchemaDescPtr,
}

/// The column that every table has last: the event that last changed the row.
const VERSION: Column = Column { name: "row_version", kind: Kind::Text, nullable: false };

impl Layout {
    /// The layout of the rows of a table.
    pub fn of<R: Row>() -> Self {
        Layout::new(R::TABLE, R::COLUMNS.to_vec(), R::KEY)
    }

    /// The layout of the tombstones of a table: its key, and the newest event that was folded when
    /// the row went.
    pub fn tombstones_of<R: Row>() -> Self {
        let is_key = |column: &&Column| R::KEY.contains(&column.name);
        let mut columns: Vec<Column> = R::COLUMNS.iter().filter(is_key).copied().collect();
        columns.push(VERSION);
        Layout::new(R::TABLE, columns, R::KEY)
    }

    /// A layout from columns and the names of those that are the key, all of which exist.
    pub fn new(table: &'static str, columns: Vec<Column>, key: &[&str]) -> Self {
        let position = |name: &&str| columns.iter().position(|column| column.name == *name);
        let key = key.iter().filter_map(position).collect();
        let schema = SchemaDescPtr::new(SchemaDescriptor::new(schema_of(table, &columns)));
        Layout { inner: Arc::new(Inner { table, columns, key, schema }) }
    }

    /// The name of the table.
    pub fn table(&self) -> &'static str {
        self.inner.table
    }

    /// Its columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.inner.columns
    }

    /// The positions of the key columns, in the order of the key.
    pub fn key(&self) -> &[usize] {
        &self.inner.key
    }

    /// The position of a column.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.name == name)
    }

    /// The texts of the key of a row; cells that are not texts count as empty.
    pub fn key_of<'a>(&self, row: &'a [Cell]) -> Vec<&'a str> {
        let text = |at: &usize| match row.get(*at) {
            Some(Cell::Text(text)) => text.as_ref(),
            _ => "",
        };
        self.key().iter().map(text).collect()
    }

    pub(super) fn schema(&self) -> &SchemaDescPtr {
        &self.inner.schema
    }
}

fn schema_of(table: &str, columns: &[Column]) -> TypePtr {
    let fields = columns.iter().map(|column| TypePtr::new(field(column))).collect();
    let message = Type::group_type_builder(table).with_fields(fields).build();
    TypePtr::new(message.expect("a list of primitive fields is a schema"))
}

/// Times stay plain 64-bit integers of milliseconds, as the contract has them.
fn field(column: &Column) -> Type {
    let (physical, logical) = match column.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integer => (Physical::INT64, None),
        Kind::Count => (Physical::INT32, Some(LogicalType::integer(32, false))),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
        .expect("the logical type fits the physical type")
}
