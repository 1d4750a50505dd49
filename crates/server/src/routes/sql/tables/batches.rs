//! Batches of a tenant with their members, phases and steps.

use axum::Json;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use segno::limits::MAX_PAGE_ROWS;
use segno_actions::Listed;
use segno_ledger::archive;
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, Scan, TableInfo, Value};

use super::listing::{
    Fields, Listing, Part, Parts, fields, ids, if_there, nested, number_of, pages, unshown,
};
use super::retired::{Retired, Show, Shown, with_archive};
use super::{ARCHIVED, UNREADABLE, column, pushed};
use crate::app::Tenant;
use crate::extract::Query;
use crate::problem::Refusal;
use crate::routes::batches::{self as routes, BatchQuery};

/// Batches of runbooks.
pub static BATCHES: TableInfo = TableInfo {
    name: "batches",
    doc: "Batches of runbooks, newest first.",
    columns: &[
        pushed("id", Kind::Integer, Pushdown::Equal, "Id of the batch"),
        pushed("runbook", Kind::Text, Pushdown::Equal, "Name of its runbook"),
        column("runbook_version", Kind::Integer, "Version that it follows"),
        column("batch_start_time", Kind::Time, "Reference time of the phases"),
        column(
            "status",
            Kind::Text,
            "`detected`, `init_dispatched`, `active`, `completed`, `failed` or `cancelled`",
        ),
        column("detected_at", Kind::Time, "When it was created"),
        column("init_dispatched_at", Kind::Time, "When its init steps began"),
        column("completed_at", Kind::Time, "When it ended"),
        column("error_message", Kind::Text, "Why it failed or was cancelled"),
        column("paused_at", Kind::Time, "Since when it is paused"),
        column("pause_reason", Kind::Text, "Why it is paused"),
        column("is_sealed", Kind::Flag, "Whether all its first members are stored"),
        column("members_active", Kind::Integer, "Members that take part"),
        column("members_removed", Kind::Integer, "Members that have left"),
        column("members_failed", Kind::Integer, "Members with a step that failed for good"),
        column("members_cancelled", Kind::Integer, "Members that were cancelled"),
        ARCHIVED,
        UNREADABLE,
    ],
    key: &["id"],
    newest_first: None,
};

/// Members of batches.
pub static MEMBERS: TableInfo = TableInfo {
    name: "members",
    doc: "Members of batches.",
    columns: &[
        pushed("batch", Kind::Integer, Pushdown::Equal, "Id of the batch"),
        column("id", Kind::Integer, "Id of the member"),
        column("key", Kind::Text, "Value of the primary key column"),
        column("status", Kind::Text, "`active`, `removed`, `failed` or `cancelled`"),
        column("added_at", Kind::Time, "When it was added, or added again"),
        column("removed_at", Kind::Time, "When it was removed"),
        column("failed_at", Kind::Time, "When it failed"),
        column("removal_state", Kind::Text, "How far its removal steps have got"),
        column("removal_error", Kind::Text, "Which of its removal steps failed, and why"),
        column("first_seen_at", Kind::Time, "When its source first had it"),
        column("last_seen_at", Kind::Time, "When its source last had it"),
        column("is_current", Kind::Flag, "Whether its source has it"),
        column("data", Kind::Json, "Columns of the source's row, as an object"),
        column("worker_data", Kind::Json, "Variables that results have set, as an object"),
        ARCHIVED,
        UNREADABLE,
    ],
    key: &["batch", "id"],
    newest_first: None,
};

/// Phases of batches.
pub static PHASES: TableInfo = TableInfo {
    name: "phases",
    doc: "Phases of batches.",
    columns: &[
        pushed("batch", Kind::Integer, Pushdown::Equal, "Id of the batch"),
        column("id", Kind::Integer, "Id of the phase execution"),
        column("name", Kind::Text, "Name of the phase"),
        column("offset_minutes", Kind::Integer, "Minutes before the reference time"),
        column("due_at", Kind::Time, "When it becomes due"),
        column("runbook_version", Kind::Integer, "Version of the runbook that it is from"),
        column(
            "status",
            Kind::Text,
            "`pending`, `dispatched`, `completed`, `failed`, `skipped` or `superseded`",
        ),
        column("dispatched_at", Kind::Time, "When its steps began"),
        column("completed_at", Kind::Time, "When it ended"),
        column("reason", Kind::Text, "Why it failed or was left out"),
        column("steps", Kind::Integer, "Number of its steps"),
        column("step_counts", Kind::Json, "Steps of all members by state, as an object"),
        column("members_succeeded", Kind::Integer, "Members that have passed its last step"),
        column("members_failed", Kind::Integer, "Members with a failed step"),
        column("approved_at", Kind::Time, "When it was approved"),
        column("approved_by", Kind::Text, "Id of the key with which it was approved"),
        column("stopped_at", Kind::Time, "When its error budget was spent"),
        ARCHIVED,
    ],
    key: &["batch", "id"],
    newest_first: None,
};

