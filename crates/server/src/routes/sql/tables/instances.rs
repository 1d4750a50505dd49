//! Instances of a tenant. The largest table: its cells are made without a detour over JSON.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _};
use segno::Payload;
use segno::client::Instance;
use segno::limits::MAX_PAGE_ROWS;
use segno::store::{ExecutionStatus, InstanceCursor, UnreadableInstance};
use segno_ledger::sql::{ColumnInfo, ColumnKind as Kind, Pushdown, Row, Rows, Scan, Table, TableInfo, Value};

use super::archived::{self, LiveRow, LiveRows};
use super::listing::is_absence;
use super::{UNREADABLE, column, pushed};
use crate::app::{InstanceFilter, Refused, Tenant};
use crate::problem::Refusal;
use crate::routes::instances::list::parse_function;
use crate::routes::instances::view;

/// All instances, live and archived: orchestrations and calls of functions.
pub static INSTANCES: TableInfo = TableInfo {
    name: "instances",
    doc: "Instances: orchestrations and calls of functions, newest first.",
    columns: &[
        ID,
        ORCHESTRATION,
        FUNCTION,
        KIND,
        VERSION,
        STATUS,
        EXECUTION,
        PARENT,
        CREATED_AT,
        START_AT,
        UPDATED_AT,
        pushed(
            "completed_at",
            Kind::Time,
            Pushdown::Range,
            "When it ended: the day of its file in the archive",
        ),
        DURATION_MS,
        column("result", Kind::Json, "Its result, when it completed"),
        FAILURE_CODE,
        FAILURE_CATEGORY,
        column("failure_message", Kind::Text, "What happened, when it failed or was cancelled"),
        column("pause_reason", Kind::Text, "Why it is paused"),
        column("custom_status", Kind::Json, "Status that its code has set"),
        column("labels", Kind::Json, "Labels as an object: `labels ->> 'customer'`"),
        REVISION,
        ARCHIVED,
        UNREADABLE,
    ],
    key: &["id", "created_at"],
    newest_first: Some("created_at"),
};

pub const ID: ColumnInfo = pushed("id", Kind::Text, Pushdown::Prefix, "Id of the instance");
pub const ORCHESTRATION: ColumnInfo =
    pushed("orchestration", Kind::Text, Pushdown::Equal, "Name of its orchestration; `invoke` for a call");
pub const FUNCTION: ColumnInfo =
    pushed("function", Kind::Text, Pushdown::Equal, "The function that it calls; NULL for an orchestration");
pub const KIND: ColumnInfo = column(
    "kind",
    Kind::Text,
    "What made it: `call`, `action`, `schedule`, `hook` or `runbook`; NULL for others",
);
pub const VERSION: ColumnInfo = column("version", Kind::Text, "Version of its orchestration");
pub const STATUS: ColumnInfo = pushed(
    "status",
    Kind::Text,
    Pushdown::Equal,
    "`pending`, `running`, `paused`, `completed`, `failed`, `cancelled` or `continued_as_new`",
);
pub const EXECUTION: ColumnInfo =
    column("execution", Kind::Integer, "Number of the current execution, from 1");
pub const PARENT: ColumnInfo = pushed("parent", Kind::Text, Pushdown::Equal, "Id of its parent");
pub const CREATED_AT: ColumnInfo = pushed("created_at", Kind::Time, Pushdown::Range, "When it was created");
pub const START_AT: ColumnInfo =
    column("start_at", Kind::Time, "When its delayed start is due, while it is pending");
pub const UPDATED_AT: ColumnInfo =
    column("updated_at", Kind::Time, "When something was last committed for it");
pub const COMPLETED_AT: ColumnInfo = column("completed_at", Kind::Time, "When it ended");
pub const DURATION_MS: ColumnInfo =
    column("duration_ms", Kind::Integer, "Milliseconds from its creation to its end");
pub const FAILURE_CODE: ColumnInfo =
    column("failure_code", Kind::Text, "Code of its failure, when it failed or was cancelled");
pub const FAILURE_CATEGORY: ColumnInfo = column(
    "failure_category",
    Kind::Text,
    "`application`, `timeout`, `cancelled`, `configuration`, `infrastructure` or `poison`",
);
pub const ARCHIVED: ColumnInfo =
    column("archived", Kind::Flag, "Whether retention has moved it from the store to the archive");
pub const REVISION: ColumnInfo = column("revision", Kind::Integer, "Raised by every commit");

/// The instances of a tenant.
pub struct Instances(pub Tenant);

