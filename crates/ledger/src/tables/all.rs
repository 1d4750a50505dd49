//! All tables side by side: rows of all tables, changes of all tables, and visitors for code that
//! treats every table alike, such as writers and readers of files.

use super::{
    BackfillChunkRow, BackfillRow, DepRow, IdempotencyKeyRow, OutboxRow, PartitionRow, PoolRow, Row,
    RunKeyConflictRow, RunKeyRow, RunRow, ScheduleDefinitionRow, ScheduleStateRow, ScheduleTickRow,
    SensorEvalRow, SensorStateRow, TaskRow, TimerRow,
};

/// What changed in a table: rows that are new or different, and keys of rows that are gone. Both
/// are sorted by key, and no key is in both.
#[derive(Clone, Debug, PartialEq)]
pub struct TableChanges<R: Row> {
    /// Rows in their new version.
    pub upserted: Vec<R>,
    /// Keys of rows that no longer exist.
    pub deleted: Vec<R::Key>,
}

impl<R: Row> Default for TableChanges<R> {
    fn default() -> Self {
        TableChanges { upserted: Vec::new(), deleted: Vec::new() }
    }
}

impl<R: Row> TableChanges<R> {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.upserted.is_empty() && self.deleted.is_empty()
    }
}

macro_rules! tables {
    ($($(#[$doc:meta])* $field:ident: $row:ident,)+) => {
        /// Rows of all tables.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Rows { $($(#[$doc])* pub $field: Vec<$row>,)+ }

        /// Changes of all tables.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Changes { $($(#[$doc])* pub $field: TableChanges<$row>,)+ }

        impl Rows {
            /// Calls the visitor once for each table, in a fixed order; it may take the rows or
            /// fill them in.
            pub fn visit<V: VisitRows>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
                $(visitor.rows::<$row>(&mut self.$field)?;)+
                Ok(())
            }

            /// Sorts every table by its key.
            pub fn sort(&mut self) {
                $(self.$field.sort_by_cached_key(Row::key);)+
            }

            /// Adds the rows of another set.
            pub fn append(&mut self, mut other: Rows) {
                $(self.$field.append(&mut other.$field);)+
            }

            /// How many rows there are in all tables.
            pub fn count(&self) -> usize {
                0 $(+ self.$field.len())+
            }
        }

        impl Changes {
            /// Calls the visitor once for each table, in a fixed order.
            pub fn visit<V: VisitChanges>(&self, visitor: &mut V) -> Result<(), V::Error> {
                $(visitor.changes::<$row>(&self.$field)?;)+
                Ok(())
            }

            /// Whether nothing changed.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$field.is_empty())+
            }
        }

        /// Calls the visitor once for each table, in a fixed order.
        pub fn visit_tables<V: VisitTables>(visitor: &mut V) {
            $(visitor.table::<$row>();)+
        }
    };
}

tables! {
    /// Runs.
    runs: RunRow,
    /// Tasks.
    tasks: TaskRow,
    /// Edges between tasks.
    dep_satisfaction: DepRow,
    /// Timers.
    timers: TimerRow,
    /// Dispatches.
    dispatch_outbox: OutboxRow,
    /// Definitions of schedules.
    schedule_definitions: ScheduleDefinitionRow,
    /// How far schedules are.
    schedule_state: ScheduleStateRow,
    /// Ticks of schedules.
    schedule_ticks: ScheduleTickRow,
    /// How far sensors are.
    sensor_state: SensorStateRow,
    /// Evaluations of sensors.
    sensor_evals: SensorEvalRow,
    /// Runs by run key.
    run_key_index: RunKeyRow,
    /// Run keys that were used for something else.
    run_key_conflicts: RunKeyConflictRow,
    /// Keys of applied events.
    idempotency_keys: IdempotencyKeyRow,
    /// Backfills.
    backfills: BackfillRow,
    /// Parts of backfills.
    backfill_chunks: BackfillChunkRow,
    /// Partitions of assets.
    partition_status: PartitionRow,
    /// Concurrency pools.
    pools: PoolRow,
}

/// Code that does the same with the rows of every table.
pub trait VisitRows {
    /// Why it stops.
    type Error;
    /// One table.
    fn rows<R: Row>(&mut self, rows: &mut Vec<R>) -> Result<(), Self::Error>;
}

/// Code that does the same with the changes of every table.
pub trait VisitChanges {
    /// Why it stops.
    type Error;
    /// One table.
    fn changes<R: Row>(&mut self, changes: &TableChanges<R>) -> Result<(), Self::Error>;
}

/// Code that does the same with every kind of row.
pub trait VisitTables {
    /// One table.
    fn table<R: Row>(&mut self);
}
