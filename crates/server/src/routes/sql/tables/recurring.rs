//! Recurring actions of a tenant, and what became of their occurrences.

use futures_util::stream::{self, StreamExt as _};
use segno::limits::MAX_PAGE_ROWS;
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, TableInfo};

use super::listing::{Fields, Listing, Part, Parts, fields, ids, if_there, nested, pages, text_of, unshown};
use super::retired::{Retired, Shown, with_archive};
use super::{ARCHIVED, UNREADABLE, column, pushed};
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::problem::Refusal;
use crate::routes::paging::Page;
use crate::routes::recurring::{inspect, manage, view};

/// Actions that are called again and again.
pub static RECURRING: TableInfo = TableInfo {
    name: "recurring",
    doc: "Recurring actions, newest first.",
    columns: &[
        pushed("id", Kind::Text, Pushdown::Equal, "Id of the recurring action"),
        column("name", Kind::Text, "What people call it"),
        column("cron_expr", Kind::Text, "Its cron expression, if it has one"),
        column("timezone", Kind::Text, "Its time zone"),
        column("schedule", Kind::Text, "The schedule in plain English"),
        column("enabled", Kind::Flag, "Whether it fires"),
        column("status", Kind::Text, "`active`, `paused` or `completed`"),
        column("description", Kind::Text, "What it is for"),
        column("function", Kind::Text, "The function; empty if it starts an orchestration"),
        column("orchestration", Kind::Text, "The orchestration that it starts"),
        column("action_type", Kind::Text, "What sort of action it is"),
        column("next_execution_at", Kind::Time, "The next scheduled time"),
        column("last_executed_at", Kind::Time, "When it last fired"),
        column("execution_count", Kind::Integer, "How often it has fired"),
        column("created_at", Kind::Time, "When it was made"),
        column("labels", Kind::Json, "Labels as an object"),
        UNREADABLE,
    ],
    key: &["id"],
    newest_first: None,
};

/// What became of occurrences.
pub static HISTORY: TableInfo = TableInfo {
    name: "recurring_history",
    doc: "What became of the occurrences of recurring actions, and why.",
    columns: &[
        pushed("recurring", Kind::Text, Pushdown::Equal, "Id of the recurring action"),
        column("time", Kind::Time, "The scheduled time; of a stretch, the first"),
        column("decided_at", Kind::Time, "When it was decided"),
        column("decision", Kind::Text, "`fired`, `skipped`, `buffered`, `refused` or `disabled`"),
        column("reason", Kind::Text, "Why it was skipped"),
        column("detail", Kind::Text, "More about it, for people"),
        column("manual", Kind::Flag, "Whether a caller ran it, out of schedule"),
        column("instance", Kind::Text, "The instance of its call"),
        column("outcome", Kind::Text, "`completed`, `failed` or `cancelled`; NULL while it runs"),
        column("ended_at", Kind::Time, "When its call ended"),
        column("until", Kind::Time, "Of a stretch: the first scheduled time after it"),
        column("count", Kind::Integer, "Of a stretch: how many occurrences it has"),
        ARCHIVED,
        UNREADABLE,
    ],
    key: &["recurring", "time", "decided_at", "unreadable"],
    newest_first: None,
};

/// The recurring actions of a tenant.
pub fn recurring(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &RECURRING,
        places: &[("function", &["provider"])],
        open: Box::new(move |scan| {
            let named = scan.equals_text("id").map(str::to_owned);
            match named {
                None => all(&tenant),
                Some(id) => one(tenant.clone(), id),
            }
        }),
    }
}

fn all(tenant: &Tenant) -> Parts {
    let tenant = tenant.clone();
    pages(move |cursor| {
        let tenant = tenant.clone();
        async move {
            let query = manage::RecurringQuery { limit: Some(MAX_PAGE_ROWS), cursor, ..Default::default() };
            let page = manage::list(tenant, Query(query)).await?.0;
            Part::of(&page.recurring_actions, &page.unreadable, "id", page.next_cursor)
        }
    })
}

/// The row of one, from the same object that its route shows.
fn one(tenant: Tenant, id: String) -> Parts {
    let read = async move {
        let Some(found) = if_there(manage::get(tenant, Path(id)).await)? else { return Ok(Vec::new()) };
        let mut row = fields(&found)?;
        let template = fields(&found.action_template)?;
        for name in ["provider", "orchestration", "action_type"] {
            if let Some(value) = template.get(name) {
                row.insert(name.to_owned(), value.clone());
            }
        }
        Ok(vec![row])
    };
    stream::once(read).boxed()
}

/// The histories of a tenant's recurring actions.
pub fn history(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &HISTORY,
        places: &[],
        open: Box::new(move |scan| {
            let named = scan.equals_text("recurring").map(str::to_owned);
            let retired = Retired {
                kind: &segno_ledger::archive::RECURRING_HISTORY,
                columns: &["data"],
                wanted: named.iter().map(|id| ("id", id.clone())).collect(),
                range: (None, None),
                key: &["recurring", "time"],
                newest_first: None,
                show: archived_entry,
            };
            // A name leads to one as well, whose id is another one then.
            let found = match named {
                None => all(&tenant),
                Some(id) => one(tenant.clone(), id),
            };
            let ids = ids(found, |row| text_of(row, "id"));
            let of_tenant = tenant.clone();
            let live = nested(ids, move |id| of_action(of_tenant.clone(), id));
            with_archive(&tenant, live, retired)
        }),
    }
}

/// The fields of an archived entry.
fn archived_entry(tenant: &Tenant, row: Shown<'_>) -> Result<Fields, Refusal> {
    let entry = serde_json::from_str(row.text(0)).map_err(unshown)?;
    let entry = view::entry(tenant.shown_entry(entry));
    let part = Part::of(&[entry], &[], "time", None)?;
    let rows = part.with("recurring", &row.id)?.or("manual", &false)?.into_rows();
    Ok(rows.into_iter().next().unwrap_or_default())
}

fn of_action(tenant: Tenant, id: String) -> Parts {
    pages(move |cursor| {
        let (tenant, id) = (tenant.clone(), id.clone());
        async move {
            let page = Page { limit: Some(MAX_PAGE_ROWS), cursor };
            let found = if_there(inspect::history(tenant, Path(id.clone()), Query(page)).await)?;
            let Some(page) = found else { return Part::of::<()>(&[], &[], "time", None) };
            let part = Part::of(&page.entries, &page.unreadable, "time", page.next_cursor)?;
            part.with("recurring", &id)?.or("manual", &false)
        }
    })
}
