//! The tables of queries, one file per resource.

mod actions;
mod archived;
mod archived_events;
mod audit;
mod batches;
mod events;
mod everywhere;
mod hooks;
mod instances;
mod listing;
mod recurring;
mod retired;
mod runs;
mod workers;

use std::sync::Arc;

use segno_ledger::sql::{ColumnInfo, ColumnKind, Pushdown, Table, TableInfo, Tables};

use crate::access::{Caller, Need};
use crate::app::{Granted, Tenant};

/// All tables, by name.
pub static INFOS: &[&TableInfo] = &[
    &actions::ACTIONS,
    &everywhere::ALL_INSTANCES,
    &audit::AUDIT,
    &batches::BATCHES,
    &events::EVENTS,
    &hooks::HOOKS,
    &instances::INSTANCES,
    &batches::MEMBERS,
    &batches::PHASES,
    &workers::QUEUES,
    &recurring::RECURRING,
    &recurring::HISTORY,
    &runs::RUNS,
    &batches::STEPS,
    &runs::TASKS,
    &workers::WORKERS,
];

/// The tables as a caller sees them in a tenant. What a route of the API would refuse is refused when it is read.
pub fn all(tenant: &Tenant, granted: &Granted, caller: &Caller) -> Tables {
    let audit = caller.may(Need::Admin);
    let tables: [Arc<dyn Table>; 16] = [
        Arc::new(actions::actions(tenant)),
        Arc::new(everywhere::AllInstances(granted.clone())),
        Arc::new(audit::audit(tenant, audit)),
        Arc::new(batches::batches(tenant)),
        Arc::new(events::Events(tenant.clone())),
        Arc::new(hooks::hooks(tenant)),
        Arc::new(instances::Instances(tenant.clone())),
        Arc::new(batches::members(tenant)),
        Arc::new(batches::phases(tenant)),
        Arc::new(workers::queues(tenant)),
        Arc::new(recurring::recurring(tenant)),
        Arc::new(recurring::history(tenant)),
        Arc::new(runs::Runs(tenant.clone())),
        Arc::new(batches::steps(tenant)),
        Arc::new(runs::Tasks(tenant.clone())),
        Arc::new(workers::workers(tenant)),
    ];
    Tables::new(tables)
}

/// A column whose conditions are applied to rows as they are read.
const fn column(name: &'static str, kind: ColumnKind, doc: &'static str) -> ColumnInfo {
    ColumnInfo { name, kind, pushdown: Pushdown::No, doc }
}

/// A column whose conditions the table applies itself.
const fn pushed(name: &'static str, kind: ColumnKind, pushdown: Pushdown, doc: &'static str) -> ColumnInfo {
    ColumnInfo { name, kind, pushdown, doc }
}

/// The column of tables whose rows may be in the archive.
const ARCHIVED: ColumnInfo =
    column("archived", ColumnKind::Flag, "Whether it is in the archive and no longer in the store");

/// The column with the reason of rows that cannot be read.
const UNREADABLE: ColumnInfo =
    column("unreadable", ColumnKind::Text, "Why the stored row cannot be read; the others are NULL then");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_sorted_names_and_keys_of_their_own() {
        let names: Vec<&str> = INFOS.iter().map(|info| info.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for info in INFOS {
            let known = |name: &&&str| info.column(name).is_none();
            assert_eq!(info.key.iter().find(known), None, "{}", info.name);
            assert_eq!(info.newest_first.iter().find(known), None, "{}", info.name);
            let mut columns: Vec<&str> = info.columns.iter().map(|column| column.name).collect();
            columns.sort_unstable();
            columns.dedup();
            assert_eq!(columns.len(), info.columns.len(), "{}", info.name);
        }
    }
}
