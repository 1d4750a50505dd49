//! Actions of a tenant.

use segno_api::action::ActionStatusName;
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, Scan, TableInfo};

use super::listing::{Listing, Part, Parts, fields, if_there, pages, unshown};
use super::retired::{Retired, with_archive};
use super::{ARCHIVED, UNREADABLE, column, pushed};
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::routes::actions::{ActionQuery, get_live_without_body, list, without_body};

/// Functions and orchestrations called once, at a time or because a webhook came in.
pub static ACTIONS: TableInfo = TableInfo {
    name: "actions",
    doc: "Actions: functions and orchestrations that are called once, at a time or because a webhook came in.",
    columns: &[
        pushed("id", Kind::Text, Pushdown::Equal, "Id of the action"),
        column("label", Kind::Text, "What people call it"),
        column("function", Kind::Text, "The function; empty if it starts an orchestration"),
        column("orchestration", Kind::Text, "The orchestration that it starts"),
        column("input", Kind::Json, "Input of the function"),
        column("trigger", Kind::Text, "What makes it due: `scheduled` or `webhook`"),
        column("due_at", Kind::Time, "When it is due, if that is a time"),
        column("received_at", Kind::Time, "When the webhook came in"),
        pushed("status", Kind::Text, Pushdown::Equal, "`pending`, `running`, `completed` or `failed`"),
        column("result", Kind::Json, "What the function returned"),
        column("reason", Kind::Text, "Why it failed"),
        column("recurrence_seconds", Kind::Integer, "Seconds after which it is done again"),
        column("created_at", Kind::Time, "When it was made"),
        column("updated_at", Kind::Time, "When it was last changed"),
        column("instance", Kind::Text, "The instance that runs it, or ran it"),
        ARCHIVED,
        UNREADABLE,
    ],
    key: &["id", "created_at"],
    newest_first: None,
};

const PLACES: &[(&str, &[&str])] = &[
    ("function", &["tool_name"]),
    ("input", &["tool_input"]),
    ("trigger", &["trigger", "type"]),
    ("due_at", &["trigger", "next_tick_at"]),
    ("received_at", &["trigger", "received_at"]),
    ("status", &["status", "type"]),
    ("result", &["status", "result"]),
    ("reason", &["status", "reason"]),
    ("recurrence_seconds", &["recurrence"]),
];

/// The actions of a tenant.
pub fn actions(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &ACTIONS,
        places: PLACES,
        open: Box::new(move |scan| {
            let mut wanted = Vec::new();
            wanted.extend(scan.equals_text("id").map(|id| ("id", id.to_owned())));
            wanted.extend(scan.equals_text("status").map(|status| ("status", status.to_owned())));
            let retired = Retired {
                kind: &segno_ledger::archive::ACTIONS,
                columns: &["data"],
                wanted,
                range: (None, None),
                key: &["id", "created_at"],
                newest_first: None,
                show: |tenant, row| {
                    let action = serde_json::from_str(row.text(0)).map_err(unshown)?;
                    fields(&without_body(tenant, action)?)
                },
            };
            with_archive(&tenant, live(&tenant, &scan), retired)
        }),
    }
}

/// The actions that are in the store.
fn live(tenant: &Tenant, scan: &Scan) -> Parts {
    let tenant = tenant.clone();
    if let Some(id) = scan.equals_text("id").map(str::to_owned) {
        let one = async move {
            let found = if_there(get_live_without_body(tenant, Path(id)).await)?;
            found.iter().map(fields).collect()
        };
        return Box::pin(futures_util::stream::once(one));
    }
    let status = scan.equals_text("status").and_then(|name| match name {
        "pending" => Some(ActionStatusName::Pending),
        "running" => Some(ActionStatusName::Running),
        "completed" => Some(ActionStatusName::Completed),
        "failed" => Some(ActionStatusName::Failed),
        _ => None,
    });
    pages(move |cursor| {
        let (tenant, status) = (tenant.clone(), status.into_iter().collect());
        async move {
            let query = ActionQuery { status, limit: Some(segno::limits::MAX_PAGE_ROWS), cursor };
            let page = list(tenant, Query(query)).await?.0;
            Part::of(&page.actions, &page.unreadable, "id", page.next_cursor)
        }
    })
}
