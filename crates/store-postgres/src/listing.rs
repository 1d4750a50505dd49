//! Listings of instances, newest first: one statement with just the criteria that are given, so that the planner can
//! pick the index that fits them.

use std::collections::BTreeSet;

use segno::store::{ExecutionStatus, InstanceCursor, InstancePage, InstanceQuery, ProviderError};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::PostgresStore;
use crate::answer::instance_info;
use crate::number::{limit, status_code, time};
use crate::records::prefix_end;

/// Columns of an instance, in the order of `instance_info`.
const COLUMNS: &str = "i.execution_id, i.status::bigint, i.created_at_ms, i.updated_at_ms, i.completed_at_ms, \
                       i.instance_id, i.name, i.version, i.parent_id, i.pinned_version, i.output, i.custom_status, \
                       ARRAY[i.custom_status_version, i.revision], i.labels";

/// Most rows of a label that are counted to find the rarest one; beyond that, labels are equally common.
const MAX_COUNTED: usize = 1_000;

/// A label and its value.
type Label = (String, String);

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

    /// All of the labels; the first one is the row `l`.
    fn must_carry(&mut self, schema: &str, labels: Vec<Label>) {
        for (place, (key, value)) in labels.into_iter().enumerate() {
            let (key, value) = (self.value(key, Type::TEXT), self.value(value, Type::TEXT));
            self.must(match place {
                0 => format!("l.key = {key} AND l.value = {value}"),
                // By all columns of the index. The offset keeps the planner from joining whole labels and sorting them.
                _ => format!(
                    "EXISTS (SELECT 1 FROM {schema}.label other WHERE other.key = {key} AND other.value = {value} \
                     AND other.created_at_ms = l.created_at_ms AND other.instance_id = l.instance_id OFFSET 0)"
                ),
            });
        }
    }
}

impl PostgresStore {
    /// A page of instances.
    pub(crate) async fn page(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError> {
        if query.limit == 0 {
            return Ok(InstancePage::default());
        }
        let most = query.limit;
        let labels = self.rarest_first(&query.labels).await?;
        let (sql, values) = self.statement(query, labels);
        let rows = self.rows_of(&sql, &values).await?;
        let mut instances =
            rows.iter().map(|row| instance_info(row, 0)).collect::<Result<Vec<_>, ProviderError>>()?;
        let more = instances.len() > most;
        instances.truncate(most);
        let next = instances.last().filter(|_| more).map(|last| InstanceCursor {
            created_at_ms: last.created_at_ms,
            instance_id: last.instance_id.clone(),
        });
        Ok(InstancePage { instances, next, ..InstancePage::default() })
    }

    async fn rows_of(&self, sql: &str, values: &Values) -> Result<Vec<Row>, ProviderError> {
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|(value, sql_type)| (value.as_ref() as _, sql_type.clone())).collect();
        self.core().rows("query_instances", sql, &parameters).await
    }

    /// Labels, the one with the fewest instances first: its index is walked, and the others are looked up for each row.
    /// The planner cannot know which one that is, because it takes the columns of an index for independent.
    async fn rarest_first(&self, labels: &BTreeSet<Label>) -> Result<Vec<Label>, ProviderError> {
        let mut labels: Vec<Label> = labels.iter().cloned().collect();
        if labels.len() < 2 {
            return Ok(labels);
        }
        let schema = self.core().schema();
        let mut criteria = Criteria::default();
        let mut counts = Vec::with_capacity(labels.len());
        for (key, value) in labels.iter().cloned() {
            let (key, value) = (criteria.value(key, Type::TEXT), criteria.value(value, Type::TEXT));
            counts.push(format!(
                "(SELECT count(*) FROM (SELECT 1 FROM {schema}.label WHERE key = {key} AND value = {value} LIMIT {MAX_COUNTED}) counted)"
            ));
        }
        let rows = self.rows_of(&format!("SELECT ARRAY[{}]", counts.join(", ")), &criteria.values).await?;
        let counts: Vec<i64> = rows.first().map(|row| row.get(0)).unwrap_or_default();
        let mut places: Vec<usize> = (0..labels.len()).collect();
        places.sort_by_key(|place| counts.get(*place).copied());
        Ok(places.into_iter().map(|place| std::mem::take(&mut labels[place])).collect())
    }

    fn statement(&self, query: InstanceQuery, labels: Vec<Label>) -> (String, Values) {
        let schema = self.core().schema();
        let mut criteria = Criteria::default();
        let mut source = format!("{schema}.instance i");
        let is_by_age = labels.is_empty()
            && query.statuses.is_empty()
            && query.orchestration_name.is_none()
            && query.parent_instance_id.is_none();
        // The row whose age is compared: a label's own when one is asked for, so that its index gives the order.
        let aged = if labels.is_empty() { "i" } else { "l" };
        if !labels.is_empty() {
            source = format!("{schema}.label l JOIN {schema}.instance i ON i.instance_id = l.instance_id");
            criteria.must_carry(schema, labels);
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
        // The newest of each state: an index gives the order within one. There is none over all of them, which every
        // instance would pay for twice.
        let statuses: Vec<ExecutionStatus> = match is_by_age {
            true => ExecutionStatus::ALL.into(),
            false => query.statuses.into_iter().collect(),
        };
        let selection = Selection { conditions: &criteria.conditions, source, aged, most };
        (selection.sql(&statuses), criteria.values)
    }
}

/// What is selected, but for the states.
struct Selection<'a> {
    conditions: &'a [String],
    source: String,
    /// The row whose age is the order.
    aged: &'static str,
    /// Place holder of the limit.
    most: String,
}

impl Selection<'_> {
    /// The statement for instances in any of these states; in all of them if there are none.
    fn sql(&self, statuses: &[ExecutionStatus]) -> String {
        match statuses {
            [] => self.select(COLUMNS, self.conditions),
            [one] => self.in_state(COLUMNS, *one),
            several => {
                let newest = several.iter().map(|status| format!("({})", self.in_state("i.*", *status)));
                let newest = newest.collect::<Vec<_>>().join(" UNION ALL ");
                format!("SELECT {COLUMNS} FROM ({newest}) i {}", self.order("i"))
            }
        }
    }

    fn in_state(&self, columns: &str, status: ExecutionStatus) -> String {
        let status = format!("i.status = {}", status_code(status));
        self.select(columns, &[&[status], self.conditions].concat())
    }

    fn select(&self, columns: &str, conditions: &[String]) -> String {
        let (source, conditions) = (&self.source, conditions.join(" AND "));
        format!("SELECT {columns} FROM {source} WHERE {conditions} {}", self.order(self.aged))
    }

    fn order(&self, row: &str) -> String {
        format!("ORDER BY {row}.created_at_ms DESC, {row}.instance_id LIMIT {}", self.most)
    }
}