/// Steps of members.
pub static STEPS: TableInfo = TableInfo {
    name: "steps",
    doc: "Steps of the members of batches, and init steps, which have no member.",
    columns: &[
        pushed("batch", Kind::Integer, Pushdown::Equal, "Id of the batch"),
        column("member", Kind::Integer, "Id of the member; NULL for an init step"),
        column("phase", Kind::Integer, "Id of the phase execution; NULL for an init step"),
        column("id", Kind::Integer, "Id of the step execution"),
        column("name", Kind::Text, "Name of the step"),
        column("step_index", Kind::Integer, "Order within its phase, from 0"),
        column("pool", Kind::Text, "The worker pool"),
        column("function", Kind::Text, "The function"),
        column("params", Kind::Text, "Its parameters as JSON text"),
        column(
            "status",
            Kind::Text,
            "`pending`, `dispatched`, `succeeded`, `failed`, `polling`, `poll_timeout`, `rolled_back`, `cancelled` or \
             `skipped`",
        ),
        column("result", Kind::Text, "What the worker returned, as JSON text"),
        column("error_message", Kind::Text, "Why the last attempt failed"),
        column("dispatched_at", Kind::Time, "When the current attempt was sent"),
        column("completed_at", Kind::Time, "When it ended"),
        column("poll_count", Kind::Integer, "Polls of the current attempt"),
        column("retry_count", Kind::Integer, "Attempts after the first"),
        column("rollback_state", Kind::Text, "How far its rollback has got"),
        column("rollback_error", Kind::Text, "Which step of its rollback failed, and why"),
        ARCHIVED,
        UNREADABLE,
    ],
    key: &["batch", "member", "id"],
    newest_first: None,
};

/// The batches of a tenant.
pub fn batches(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &BATCHES,
        places: &[
            ("runbook", &["runbook_name"]),
            ("members_active", &["member_counts", "active"]),
            ("members_removed", &["member_counts", "removed"]),
            ("members_failed", &["member_counts", "failed"]),
            ("members_cancelled", &["member_counts", "cancelled"]),
        ],
        open: Box::new(move |scan| {
            let of_tenant = tenant.clone();
            let live = match named(&scan, "id") {
                Named::None => stream::empty().boxed(),
                Named::One(id) => {
                    let one = async move {
                        let found = if_live(of_tenant.live_batch(id).await)?;
                        found.iter().map(|found| fields(&found.batch)).collect()
                    };
                    stream::once(one).boxed()
                }
                Named::All => all(&of_tenant, scan.equals_text("runbook")),
            };
            let mut retired = of_kind(&archive::BATCHES, &["id"], named(&scan, "id"), stored);
            retired.wanted.extend(scan.equals_text("runbook").map(|name| ("runbook", name.to_owned())));
            with_archive(&tenant, live, retired)
        }),
    }
}

/// What of the archive belongs to a scan: rows of one batch, or of all.
fn of_kind(kind: &'static archive::Kind, key: &'static [&'static str], batch: Named, show: Show) -> Retired {
    let wanted = match batch {
        // There is no such id.
        Named::None => vec![("id", String::new())],
        Named::One(id) => vec![("id", id.to_string())],
        Named::All => Vec::new(),
    };
    Retired { kind, columns: &["data"], wanted, range: (None, None), key, newest_first: None, show }
}

/// An archived row: it was stored as it is shown.
fn stored(_: &Tenant, row: Shown<'_>) -> Result<Fields, Refusal> {
    serde_json::from_str(row.text(0)).map_err(unshown)
}

/// The same with the id of its batch.
fn stored_with_batch(tenant: &Tenant, row: Shown<'_>) -> Result<Fields, Refusal> {
    let batch = serde_json::value::RawValue::from_string(row.id.to_owned()).map_err(unshown)?;
    let mut fields = stored(tenant, row)?;
    fields.insert("batch".to_owned(), batch);
    Ok(fields)
}

/// What is in the store no more, or never was, has no live rows.
fn if_live<T>(found: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    if_there(found.map(Json))
}

fn all(tenant: &Tenant, runbook: Option<&str>) -> Parts {
    let (tenant, runbook) = (tenant.clone(), runbook.map(str::to_owned));
    pages(move |cursor| {
        let query = BatchQuery {
            runbook: runbook.clone(),
            limit: Some(MAX_PAGE_ROWS),
            cursor,
            ..BatchQuery::default()
        };
        let tenant = tenant.clone();
        async move {
            let page = routes::list(tenant, Query(query)).await?.0;
            Part::of(&page.batches, &page.unreadable, "id", page.next_cursor)
        }
    })
}

/// Which batch a scan names.
enum Named {
    /// None that there can be.
    None,
    One(u64),
    All,
}

fn named(scan: &Scan, column: &str) -> Named {
    match scan.equals(column) {
        Some(Value::Integer(id)) => u64::try_from(*id).map_or(Named::None, Named::One),
        _ => Named::All,
    }
}

/// The batches whose rows a scan needs.
fn of_batches(tenant: &Tenant, scan: &Scan) -> BoxStream<'static, Result<u64, Refusal>> {
    match named(scan, "batch") {
        Named::None => stream::empty().boxed(),
        Named::One(id) => stream::iter([Ok(id)]).boxed(),
        Named::All => ids(all(tenant, None), |row| number_of(row, "id")),
    }
}

