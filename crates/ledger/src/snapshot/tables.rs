//! All tables by name, for code that does not know the types of their rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::columnar::Layout;
use crate::log::{EVENTS, events_layout};
use crate::tables::{Row, VisitTables, visit_tables};

/// The layouts of a table.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) rows: Layout,
    pub(crate) tombstones: Layout,
    /// The column that names the run, in tables whose rows leave with their run.
    pub(crate) run_column: Option<usize>,
}

impl Spec {
    /// Whether the run is the first column of the key after tenant and workspace.
    pub(crate) fn is_keyed_by_run(&self) -> bool {
        self.run_column.is_some() && self.run_column == self.rows.key().get(2).copied()
    }
}

/// All tables.
pub(crate) struct Tables;

/// Joined events have no tombstones.
static EVENTS_SPEC: LazyLock<Spec> =
    LazyLock::new(|| Spec { rows: events_layout(), tombstones: events_layout(), run_column: None });

static TABLES: LazyLock<BTreeMap<&'static str, Spec>> = LazyLock::new(|| {
    struct Collect(BTreeMap<&'static str, Spec>);
    impl VisitTables for Collect {
        fn table<R: Row>(&mut self) {
            let rows = Layout::of::<R>();
            let run_column = rows.position("run_id");
            let spec = Spec { rows, tombstones: Layout::tombstones_of::<R>(), run_column };
            self.0.insert(R::TABLE, spec);
        }
    }
    let mut collect = Collect(BTreeMap::new());
    visit_tables(&mut collect);
    collect.0
});

impl Tables {
    /// The table with a name, joined events included; files of tables that this version does not
    /// know are left alone.
    pub(crate) fn find(table: &str) -> Option<&'static Spec> {
        if table == EVENTS { Some(&EVENTS_SPEC) } else { TABLES.get(table) }
    }

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static Spec)> {
        TABLES.iter().map(|(table, spec)| (*table, spec))
    }
}
