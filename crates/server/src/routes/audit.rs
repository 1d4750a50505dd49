//! Who changed what.

use axum::Json;
use segno_actions::Listed;
use segno_api::audit::{AuditEntry, AuditList, ListAudit};

use super::instances::list::unix_ms;
use super::paging::{self, Chunk, Found, Row, limit, newest_first};
use crate::app::Tenant;
use crate::audit::before_time;
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Changes in a namespace and tenant, newest first.
#[utoipa::path(get, path = "/v1/audit", tag = "keys", params(ScopeParameters, ListAudit), responses(
    (status = 200, body = AuditList),
))]
pub async fn list(tenant: Tenant, Query(request): Query<ListAudit>) -> Result<Json<AuditList>, Refusal> {
    let rows = limit(request.limit)?;
    let cursor = newest_first(request.cursor.as_deref())?.map(str::to_owned);
    let first = request.until.map(|until| before_time(unix_ms(until)));
    // The later of two places is the one with the greater id.
    let first = first.into_iter().chain(cursor).max();
    let tenant = &tenant;
    let since = request.since;
    let read = |after: Option<String>, rows| async move {
        let mut page = tenant.audit(after.as_deref(), rows).await?;
        // What came before is not read on: this is the last page then.
        if let Some(since) = since {
            let is_before =
                |row: &Listed<AuditEntry>| matches!(row, Listed::Readable(entry) if entry.at < since);
            page.truncate(page.iter().position(is_before).unwrap_or(page.len()));
        }
        Ok(Chunk::of(page, rows))
    };
    let show = |row: Listed<AuditEntry>| match &row {
        Listed::Readable(entry) => {
            let (cursor, matches) = (entry.id.clone(), matches(&request, entry));
            Ok(Row { matches, ..Row::new(cursor, row) })
        }
        Listed::Unreadable(unreadable) => Ok(Row::new(unreadable.id.clone(), row)),
    };
    let Found { rows: entries, unreadable, next_cursor } = paging::page(rows, first, read, show).await?;
    Ok(Json(AuditList { entries, unreadable, next_cursor }))
}

fn matches(request: &ListAudit, entry: &AuditEntry) -> bool {
    request.actor.as_deref().is_none_or(|actor| entry.key.as_deref() == Some(actor))
        && request.action.as_deref().is_none_or(|action| is_action(&entry.operation, action))
        && request.resource.as_deref().is_none_or(|resource| is_about(&entry.path, resource))
}

/// Whether an operation is the one that is asked for: as a whole, by its method, or by a word of its route.
fn is_action(operation: &str, action: &str) -> bool {
    let (method, route) = operation.split_once(' ').unwrap_or((operation, ""));
    let is_word = |word: &str| !word.is_empty() && word == action;
    operation == action || method.eq_ignore_ascii_case(action) || route.split('/').any(is_word)
}

/// Whether a path is the one that is asked for, lies below it, or has it as the name of something.
fn is_about(path: &str, resource: &str) -> bool {
    // Behind it is the tenant that a refused request named.
    let path = path.split('?').next().unwrap_or_default();
    if resource.starts_with('/') {
        let rest = path.strip_prefix(resource.trim_end_matches('/'));
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    }
    path.split('/').any(|word| decoded(word) == resource)
}

/// A part of a path as it was before it was escaped.
fn decoded(word: &str) -> String {
    // In a path these mean themselves; in a form they would not.
    let plain = word.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(plain.as_bytes()).next().map_or_else(String::new, |(name, _)| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_method_word_and_as_a_whole() {
        let operation = "POST /v1/instances/{id}/cancel";
        for (action, is_found) in [
            ("POST /v1/instances/{id}/cancel", true),
            ("POST", true),
            ("post", true),
            ("cancel", true),
            ("instances", true),
            ("can", false),
            ("DELETE", false),
            ("", false),
        ] {
            assert_eq!(is_action(operation, action), is_found, "{action}");
        }
    }

    #[test]
    fn resources_are_found_by_path_and_by_name() {
        let path = "/v1/instances/order%2F7/cancel";
        for (resource, is_found) in [
            ("/v1/instances", true),
            ("/v1/instances/", true),
            ("/v1/instances/order%2F7", true),
            ("/v1/inst", false),
            ("order/7", true),
            ("order", false),
            ("cancel", true),
        ] {
            assert_eq!(is_about(path, resource), is_found, "{resource}");
        }
    }
}
