//! Instances of all tenants that a key may enter.

use futures_util::stream::{self, StreamExt as _};
use segno::client::Instance;
use segno::store::InstanceCursor;
use segno_actions::functions::FUNCTION_LABEL;
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, Row, Rows, Scan, Table, TableInfo, Value};

use super::instances::{
    COMPLETED_AT, CREATED_AT, DURATION_MS, EXECUTION, FAILURE_CATEGORY, FAILURE_CODE, KIND, ORCHESTRATION,
    PARENT, REVISION, START_AT, STATUS, UPDATED_AT, VERSION, cell, created, page_rows, status,
};
use super::{column, pushed};
use crate::app::{Granted, GrantedFilter, Refused};
use crate::scope::Scope;

/// All instances that the grants of the key open, without results.
pub static ALL_INSTANCES: TableInfo = TableInfo {
    name: "all_instances",
    doc: "Instances of every namespace and tenant that the key may enter, without results and messages.",
    columns: &[
        pushed("namespace", Kind::Text, Pushdown::Equal, "Namespace of the instance"),
        pushed("tenant", Kind::Text, Pushdown::Equal, "Tenant of the instance"),
        column("id", Kind::Text, "Id of the instance in its tenant"),
        ORCHESTRATION,
        column("function", Kind::Text, "The function that it calls; NULL for an orchestration"),
        KIND,
        VERSION,
        STATUS,
        EXECUTION,
        PARENT,
        CREATED_AT,
        START_AT,
        UPDATED_AT,
        COMPLETED_AT,
        DURATION_MS,
        FAILURE_CODE,
        FAILURE_CATEGORY,
        REVISION,
    ],
    key: &["namespace", "tenant", "id"],
    newest_first: None,
};

/// The instances that a caller may see.
pub struct AllInstances(pub Granted);

impl Table for AllInstances {
    fn info(&self) -> &'static TableInfo {
        &ALL_INSTANCES
    }

    fn scan(&self, scan: Scan) -> Rows {
        let Some(filter) = filter(&scan) else { return stream::empty().boxed() };
        let named = (scan.equals_text("namespace"), scan.equals_text("tenant"));
        let prefixes: Vec<String> =
            self.0.prefixes().into_iter().filter_map(|prefix| narrowed(prefix, named)).collect();
        let granted = self.0.clone();
        let of_prefix = move |prefix: String| {
            let (granted, filter, scan) = (granted.clone(), filter.clone(), scan.clone());
            stream::try_unfold(Some(None), move |cursor: Option<Option<InstanceCursor>>| {
                let (granted, prefix, scan) = (granted.clone(), prefix.clone(), scan.clone());
                let filter = filter.clone();
                async move {
                    let Some(cursor) = cursor else { return Ok(None) };
                    let page = granted.instances(&prefix, GrantedFilter { cursor, ..filter }).await;
                    let page = page.map_err(Refused)?;
                    let rows = page.instances.iter().map(|(scope, found)| row(scope, found, &scan)).collect();
                    Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Some((rows, page.next.map(Some))))
                }
            })
            .boxed()
        };
        stream::iter(prefixes).flat_map(of_prefix).boxed()
    }
}

fn filter(scan: &Scan) -> Option<GrantedFilter> {
    let status = match scan.equals_text("status") {
        Some(name) => Some(status(name)?),
        None => None,
    };
    let (created_from_ms, created_before_ms) = created(scan)?;
    let orchestration = scan.equals_text("orchestration").map(str::to_owned);
    Some(GrantedFilter {
        status,
        orchestration,
        created_from_ms,
        created_before_ms,
        cursor: None,
        limit: page_rows(scan),
    })
}

/// The part of a granted prefix that a namespace and tenant leave; `None` when nothing is left.
fn narrowed(prefix: String, named: (Option<&str>, Option<&str>)) -> Option<String> {
    let wanted = match named {
        (None, _) => String::new(),
        (Some(namespace), None) => format!("{namespace}/"),
        (Some(namespace), Some(tenant)) => format!("{namespace}/{tenant}/"),
    };
    match () {
        () if prefix.starts_with(&wanted) => Some(prefix),
        () if wanted.starts_with(&prefix) => Some(wanted),
        () => None,
    }
}

fn row(scope: &Scope, found: &Instance, scan: &Scan) -> Row {
    let cell = |name: &&str| match *name {
        "namespace" => Value::Text(scope.namespace().to_owned()),
        "tenant" => Value::Text(scope.tenant().to_owned()),
        "function" => {
            let label = found.labels.get(FUNCTION_LABEL);
            Value::text(label.and_then(|label| label.strip_prefix(scope.prefix())))
        }
        name => cell(found, name),
    };
    scan.columns.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_tenant_narrows_what_is_read_and_never_widens_it() {
        for (prefix, namespace, tenant, expected) in [
            ("", None, None, Some("")),
            ("", Some("shop"), None, Some("shop/")),
            ("", Some("shop"), Some("eu"), Some("shop/eu/")),
            ("", None, Some("eu"), Some("")),
            ("shop/", Some("shop"), Some("eu"), Some("shop/eu/")),
            ("shop/", Some("sho"), None, None),
            ("shop/eu/", Some("shop"), None, Some("shop/eu/")),
            ("shop/eu/", Some("shop"), Some("us"), None),
            ("shop/eu/", Some(""), Some(""), None),
        ] {
            let found = narrowed(prefix.to_owned(), (namespace, tenant));
            assert_eq!(found.as_deref(), expected, "{prefix} {namespace:?} {tenant:?}");
        }
    }
}
