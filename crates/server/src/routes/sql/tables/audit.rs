//! The audit log of a tenant, for administrators.

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use segno::limits::MAX_PAGE_ROWS;
use segno_api::audit::ListAudit;
use segno_ledger::archive::{ArchivedRow as _, AuditRow};
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, TableInfo};

use super::listing::{Listing, Part, fields, pages, unshown};
use super::retired::{Retired, with_archive};
use super::{ARCHIVED, UNREADABLE, column, pushed};
use crate::app::Tenant;
use crate::extract::Query;
use crate::problem::{Code, Refusal};
use crate::routes::audit::list;

/// Who changed what.
pub static AUDIT: TableInfo = TableInfo {
    name: "audit",
    doc: "Changes and who asked for them, newest first. Only for administrators of all tenants.",
    columns: &[
        column("id", Kind::Text, "Id of the entry"),
        pushed("at", Kind::Time, Pushdown::Range, "When"),
        pushed("key", Kind::Text, Pushdown::Equal, "Id of the key; NULL on a server without authentication"),
        column("operation", Kind::Text, "Method and route, as in `POST /v1/instances/{id}/cancel`"),
        column("path", Kind::Text, "The path that was asked for"),
        column("status", Kind::Integer, "HTTP status of the answer"),
        column("request_id", Kind::Text, "Id of the request"),
        column("reason", Kind::Text, "Why, if the caller said so"),
        ARCHIVED,
        UNREADABLE,
    ],
    key: &["id"],
    newest_first: Some("at"),
};

/// All columns of archived entries.
const COLUMNS: &[&str] = &[
    "tenant_id",
    "workspace_id",
    "id",
    "incarnation",
    "revision",
    "ended_at",
    "at",
    "key",
    "operation",
    "path",
    "status",
    "request_id",
    "reason",
];

/// The audit log of a tenant; refused to callers who may not read it.
pub fn audit(tenant: &Tenant, may_read: bool) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &AUDIT,
        places: &[],
        open: Box::new(move |scan| {
            if !may_read {
                let detail = "table audit is for administrators with a grant for every namespace and tenant";
                return stream::iter([Err(Refusal::new(Code::Forbidden, detail))]).boxed();
            }
            let (from, before) = scan.range("at");
            let time = |ms: Option<i64>| ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
            let request = ListAudit {
                actor: scan.equals_text("key").map(str::to_owned),
                since: time(from),
                until: time(before),
                limit: Some(MAX_PAGE_ROWS),
                ..ListAudit::default()
            };
            let of_tenant = tenant.clone();
            let live = pages(move |cursor| {
                let (tenant, request) = (of_tenant.clone(), ListAudit { cursor, ..request.clone() });
                async move {
                    let page = list(tenant, Query(request)).await?.0;
                    Part::of(&page.entries, &page.unreadable, "id", page.next_cursor)
                }
            });
            let retired = Retired {
                kind: &segno_ledger::archive::AUDIT,
                columns: COLUMNS,
                wanted: scan.equals_text("key").map(|key| ("key", key.to_owned())).into_iter().collect(),
                range: (from, before),
                key: &["id"],
                newest_first: Some("at"),
                show: |tenant, row| {
                    let row = AuditRow::from_cells(row.cells.to_vec());
                    fields(&tenant.archived_audit(&row.map_err(unshown)?))
                },
            };
            with_archive(&tenant, live, retired)
        }),
    }
}
