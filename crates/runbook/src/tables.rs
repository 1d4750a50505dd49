//! The seed's tables, described for whoever shows records as tables: which records are the rows, and
//! where in them each column is. Nothing here knows how they are shown.
//!
//! [`fixed_tables`] are there in every store; [`data_tables`] has one for each version of a runbook.

use std::collections::{BTreeMap, BTreeSet};

use segno::store::{ListRecords, ProviderError, Record, Records};
use segno_actions::schedule::Zones;
use sha2::{Digest, Sha256};

use crate::definition::{BatchTime, Definition};
use crate::drive::{HEADS, RUNBOOKS, RunbookRow};
use crate::rows::Table;
use crate::template::{Provider, uses};
use crate::yaml::parse_published;

/// Longest name of a table in bytes, which is what PostgreSQL keeps.
pub const MAX_TABLE_NAME_BYTES: usize = 63;

/// Records that are read at once; a version has up to 1 MiB.
const VERSIONS_PER_PAGE: usize = 20;
const HEADS_PER_PAGE: usize = 500;

/// A table: the records of a kind as rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLayout {
    /// Its name.
    pub name: String,
    /// Kind of the records that are its rows.
    pub kind: &'static str,
    /// The columns.
    pub columns: Vec<ColumnLayout>,
    /// Only members of batches that follow this version.
    pub version: Option<VersionFilter>,
}

/// Batches that follow a version of a runbook. Several runbooks share a table if their names differ
/// only in letter case and signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionFilter {
    /// Names of the runbooks.
    pub runbooks: Vec<String>,
    /// The version.
    pub version: u32,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Its name.
    pub name: String,
    /// Where its value is.
    pub place: ColumnPlace,
    /// Its type.
    pub kind: ColumnKind,
    /// What rows have that leave it out, as text; nothing without it.
    pub absent: Option<&'static str>,
}

/// Where the value of a column is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPlace {
    /// The first part of the record's id.
    Namespace,
    /// The second.
    Tenant,
    /// In the row, by the names of fields from the outermost.
    Row(Vec<String>),
    /// In the row of its batch.
    Batch(&'static str),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A moment.
    Time,
    /// Any JSON.
    Json,
}

use ColumnKind::{Boolean, Integer, Json, Text, Time};

type Columns = &'static [(&'static str, ColumnKind, Option<&'static str>)];

/// The seed's columns first, then ours.
const RUNBOOK_COLUMNS: Columns = &[
    ("id", Integer, None),
    ("name", Text, None),
    ("version", Integer, None),
    ("yaml_content", Text, None),
    ("data_table_name", Text, None),
    ("is_active", Boolean, None),
    ("overdue_behavior", Text, None),
    ("ignore_overdue_applied", Boolean, Some("false")),
    ("rerun_init", Boolean, None),
    ("created_at", Time, None),
    ("created_by", Text, None),
];

const BATCH_COLUMNS: Columns = &[
    ("id", Integer, None),
    ("runbook_id", Integer, None),
    ("batch_start_time", Time, None),
    ("status", Text, None),
    ("detected_at", Time, None),
    ("init_dispatched_at", Time, None),
    ("runbook_name", Text, None),
    ("runbook_version", Integer, None),
    ("is_manual", Boolean, Some("false")),
    ("is_sealed", Boolean, Some("false")),
    ("completed_at", Time, None),
    ("error_message", Text, None),
    ("paused_at", Time, None),
    ("pause_reason", Text, None),
    ("blackout_until", Time, None),
    ("members", Integer, Some("0")),
    ("member_counts", Json, None),
    ("worker_data", Json, Some("{}")),
    ("rollback_of", Integer, None),
    ("rollback_runs", Integer, Some("0")),
];