impl Table for Instances {
    fn info(&self) -> &'static TableInfo {
        &INSTANCES
    }

    fn scan(&self, scan: Scan) -> Rows {
        let tenant = self.0.clone();
        if let Some(id) = scan.equals_text("id").map(str::to_owned) {
            let found = of_id(tenant, id, scan);
            return stream::once(async move { found.await.map_err(|refusal| Refused(refusal).into()) })
                .boxed();
        }
        let Some(filter) = filter(&scan) else { return stream::empty().boxed() };
        let live = live(tenant.clone(), filter, scan.clone());
        if tenant.has_archive() {
            return archived::with_archive(tenant, live, scan);
        }
        let rows = live.map(|page| page.map(|page| page.into_iter().map(|live| live.row).collect()));
        rows.map(|page: Result<Vec<Row>, Refusal>| page.map_err(|refusal| Refused(refusal).into())).boxed()
    }
}

/// Live rows, newest first.
fn live(tenant: Tenant, filter: InstanceFilter, scan: Scan) -> LiveRows {
    let pages = stream::try_unfold(Some(None), move |cursor: Option<Option<InstanceCursor>>| {
        let (tenant, filter, scan) = (tenant.clone(), filter.clone(), scan.clone());
        async move {
            let Some(cursor) = cursor else { return Ok(None) };
            let page = tenant.instances(InstanceFilter { cursor, ..filter }).await?;
            let readable = page.instances.iter().map(|found| LiveRow {
                created_at_ms: found.created_at_ms,
                id: found.id.clone(),
                row: row(&tenant, found, &scan),
            });
            let lost = page.unreadable.iter().map(|lost| LiveRow {
                created_at_ms: lost.created_at_ms,
                id: lost.instance_id.clone(),
                row: unreadable(lost, &scan),
            });
            let mut rows: Vec<LiveRow> = readable.chain(lost).collect();
            rows.sort_by(|one, other| {
                (Reverse(one.created_at_ms), &one.id).cmp(&(Reverse(other.created_at_ms), &other.id))
            });
            Ok::<_, Refusal>(Some((rows, page.next.map(Some))))
        }
    });
    pages.boxed()
}

/// The rows of an id: the live one, and archived ones that were created at another time.
async fn of_id(tenant: Tenant, id: String, scan: Scan) -> Result<Vec<Row>, Refusal> {
    let mut rows = Vec::new();
    let live = match tenant.instance(&id).await {
        Ok(found) => {
            rows.push(row(&tenant, &found, &scan));
            Some(found.created_at_ms)
        }
        Err(refusal) if is_absence(&refusal) => None,
        Err(refusal) => return Err(refusal),
    };
    if tenant.has_archive() {
        rows.extend(archived::of_id(tenant, id, live, scan).await?);
    }
    Ok(rows)
}

/// What the constraints of a scan say; `None` when nothing can meet them.
fn filter(scan: &Scan) -> Option<InstanceFilter> {
    let mut filter = InstanceFilter {
        prefix: scan.prefix("id").map(str::to_owned),
        orchestration: scan.equals_text("orchestration").map(str::to_owned),
        parent: scan.equals_text("parent").map(str::to_owned),
        limit: page_rows(scan),
        ..InstanceFilter::default()
    };
    if let Some(name) = scan.equals_text("status") {
        filter.statuses.insert(status(name)?);
    }
    if let Some(name) = scan.equals_text("function") {
        filter.function = Some(parse_function("function", name).ok()?);
    }
    (filter.created_from_ms, filter.created_before_ms) = created(scan)?;
    Some(filter)
}

/// Rows of a page: no more than are needed, as far as that is known.
pub fn page_rows(scan: &Scan) -> usize {
    let limit = scan.limit.and_then(|limit| usize::try_from(limit).ok());
    limit.unwrap_or(MAX_PAGE_ROWS).clamp(1, MAX_PAGE_ROWS)
}

/// The times of creation of a scan, in Unix milliseconds; `None` when no time can be meant.
pub fn created(scan: &Scan) -> Option<(Option<u64>, Option<u64>)> {
    let (from, before) = scan.range("created_at");
    let before = match before {
        Some(before) => Some(u64::try_from(before).ok()?),
        None => None,
    };
    Some((from.map(|from| u64::try_from(from).unwrap_or(0)), before))
}

/// The status of a name.
pub fn status(name: &str) -> Option<ExecutionStatus> {
    let read: Result<segno_api::instance::Status, _> = serde_json::from_str(&format!("\"{name}\""));
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_').then_some(())?;
    read.ok().map(view::engine_status)
}

fn row(tenant: &Tenant, found: &Instance, scan: &Scan) -> Row {
    scan.columns.iter().map(|name| tenant_cell(tenant, found, name)).collect()
}

fn tenant_cell(tenant: &Tenant, found: &Instance, name: &str) -> Value {
    match name {
        "function" => Value::text(tenant.function_of(&found.labels)),
        name => cell(found, name),
    }
}

