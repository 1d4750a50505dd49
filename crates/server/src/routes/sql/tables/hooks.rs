//! Webhooks of a tenant.

use segno::limits::MAX_PAGE_ROWS;
use segno_ledger::sql::{ColumnKind as Kind, TableInfo};

use super::listing::{Listing, Part, pages};
use super::{UNREADABLE, column};
use crate::app::Tenant;
use crate::extract::Query;
use crate::routes::hooks::declare;
use crate::routes::paging::Page;

/// Routes of webhooks.
pub static HOOKS: TableInfo = TableInfo {
    name: "hooks",
    doc: "Routes of webhooks, by name.",
    columns: &[
        column("name", Kind::Text, "Name of the route"),
        column("path", Kind::Text, "Where senders post to"),
        column("version", Kind::Integer, "Changes with every write"),
        column("declaration", Kind::Json, "The declaration; secrets in it are references"),
        UNREADABLE,
    ],
    key: &["name"],
    newest_first: None,
};

/// The routes of a tenant.
pub fn hooks(tenant: &Tenant) -> Listing {
    let tenant = tenant.clone();
    Listing {
        info: &HOOKS,
        places: &[],
        open: Box::new(move |_| {
            let tenant = tenant.clone();
            pages(move |cursor| {
                let tenant = tenant.clone();
                async move {
                    let page = Page { limit: Some(MAX_PAGE_ROWS), cursor };
                    let page = declare::list(tenant, Query(page)).await?.0;
                    Part::of(&page.hooks, &page.unreadable, "name", page.next_cursor)
                }
            })
        }),
    }
}
