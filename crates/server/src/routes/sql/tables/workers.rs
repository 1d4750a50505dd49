//! Workers of a tenant, and the pools that hand calls to them.

use segno::limits::MAX_PAGE_ROWS;
use segno_ledger::sql::{ColumnKind as Kind, TableInfo};

use super::listing::{Listing, Part, pages};
use super::{UNREADABLE, column};
use crate::app::Tenant;
use crate::extract::Query;
use crate::routes::paging::Page;
use crate::routes::{pools, workers as listed};

/// Pools of workers.
pub static QUEUES: TableInfo = TableInfo {
    name: "queues",
    doc: "Pools of workers: how calls reach them, who works, and whether calls are held back.",
    columns: &[
        column("name", Kind::Text, "Name of the pool"),
        column("origin", Kind::Text, "Where it is declared: `settings` or `announced`"),
        column("transport", Kind::Text, "How calls reach its workers: `queue`, `local` or `bus`"),
        column("functions", Kind::Json, "Functions that may be called through it, as an array"),
        column("calls_per_second", Kind::Real, "At most so many calls are handed out per second"),
        column("timeout", Kind::Text, "Longest time of one attempt of calls that do not say"),
        column("worker_count", Kind::Integer, "Workers that fetched in the last two minutes, or hold calls"),
        column("in_flight", Kind::Integer, "Calls that they have leased and not answered"),
        column("last_seen_at", Kind::Time, "When one of them last fetched or answered"),
        column("paused_at", Kind::Time, "Since when it is paused"),
        column("pause_reason", Kind::Text, "Why it is paused"),
        column("throttled_until", Kind::Time, "Until when it rests because its workers were throttled"),
        UNREADABLE,
    ],
    key: &["name"],
    newest_first: None,
};

/// Workers that fetch.
pub static WORKERS: TableInfo = TableInfo {
    name: "workers",
    doc: "Workers that were heard of in the last two minutes, one row for each node that they talk to.",
    columns: &[
        column("worker", Kind::Text, "The name that it gives itself"),
        column("node", Kind::Text, "The node that it talks to"),
        column("functions", Kind::Json, "Functions that it asked for, as an array"),
        column("tags", Kind::Json, "Tags that it asked for, as an array"),
        column("pools", Kind::Json, "Pools that it asked for, as an array"),
        column("in_flight", Kind::Integer, "Calls that it has leased and not answered"),
        column("last_seen_at", Kind::Time, "When it last fetched or answered"),
        UNREADABLE,
    ],
    key: &["worker", "node"],
    newest_first: None,
};

/// The pools of a tenant.
pub fn queues(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &QUEUES,
        places: &[("paused_at", &["paused", "at"]), ("pause_reason", &["paused", "reason"])],
        open: Box::new(move |_| {
            let tenant = tenant.clone();
            pages(move |cursor| {
                let tenant = tenant.clone();
                async move {
                    let page = Page { limit: Some(MAX_PAGE_ROWS), cursor };
                    let page = pools::list(tenant, Query(page)).await?.0;
                    Part::of(&page.pools, &page.unreadable, "name", page.next_cursor)
                }
            })
        }),
    }
}

/// The workers of a tenant.
pub fn workers(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &WORKERS,
        places: &[],
        open: Box::new(move |_| {
            let tenant = tenant.clone();
            pages(move |cursor| {
                let tenant = tenant.clone();
                async move {
                    let page = Page { limit: Some(MAX_PAGE_ROWS), cursor };
                    let page = listed::list(tenant, Query(page)).await?.0;
                    Part::of(&page.workers, &page.unreadable, "worker", page.next_cursor)
                }
            })
        }),
    }
}