const MEMBER_COLUMNS: Columns = &[
    ("id", Integer, None),
    ("batch_id", Integer, None),
    ("member_key", Text, None),
    ("status", Text, None),
    ("added_at", Time, None),
    ("removed_at", Time, None),
    ("add_dispatched_at", Time, None),
    ("remove_dispatched_at", Time, None),
    ("data", Json, None),
    ("worker_data", Json, Some("{}")),
    ("failed_at", Time, None),
    ("_first_seen_at", Time, None),
    ("_last_seen_at", Time, None),
    ("_is_current", Boolean, None),
    ("rollback_of", Integer, None),
    ("rollback_runs", Integer, Some("0")),
    ("removal_state", Text, None),
    ("removal_runs", Integer, Some("0")),
    ("is_returning", Boolean, Some("false")),
];

const PHASE_COLUMNS: Columns = &[
    ("id", Integer, None),
    ("batch_id", Integer, None),
    ("phase_name", Text, None),
    ("offset_minutes", Integer, None),
    ("due_at", Time, None),
    ("runbook_version", Integer, None),
    ("status", Text, None),
    ("dispatched_at", Time, None),
    ("completed_at", Time, None),
    ("position", Integer, None),
    ("steps", Integer, None),
    ("reason", Text, None),
    ("wave", Integer, Some("0")),
    ("wave_at", Time, None),
    ("step_counts", Json, None),
    ("members_succeeded", Integer, Some("0")),
    ("members_failed", Integer, Some("0")),
    ("approval_requested_at", Time, None),
    ("approved_at", Time, None),
    ("approved_by", Text, None),
    ("stopped_at", Time, None),
];

/// Columns of all tables with work, the seed's first.
const WORK_COLUMNS: Columns = &[
    ("step_name", Text, None),
    ("step_index", Integer, None),
    ("worker_id", Text, None),
    ("function_name", Text, None),
    ("params_json", Text, None),
    ("status", Text, None),
    ("job_id", Text, None),
    ("result_json", Text, None),
    ("error_message", Text, None),
    ("dispatched_at", Time, None),
    ("completed_at", Time, None),
    ("is_poll_step", Boolean, None),
    ("poll_interval_sec", Integer, None),
    ("poll_timeout_sec", Integer, None),
    ("poll_started_at", Time, None),
    ("last_polled_at", Time, None),
    ("poll_count", Integer, None),
    ("retry_count", Integer, Some("0")),
    ("retry_limit", Integer, Some("0")),
    ("retry_interval_sec", Integer, Some("0")),
    ("retry_after", Time, None),
    ("call_state", Text, None),
];

const STEP_COLUMNS: Columns =
    &[("id", Integer, None), ("phase_execution_id", Integer, None), ("batch_member_id", Integer, None)];
const INIT_COLUMNS: Columns =
    &[("id", Integer, None), ("batch_id", Integer, None), ("runbook_version", Integer, None)];
const ROLLED_BACK: Columns = &[("rollback_state", Text, None), ("rollback_run", Integer, None)];
const ROLLBACK_COLUMNS: Columns = &[
    ("batch_id", Integer, None),
    ("batch_member_id", Integer, None),
    ("step_execution_id", Integer, None),
    ("init_execution_id", Integer, None),
    ("rollback_name", Text, None),
    ("runbook_version", Integer, None),
    ("run", Integer, None),
];
const REMOVAL_COLUMNS: Columns = &[
    ("batch_id", Integer, None),
    ("batch_member_id", Integer, None),
    ("runbook_version", Integer, None),
    ("run", Integer, None),
];