/// The members of a tenant's batches.
pub fn members(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &MEMBERS,
        places: &[
            ("key", &["member_key"]),
            ("first_seen_at", &["_first_seen_at"]),
            ("last_seen_at", &["_last_seen_at"]),
            ("is_current", &["_is_current"]),
        ],
        open: Box::new(move |scan| {
            let (batches, of_tenant) = (of_batches(&tenant, &scan), tenant.clone());
            let live = nested(batches, move |batch| of_batch(of_tenant.clone(), batch));
            let key = &["batch", "id"];
            let retired = of_kind(&archive::MEMBERS, key, named(&scan, "batch"), stored_with_batch);
            with_archive(&tenant, live, retired)
        }),
    }
}

fn of_batch(tenant: Tenant, batch: u64) -> Parts {
    pages(move |cursor| {
        let tenant = tenant.clone();
        async move {
            let after = cursor.and_then(|cursor| cursor.parse().ok());
            let found = if_live(tenant.live_members(batch, after, MAX_PAGE_ROWS).await)?;
            let Some(page) = found else { return Part::of::<()>(&[], &[], "id", None) };
            let is_more = page.len() == MAX_PAGE_ROWS;
            let last = page.last().map(|row| match row {
                Listed::Readable(member) => member.id.to_string(),
                Listed::Unreadable(row) => row.id.clone(),
            });
            let (members, unreadable) = Listed::split(page);
            let unreadable: Vec<segno_api::Unreadable> =
                unreadable.into_iter().map(crate::app::runbook_rows::unreadable).collect();
            Part::of(&members, &unreadable, "id", last.filter(|_| is_more))?.with("batch", &batch)
        }
    })
}

/// The phases of a tenant's batches.
pub fn phases(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &PHASES,
        places: &[("batch", &["batch_id"]), ("name", &["phase_name"])],
        open: Box::new(move |scan| {
            let (batches, of_tenant) = (of_batches(&tenant, &scan), tenant.clone());
            let live = nested(batches, move |batch| {
                let tenant = of_tenant.clone();
                let read = async move {
                    let found = if_live(tenant.live_batch(batch).await)?;
                    let phases = found.map(|found| found.phases).unwrap_or_default();
                    phases.iter().map(fields).collect()
                };
                stream::once(read).boxed()
            });
            let retired = of_kind(&archive::PHASES, &["batch_id", "id"], named(&scan, "batch"), stored);
            with_archive(&tenant, live, retired)
        }),
    }
}

/// The steps of a tenant's batches.
pub fn steps(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &STEPS,
        places: &[
            ("member", &["batch_member_id"]),
            ("phase", &["phase_execution_id"]),
            ("name", &["step_name"]),
            ("pool", &["worker_id"]),
            ("function", &["function_name"]),
            ("params", &["params_json"]),
            ("result", &["result_json"]),
        ],
        open: Box::new(move |scan| {
            let (batches, of_tenant) = (of_batches(&tenant, &scan), tenant.clone());
            let live = nested(batches, move |batch| steps_of(of_tenant.clone(), batch));
            let key = &["batch", "batch_member_id", "id"];
            let retired = of_kind(&archive::STEPS, key, named(&scan, "batch"), stored_with_batch);
            with_archive(&tenant, live, retired)
        }),
    }
}

/// The init steps of a batch, then those of its members.
fn steps_of(tenant: Tenant, batch: u64) -> Parts {
    let of_init = tenant.clone();
    let init = async move {
        let found = if_live(of_init.live_batch(batch).await)?;
        let init = found.map(|found| found.init).unwrap_or_default();
        Ok(Part::of(&init, &[], "id", None)?.with("batch", &batch)?.into_rows())
    };
    let members = ids(of_batch(tenant.clone(), batch), |row| number_of(row, "id"));
    let of_members = nested(members, move |member| {
        let tenant = tenant.clone();
        let read = async move {
            let found = if_live(tenant.live_member(batch, member).await)?;
            let Some(found) = found else { return Ok(Vec::new()) };
            let part = Part::of(&found.steps, &found.unreadable, "id", None)?;
            Ok(part.with("batch", &batch)?.with("batch_member_id", &member)?.into_rows())
        };
        stream::once(read).boxed()
    });
    stream::once(init).chain(of_members).boxed()
}