/// The cell of a column that does not depend on the tenant.
pub fn cell(found: &Instance, name: &str) -> Value {
    match name {
        "id" => Value::Text(found.id.clone()),
        "orchestration" => Value::text(found.orchestration.as_deref()),
        "kind" => Value::text(segno_actions::functions::Trigger::of(&found.labels).map(|kind| kind.as_str())),
        "version" => Value::text(found.version.as_deref()),
        "status" => Value::Text(status_name(found.status).to_owned()),
        "execution" => Value::integer(Some(found.execution_id)),
        "parent" => Value::text(found.parent.as_deref()),
        "created_at" => Value::integer(Some(found.created_at_ms)),
        "start_at" => Value::integer(found.start_at_ms),
        "updated_at" => Value::integer(Some(found.updated_at_ms)),
        "completed_at" => Value::integer(found.completed_at_ms),
        "duration_ms" => {
            Value::integer(found.completed_at_ms.map(|at| at.saturating_sub(found.created_at_ms)))
        }
        "result" => Value::text(found.result().map(Payload::as_str)),
        "failure_code" => Value::text(found.failure().and_then(|failure| failure.code.as_deref())),
        "failure_category" => Value::text(found.failure().map(|failure| failure.category.to_string())),
        "failure_message" => Value::text(found.failure().map(|failure| failure.message.as_str())),
        "pause_reason" => Value::text(found.pause_reason()),
        "custom_status" => Value::text(found.custom_status.as_ref().map(Payload::as_str)),
        "labels" => Value::Text(labels(&found.labels)),
        "revision" => Value::integer(Some(found.revision)),
        "archived" => Value::flag(false),
        "unreadable" => Value::text(found.unreadable.as_deref()),
        _ => Value::Null,
    }
}

/// The name of a state, as on the wire.
pub fn status_name(status: ExecutionStatus) -> &'static str {
    match status {
        ExecutionStatus::Pending => "pending",
        ExecutionStatus::Running => "running",
        ExecutionStatus::Paused => "paused",
        ExecutionStatus::Completed => "completed",
        ExecutionStatus::Failed => "failed",
        ExecutionStatus::Cancelled => "cancelled",
        ExecutionStatus::ContinuedAsNew => "continued_as_new",
    }
}

/// Labels that are not Segno's own, as an object.
fn labels(labels: &BTreeMap<String, String>) -> String {
    let own: BTreeMap<_, _> = labels.iter().filter(|(key, _)| !segno::is_reserved_label(key)).collect();
    serde_json::to_string(&own).unwrap_or_default()
}

fn unreadable(lost: &UnreadableInstance, scan: &Scan) -> Row {
    let cell = |name: &&str| match *name {
        "id" => Value::Text(lost.instance_id.clone()),
        "created_at" => Value::integer(Some(lost.created_at_ms)),
        "archived" => Value::flag(false),
        "unreadable" => Value::Text(format!("its row cannot be read: {}", lost.reason)),
        _ => Value::Null,
    };
    scan.columns.iter().map(cell).collect()
}

/// Ids of instances with the times at which they were created, for tables of what belongs to them.
pub fn ids(tenant: &Tenant) -> super::listing::Ids<(String, u64)> {
    let tenant = tenant.clone();
    let pages = stream::try_unfold(Some(None), move |cursor: Option<Option<InstanceCursor>>| {
        let tenant = tenant.clone();
        async move {
            let Some(cursor) = cursor else { return Ok(None) };
            let filter = InstanceFilter { cursor, limit: MAX_PAGE_ROWS, ..InstanceFilter::default() };
            let page = tenant.instances(filter).await?;
            let ids: Vec<Result<(String, u64), Refusal>> =
                page.instances.into_iter().map(|found| Ok((found.id, found.created_at_ms))).collect();
            Ok::<_, Refusal>(Some((ids, page.next.map(Some))))
        }
    });
    let ids = pages.flat_map(|page| stream::iter(page.unwrap_or_else(|refusal| vec![Err(refusal)])));
    ids.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_names_of_the_wire() {
        for state in [
            ExecutionStatus::Pending,
            ExecutionStatus::Running,
            ExecutionStatus::Paused,
            ExecutionStatus::Completed,
            ExecutionStatus::Failed,
            ExecutionStatus::Cancelled,
            ExecutionStatus::ContinuedAsNew,
        ] {
            let wire = serde_json::to_string(&view::status(state)).unwrap();
            assert_eq!(format!("\"{}\"", status_name(state)), wire);
            assert_eq!(status(status_name(state)), Some(state));
        }
        for other in ["Failed", "", "fail", "failed\"", "failed "] {
            assert_eq!(status(other), None, "{other}");
        }
    }
}