/// The tables that every store has. Each begins with `namespace` and `tenant`.
pub fn fixed_tables() -> Vec<TableLayout> {
    let tables: [(&'static str, &[Columns]); 8] = [
        (RUNBOOKS, &[RUNBOOK_COLUMNS]),
        (Table::Batches.name(), &[BATCH_COLUMNS]),
        (Table::BatchMembers.name(), &[MEMBER_COLUMNS]),
        (Table::PhaseExecutions.name(), &[PHASE_COLUMNS]),
        (Table::StepExecutions.name(), &[STEP_COLUMNS, WORK_COLUMNS, ROLLED_BACK]),
        (Table::InitExecutions.name(), &[INIT_COLUMNS, WORK_COLUMNS, ROLLED_BACK]),
        (Table::RollbackExecutions.name(), &[ROLLBACK_COLUMNS, WORK_COLUMNS]),
        (Table::RemovalExecutions.name(), &[REMOVAL_COLUMNS, WORK_COLUMNS]),
    ];
    let layout = |(kind, columns): (&'static str, &[Columns])| {
        let mut layout =
            vec![owner("namespace", ColumnPlace::Namespace), owner("tenant", ColumnPlace::Tenant)];
        layout.extend(columns.iter().copied().flatten().map(|(name, kind, absent)| ColumnLayout {
            name: (*name).to_owned(),
            place: ColumnPlace::Row(vec![(*name).to_owned()]),
            kind: *kind,
            absent: *absent,
        }));
        TableLayout { name: kind.to_owned(), kind, columns: layout, version: None }
    };
    tables.into_iter().map(layout).collect()
}

fn owner(name: &str, place: ColumnPlace) -> ColumnLayout {
    ColumnLayout { name: name.to_owned(), place, kind: Text, absent: None }
}

/// The data of the members of a version, as it is gathered from runbooks that share the table.
struct DataTable {
    runbooks: BTreeSet<String>,
    version: u32,
    /// In the order in which they were found.
    columns: Vec<String>,
}

/// A version of a runbook, for [`data_tables`].
#[derive(Debug, Clone, Copy)]
pub struct PublishedVersion<'r> {
    /// Name of the runbook.
    pub runbook: &'r str,
    /// The version.
    pub version: u32,
}

/// The tables with the data of members, `runbook_{name}_v{version}`: of all versions in the store, or
/// of one version and those that share its table. Versions that cannot be read are left out.
///
/// # Errors
/// When the store cannot be read.
pub async fn data_tables(
    records: &dyn Records,
    zones: &Zones,
    only: Option<PublishedVersion<'_>>,
) -> Result<Vec<TableLayout>, ProviderError> {
    let mut tables = BTreeMap::new();
    match only {
        None => {
            let mut pages = Pages::new(RUNBOOKS, VERSIONS_PER_PAGE);
            while let Some(page) = pages.next(records).await? {
                page.iter().for_each(|record| add(&mut tables, record, zones));
            }
        }
        Some(PublishedVersion { runbook, version }) => {
            let wanted = RunbookRow::table_name(runbook, version);
            let mut pages = Pages::new(HEADS, HEADS_PER_PAGE);
            while let Some(page) = pages.next(records).await? {
                for Record { id, .. } in &page {
                    // The name is the last part of the id; it has no slash.
                    let name = id.rsplit('/').next().unwrap_or_default();
                    if RunbookRow::table_name(name, version) != wanted {
                        continue;
                    }
                    let record = records.get_record(RUNBOOKS, &format!("{id}/{version:010}")).await?;
                    record.iter().for_each(|record| add(&mut tables, record, zones));
                }
            }
        }
    }
    Ok(tables.into_iter().map(|(name, table)| data_layout(&name, table)).collect())
}

/// The records of a kind, page by page.
struct Pages {
    kind: &'static str,
    limit: usize,
    after: Option<String>,
    is_last: bool,
}

impl Pages {
    fn new(kind: &'static str, limit: usize) -> Self {
        Pages { kind, limit, after: None, is_last: false }
    }

    /// The next records.
    async fn next(&mut self, records: &dyn Records) -> Result<Option<Vec<Record>>, ProviderError> {
        if self.is_last {
            return Ok(None);
        }
        let request = ListRecords {
            kind: self.kind,
            id_prefix: "",
            after_id: self.after.as_deref(),
            limit: self.limit,
        };
        let page = records.list_records(request).await?;
        self.is_last = page.len() < self.limit;
        self.after = page.last().map(|record| record.id.clone());
        Ok(Some(page))
    }
}

