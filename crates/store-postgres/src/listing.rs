//! Listings of instances, newest first: one statement with just the criteria that are given, so that the planner can
//! pick the index that fits them.

use segno::store::{ExecutionStatus, InstanceCursor, InstancePage, InstanceQuery, ProviderError};
use tokio_postgres::types::{ToSql, Type};

use crate::PostgresStore;
use crate::answer::instance_info;
use crate::number::{limit, status_code, time};
use crate::records::prefix_end;

/// Columns of an instance, in the order of `instance_info`.
const COLUMNS: &str = "i.execution_id, i.status::bigint, i.created_at_ms, i.updated_at_ms, i.completed_at_ms, \
                       i.instance_id, i.name, i.version, i.parent_id, i.pinned_version, i.output, i.custom_status, \
                       ARRAY[i.custom_status_version, i.revision], i.labels";

/// Values of a statement, with their types.
type Values = Vec<(Box<dyn ToSql + Sync + Send>, Type)>;

/// A statement in the making.
#[derive(Default)]
struct Criteria {
    conditions: Vec<String>,
    values: Values,
}

impl Criteria {
    /// Adds a value and returns its place holder.
    fn value(&mut self, value: impl ToSql + Sync + Send + 'static, sql_type: Type) -> String {
        self.values.push((Box::new(value), sql_type));
        format!("${}", self.values.len())
    }

    fn must(&mut self, condition: String) {
        self.conditions.push(condition);
    }
}

impl PostgresStore {
    /// A page of instances.
    pub(crate) async fn page(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError> {
        if query.limit == 0 {
            return Ok(InstancePage { instances: Vec::new(), next: None });
        }
        let most = query.limit;
        let (sql, values) = self.statement(query);
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|(value, sql_type)| (value.as_ref() as _, sql_type.clone())).collect();
        let rows = self.core().rows("query_instances", &sql, &parameters).await?;
        let mut instances =
            rows.iter().map(|row| instance_info(row, 0)).collect::<Result<Vec<_>, ProviderError>>()?;
        let more = instances.len() > most;
        instances.truncate(most);
        let next = instances.last().filter(|_| more).map(|last| InstanceCursor {
            created_at_ms: last.created_at_ms,
            instance_id: last.instance_id.clone(),
        });
        Ok(InstancePage { instances, next })
    }

    fn statement(&self, query: InstanceQuery) -> (String, Values) {
        let schema = self.core().schema();
        let mut criteria = Criteria::default();
        let mut source = format!("{schema}.instance i");
        let is_by_age = query.labels.is_empty()
            && query.statuses.is_empty()
            && query.orchestration_name.is_none()
            && query.parent_instance_id.is_none();
        // The row whose age is compared: a label's own when one is asked for, so that its index gives the order.
        let mut aged = "i";
        for (place, (key, value)) in query.labels.into_iter().enumerate() {
            let (key, value) = (criteria.value(key, Type::TEXT), criteria.value(value, Type::TEXT));
            let label = if place == 0 { "l".to_owned() } else { format!("l{place}") };
            if place == 0 {
                aged = "l";
                source =
                    format!("{schema}.label l JOIN {schema}.instance i ON i.instance_id = l.instance_id");
            } else {
                // With the age, so that the row is found by all columns of the index of labels.
                source.push_str(&format!(
                    " JOIN {schema}.label {label} ON {label}.instance_id = l.instance_id AND {label}.created_at_ms = l.created_at_ms"
                ));
            }
            criteria.must(format!("{label}.key = {key} AND {label}.value = {value}"));
        }
        if let Some(prefix) = query.id_prefix {
            if let Some(end) = prefix_end(&prefix) {
                let end = criteria.value(end, Type::TEXT);
                criteria.must(format!("{aged}.instance_id < {end}"));
            }
            let prefix = criteria.value(prefix, Type::TEXT);
            criteria.must(format!("{aged}.instance_id >= {prefix}"));
        }
        if let Some(name) = query.orchestration_name {
            let name = criteria.value(name, Type::TEXT);
            criteria.must(format!("i.name = {name}"));
        }
        if let Some(parent) = query.parent_instance_id {
            let parent = criteria.value(parent, Type::TEXT);
            criteria.must(format!("i.parent_id = {parent}"));
        }
        if let Some(from_ms) = query.created_from_ms {
            criteria.must(format!("{aged}.created_at_ms >= {}", time(from_ms)));
        }
        if let Some(before_ms) = query.created_before_ms {
            criteria.must(format!("{aged}.created_at_ms < {}", time(before_ms)));
        }
        if let Some(cursor) = query.cursor {
            let (at_ms, id) = (time(cursor.created_at_ms), criteria.value(cursor.instance_id, Type::TEXT));
            criteria.must(format!(
                "{aged}.created_at_ms <= {at_ms} AND ({aged}.created_at_ms < {at_ms} OR {aged}.instance_id > {id})"
            ));
        }
        let most = criteria.value(limit(query.limit.saturating_add(1)), Type::INT8);
        let conditions = if criteria.conditions.is_empty() {
            "true".to_owned()
        } else {
            criteria.conditions.join(" AND ")
        };
        let order = format!("ORDER BY {aged}.created_at_ms DESC, {aged}.instance_id LIMIT {most}");
        // The newest of each state: an index gives the order within one. There is none over all of them, which every
        // instance would pay for twice.
        let statuses: Vec<ExecutionStatus> = match is_by_age {
            true => ExecutionStatus::ALL.into(),
            false => query.statuses.into_iter().collect(),
        };
        let sql = match statuses[..] {
            [] => format!("SELECT {COLUMNS} FROM {source} WHERE {conditions} {order}"),
            [one] => {
                let code = status_code(one);
                format!("SELECT {COLUMNS} FROM {source} WHERE i.status = {code} AND {conditions} {order}")
            }
            _ => {
                let newest = statuses.into_iter().map(status_code).map(|code| {
                    format!("(SELECT i.* FROM {source} WHERE i.status = {code} AND {conditions} {order})")
                });
                let newest: Vec<String> = newest.collect();
                let order = format!("ORDER BY i.created_at_ms DESC, i.instance_id LIMIT {most}");
                format!("SELECT {COLUMNS} FROM ({}) i {order}", newest.join(" UNION ALL "))
            }
        };
        (sql, criteria.values)
    }
}
