//! Consistency of rows: every index entry has its row and the reverse, histories are complete, counters
//! equal counts.

use std::collections::BTreeMap;

use crate::error::RowError;
use crate::repair::check::Finding;
use crate::rows::checkpoint_meta::Counters;
use crate::rows::instance_row::{ExecutionRow, InstanceRow};
use crate::rows::keys::{self, AGE_INDEXES, Key, Table};
use crate::rows::queue_row::{self, RecordRow};
use crate::rows::tables::Tables;

/// Receives findings, and counts the checked rows.
pub(crate) trait FindingSink {
    fn find(&mut self, finding: Finding);
    fn row_done(&mut self);
}

fn finding(table: Table, key: impl Into<String>, problem: impl Into<String>) -> Finding {
    Finding { place: table.name().to_owned(), key: key.into(), problem: problem.into() }
}

/// Compares all rows with their indexes and counters.
pub(crate) fn compare(tables: &Tables, findings: &mut dyn FindingSink) -> Result<(), RowError> {
    instances(tables, findings)?;
    for table in [Table::Executions, Table::Events] {
        orphans(tables, table, findings)?;
    }
    for table in AGE_INDEXES.into_iter().chain([Table::ByEnd]) {
        index_entries(tables, table, findings)?;
    }
    queue(tables, (Table::OrchestratorQueue, Table::OrchestratorStanding), findings)?;
    queue(tables, (Table::WorkerQueue, Table::WorkerStanding), findings)?;
    records(tables, findings)?;
    record_entries(tables, Table::ByDue, findings)?;
    record_entries(tables, Table::ByExpiry, findings)
}

fn instances(tables: &Tables, findings: &mut dyn FindingSink) -> Result<(), RowError> {
    let mut counters = Counters::default();
    for entry in tables.rows.scan(&keys::table(Table::Instances))? {
        let (key, value) = entry?;
        findings.row_done();
        let Some(instance) = keys::instance_id(&key) else {
            findings.find(finding(Table::Instances, format!("{key:?}"), "the key is not an id"));
            continue;
        };
        let row = match InstanceRow::decode(&value) {
            Ok(row) => row,
            Err(error) => {
                findings.find(finding(Table::Instances, instance, error.to_string()));
                continue;
            }
        };
        counters.add(&row);
        for problem in history_problems(tables, instance, &row)? {
            findings.find(finding(Table::Instances, instance, problem));
        }
        for index_key in row.index_keys(instance) {
            if tables.rows.get(&index_key)?.is_none() {
                let index = Table::of_key(&index_key).map_or("unknown", Table::name);
                findings.find(finding(Table::Instances, instance, format!("it is not in the index {index}")));
            }
        }
    }
    if counters != tables.meta.counters {
        let problem = format!("they say {:?}, there is {counters:?}", tables.meta.counters);
        findings.find(finding(Table::Meta, "counters", problem));
    }
    Ok(())
}

/// What is wrong with the executions and histories of an instance.
pub(crate) fn history_problems(
    tables: &Tables,
    instance: &str,
    row: &InstanceRow,
) -> Result<Vec<String>, RowError> {
    let mut executions: BTreeMap<u64, ExecutionRow> = BTreeMap::new();
    let mut problems = Vec::new();
    for entry in tables.rows.scan(&keys::of_instance(Table::Executions, instance))? {
        match ExecutionRow::decode(&entry?.1) {
            Ok(execution) => drop(executions.insert(execution.execution_id, execution)),
            Err(error) => problems.push(format!("an execution: {error}")),
        }
    }
    if executions.contains_key(&row.current.execution_id) {
        problems.push(format!("execution {} has two rows", row.current.execution_id));
    }
    executions.insert(row.current.execution_id, row.current.clone());
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for entry in tables.rows.scan(&keys::of_instance(Table::Events, instance))? {
        let (key, value) = entry?;
        let execution_id = keys::execution_of_events(&key, instance).unwrap_or(0);
        let mut events = Vec::new();
        if let Err(error) = queue_row::decode_events(&value, &mut events) {
            problems.push(format!("events of execution {execution_id}: {error}"));
        }
        let (count, last) = found.entry(execution_id).or_default();
        *count += events.len() as u64;
        *last = events.iter().map(|event| event.event_id).max().unwrap_or(0).max(*last);
    }
    for (id, execution) in &executions {
        let (count, last) = found.remove(id).unwrap_or_default();
        if (count, last) != (execution.event_count, execution.last_event_id) {
            problems.push(format!(
                "execution {id} has {count} events up to {last}, but its row says {} up to {}",
                execution.event_count, execution.last_event_id
            ));
        }
    }
    problems.extend(found.keys().map(|id| format!("there are events of an execution {id} without a row")));
    let events: u64 = executions.values().map(|execution| execution.event_count).sum();
    if (row.execution_count, row.event_count) != (executions.len() as u64, events) {
        problems.push(format!(
            "it has {} executions with {events} events, but its row says {} with {}",
            executions.len(),
            row.execution_count,
            row.event_count
        ));
    }
    Ok(problems)
}

/// Rows of instances that do not exist; one finding each.
fn orphans(tables: &Tables, table: Table, findings: &mut dyn FindingSink) -> Result<(), RowError> {
    for instance in unknown_instances(tables, table, findings)? {
        findings.find(finding(table, instance, "there is no such instance"));
    }
    Ok(())
}