fn add(tables: &mut BTreeMap<String, DataTable>, record: &Record, zones: &Zones) {
    let Ok(row) = serde_json::from_slice::<RunbookRow>(&record.body) else { return };
    let Ok(parsed) = parse_published(row.yaml_content.as_bytes(), zones) else { return };
    let table = tables.entry(row.data_table_name).or_insert_with(|| DataTable {
        runbooks: BTreeSet::new(),
        version: row.version,
        columns: Vec::new(),
    });
    table.runbooks.insert(row.name);
    for column in known_columns(&parsed.definition) {
        if !table.columns.contains(&column) {
            table.columns.push(column);
        }
    }
}

/// The columns that a runbook names; its data source may have more.
fn known_columns(definition: &Definition) -> Vec<String> {
    let source = &definition.data_source;
    let mut columns = vec![source.primary_key.clone()];
    if let BatchTime::Column(column) = &source.batch_time {
        columns.push(column.clone());
    }
    columns.extend(source.multi_valued_columns.iter().map(|multi| multi.name.clone()));
    let used = uses(definition).into_iter().filter(|usage| usage.provider == Provider::Column);
    columns.extend(used.map(|usage| usage.name));
    columns
}

fn data_layout(table_name: &str, table: DataTable) -> TableLayout {
    let row = |name: &str, path: &[&str], kind| ColumnLayout {
        name: name.to_owned(),
        place: ColumnPlace::Row(path.iter().map(|part| (*part).to_owned()).collect()),
        kind,
        absent: None,
    };
    let batch_time =
        ColumnLayout { place: ColumnPlace::Batch("batch_start_time"), ..row("_batch_time", &[], Time) };
    let mut columns = vec![
        row("_row_id", &["id"], Integer),
        row("_member_key", &["member_key"], Text),
        batch_time,
        row("_first_seen_at", &["_first_seen_at"], Time),
        row("_last_seen_at", &["_last_seen_at"], Time),
        row("_is_current", &["_is_current"], Boolean),
        owner("_namespace", ColumnPlace::Namespace),
        owner("_tenant", ColumnPlace::Tenant),
        row("_batch_id", &["batch_id"], Integer),
        row("_data", &["data"], Json),
    ];
    columns.extend(table.columns.iter().map(|column| row(column, &["data", column.as_str()], Text)));
    TableLayout {
        name: short_name(table_name, table.version),
        kind: Table::BatchMembers.name(),
        columns,
        version: Some(VersionFilter {
            runbooks: table.runbooks.into_iter().collect(),
            version: table.version,
        }),
    }
}

/// The name of a table, in which a digest stands for the rest of one that is too long.
pub fn short_name(table_name: &str, version: u32) -> String {
    if table_name.len() <= MAX_TABLE_NAME_BYTES {
        return table_name.to_owned();
    }
    let digest = Sha256::digest(table_name.as_bytes());
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let end = format!("_{digest}_v{version}");
    format!("{}{end}", &table_name[..table_name.floor_char_boundary(MAX_TABLE_NAME_BYTES - end.len())])
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::rows::{BatchRow, InitRow, MemberRow, PhaseRow, RemovalRow, RollbackRow, StepRow};

    /// Every column of a table is one that its rows can have: a row with all of them, read and
    /// written again, still has them.
    fn check<R: Serialize + DeserializeOwned>(kind: &str, row: Value) {
        let tables = fixed_tables();
        let table = tables.iter().find(|table| table.kind == kind).unwrap();
        let row: R = serde_json::from_value(row).unwrap();
        let row = serde_json::to_value(row).unwrap();
        for column in &table.columns[2..] {
            assert!(row.get(&column.name).is_some(), "rows of {kind} have no {}", column.name);
        }
    }

    fn work(own: Value) -> Value {
        let mut row = json!({
            "step_name": "copy", "step_index": 1, "worker_id": "mail", "function_name": "f", "params_json": "{}",
            "status": "polling", "job_id": "j", "result_json": "{}", "error_message": "e",
            "dispatched_at": "2026-03-15T06:00:00Z", "completed_at": "2026-03-15T06:00:00Z", "is_poll_step": true,
            "poll_interval_sec": 1, "poll_timeout_sec": 1, "poll_started_at": "2026-03-15T06:00:00Z",
            "last_polled_at": "2026-03-15T06:00:00Z", "poll_count": 1, "retry_count": 1, "retry_limit": 1,
            "retry_interval_sec": 1, "retry_after": "2026-03-15T06:00:00Z", "call_state": "leased",
        });
        let (Value::Object(fields), Value::Object(own)) = (&mut row, own) else { unreachable!("objects") };
        fields.extend(own);
        row
    }

    #[test]
    fn every_column_is_one_that_rows_have() {
        let at = "2026-03-15T06:00:00Z";
        check::<RunbookRow>(
            RUNBOOKS,
            json!({
                "id": 1, "name": "x", "version": 1, "yaml_content": "", "data_table_name": "t", "is_active": true,
                "overdue_behavior": "rerun", "ignore_overdue_applied": true, "rerun_init": true, "created_at": at,
                "created_by": "ann",
            }),
        );
        check::<BatchRow>(
            "batches",
            json!({
                "id": 1, "runbook_id": 1, "batch_start_time": at, "status": "active", "detected_at": at,
                "init_dispatched_at": at, "runbook_name": "x", "runbook_version": 1, "is_manual": true,
                "is_sealed": true, "completed_at": at, "error_message": "e", "paused_at": at, "pause_reason": "r",
                "blackout_until": at, "members": 1, "worker_data": {"a": 1}, "rollback_of": 1, "rollback_runs": 1,
            }),
        );
        check::<MemberRow>(
            "batch_members",
            json!({
                "id": 1, "batch_id": 1, "member_key": "k", "status": "removed", "added_at": at, "removed_at": at,
                "add_dispatched_at": at, "remove_dispatched_at": at, "ordinal": 0, "data": {}, "worker_data": {"a": 1},
                "failed_at": at, "_first_seen_at": at, "_last_seen_at": at, "_is_current": true, "rollback_of": 1,
                "rollback_runs": 1, "removal_state": "running", "removal_runs": 1, "is_returning": true,
            }),
        );
        check::<PhaseRow>(
            "phase_executions",
            json!({
                "id": 1, "batch_id": 1, "phase_name": "p", "offset_minutes": 1, "due_at": at, "runbook_version": 1,
                "status": "failed", "dispatched_at": at, "completed_at": at, "position": 0, "steps": 1,
                "reason": "members_failed", "wave": 1, "wave_at": at, "members_succeeded": 1, "members_failed": 1,
                "approval_requested_at": at, "approved_at": at, "approved_by": "ann", "stopped_at": at,
            }),
        );
        let rolled_back = json!({"rollback_state": "failed", "rollback_run": 1});
        let with = |row: Value| {
            let (Value::Object(mut row), Value::Object(more)) = (work(row), rolled_back.clone()) else {
                unreachable!("objects")
            };
            row.extend(more);
            Value::Object(row)
        };
        check::<StepRow>(
            "step_executions",
            with(json!({"id": 1, "phase_execution_id": 1, "batch_member_id": 1})),
        );
        check::<InitRow>("init_executions", with(json!({"id": 1, "batch_id": 1, "runbook_version": 1})));
        let rollback = json!({"batch_id": 1, "batch_member_id": 1, "step_execution_id": 1, "init_execution_id": 1,
                              "rollback_name": "undo", "runbook_version": 1, "run": 1});
        check::<RollbackRow>("rollback_executions", work(rollback));
        let removal = json!({"batch_id": 1, "batch_member_id": 1, "runbook_version": 1, "run": 1});
        check::<RemovalRow>("removal_executions", work(removal));
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let names: Vec<String> = ["a", "b"]
            .iter()
            .map(|last| short_name(&RunbookRow::table_name(&format!("{}{last}", "x".repeat(120)), 12), 12))
            .collect();
        assert_ne!(names[0], names[1]);
        assert!(
            names.iter().all(|name| name.len() == MAX_TABLE_NAME_BYTES && name.ends_with("_v12")),
            "{names:?}"
        );
        assert_eq!(short_name("runbook_wave_v3", 3), "runbook_wave_v3");
    }
}