/// Instances that do not exist, but have rows in a table of executions or events.
pub(crate) fn unknown_instances(
    tables: &Tables,
    table: Table,
    findings: &mut dyn FindingSink,
) -> Result<Vec<String>, RowError> {
    let mut last: Option<String> = None;
    let mut unknown = Vec::new();
    for entry in tables.rows.scan(&keys::table(table))? {
        let (key, _) = entry?;
        findings.row_done();
        match keys::owner(table, &key) {
            None => findings.find(finding(table, format!("{key:?}"), "the key has no instance")),
            Some(owner) if last.as_deref() == Some(owner) => {}
            Some(owner) => {
                last = Some(owner.to_owned());
                if tables.rows.get(&keys::instance(owner))?.is_none() {
                    unknown.push(owner.to_owned());
                }
            }
        }
    }
    Ok(unknown)
}

fn index_entries(tables: &Tables, table: Table, findings: &mut dyn FindingSink) -> Result<(), RowError> {
    for entry in tables.rows.scan(&keys::table(table))? {
        let (key, _) = entry?;
        findings.row_done();
        let Some(instance) = keys::indexed_instance(table, &key) else {
            findings.find(finding(table, format!("{key:?}"), "the key has no instance"));
            continue;
        };
        let row = tables.rows.get(&keys::instance(instance))?;
        let row = row.and_then(|row| InstanceRow::decode(&row).ok());
        if !row.is_some_and(|row| row.index_keys(instance).contains(&key)) {
            findings.find(finding(table, instance, "there is no such instance, or it does not belong here"));
        }
    }
    Ok(())
}

fn queue(tables: &Tables, queue: (Table, Table), findings: &mut dyn FindingSink) -> Result<(), RowError> {
    let (table, standings) = queue;
    let last_id = match table {
        Table::OrchestratorQueue => tables.meta.last_message_id,
        _ => tables.meta.last_item_id,
    };
    for entry in tables.rows.scan(&keys::table(table))? {
        let (key, value) = entry?;
        findings.row_done();
        let decoded = match table {
            Table::OrchestratorQueue => queue_row::decode_message(&value).map(drop),
            _ => queue_row::decode_activity(&value).map(drop),
        };
        let id = keys::queued_id(table, &key);
        let name = id.map_or(format!("{key:?}"), |id| id.to_string());
        match (id, decoded) {
            (None, _) => findings.find(finding(table, name, "the key has no id")),
            (_, Err(error)) => findings.find(finding(table, name, error.to_string())),
            (Some(id), Ok(())) if id > last_id => {
                findings.find(finding(table, name, format!("the last id is said to be {last_id}")));
            }
            _ => {}
        }
    }
    for entry in tables.rows.scan(&keys::table(standings))? {
        let (key, value) = entry?;
        findings.row_done();
        let Some(id) = keys::queued_id(standings, &key) else {
            findings.find(finding(standings, format!("{key:?}"), "the key has no id"));
            continue;
        };
        if let Err(error) = queue_row::decode_standing(id, &value) {
            findings.find(finding(standings, id.to_string(), error.to_string()));
        }
        if tables.rows.get(&keys::queued(table, id))?.is_none() {
            findings.find(finding(standings, id.to_string(), "there is no such entry in the queue"));
        }
    }
    Ok(())
}

fn record_keys(name: (&str, &str), row: &RecordRow) -> Vec<Key> {
    let (kind, id) = name;
    let due = row.due_at_ms.map(|at_ms| keys::due(kind, at_ms, id));
    due.into_iter().chain(row.expires_at_ms.map(|at_ms| keys::expiry(at_ms, kind, id))).collect()
}

fn records(tables: &Tables, findings: &mut dyn FindingSink) -> Result<(), RowError> {
    for entry in tables.rows.scan(&keys::table(Table::Records))? {
        let (key, value) = entry?;
        findings.row_done();
        let Some((kind, id)) = keys::record_name(&key) else {
            findings.find(finding(Table::Records, format!("{key:?}"), "the key is not a kind and an id"));
            continue;
        };
        let name = format!("{kind} {id}");
        match RecordRow::decode(&value) {
            Err(error) => findings.find(finding(Table::Records, name, error.to_string())),
            Ok(row) => {
                for index_key in record_keys((kind, id), &row) {
                    if tables.rows.get(&index_key)?.is_none() {
                        let index = Table::of_key(&index_key).map_or("unknown", Table::name);
                        findings.find(finding(
                            Table::Records,
                            &*name,
                            format!("it is not in the index {index}"),
                        ));
                    }
                }
                if row.version > tables.meta.last_record_version {
                    let problem = format!("it has version {}, which is said not to be used yet", row.version);
                    findings.find(finding(Table::Records, name, problem));
                }
            }
        }
    }
    Ok(())
}

fn record_entries(tables: &Tables, table: Table, findings: &mut dyn FindingSink) -> Result<(), RowError> {
    for entry in tables.rows.scan(&keys::table(table))? {
        let (key, _) = entry?;
        findings.row_done();
        let name = match table {
            Table::ByDue => keys::due_record(&key).map(|(kind, _, id)| (kind, id)),
            _ => keys::expiring_record(&key).map(|(_, kind, id)| (kind, id)),
        };
        let Some((kind, id)) = name else {
            findings.find(finding(table, format!("{key:?}"), "the key has no record"));
            continue;
        };
        let row = tables.rows.get(&keys::record(kind, id))?.and_then(|row| RecordRow::decode(&row).ok());
        if !row.is_some_and(|row| record_keys((kind, id), &row).contains(&key)) {
            findings.find(finding(
                table,
                format!("{kind} {id}"),
                "there is no such record, or it does not belong here",
            ));
        }
    }
    Ok(())
}
