//! Saved views and queries.

use axum::Json;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use segno_actions::Listed;
use segno_api::saved::{Save, Saved, SavedList};

use super::paging::{self, Chunk, Found, Page, Row, limit};
use super::versions::{self, Expected};
use crate::app::{SaveExpected, Tenant};
use crate::extract::{Body, Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Saved views and queries of the tenant, by name.
#[utoipa::path(get, path = "/v1/saved", tag = "saved", params(ScopeParameters, Page), responses(
    (status = 200, body = SavedList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<SavedList>, Refusal> {
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let after = paging::text_of(after.as_deref())?;
        Ok(Chunk::of(tenant.saved(after.as_deref(), rows).await?, rows))
    };
    let show = |row: Listed<Saved>| {
        let name = match &row {
            Listed::Readable(saved) => &saved.name,
            Listed::Unreadable(row) => &row.id,
        };
        Ok(Row::new(paging::of_text(name), row))
    };
    let Found { rows: saved, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor.clone(), read, show).await?;
    Ok(Json(SavedList { saved, unreadable, next_cursor }))
}

/// One saved view or query.
#[utoipa::path(get, path = "/v1/saved/{name}", tag = "saved", params(
    ("name" = String, Path, description = "Its name"), ScopeParameters,
), responses((status = 200, body = Saved, headers(("etag" = String, description = "The version")))))]
pub async fn get(tenant: Tenant, Path(name): Path<String>) -> Result<Response, Refusal> {
    Ok(answer(StatusCode::OK, tenant.saved_one(&name).await?))
}

/// Saves a view or query under a name, and replaces what is there. With `If-None-Match: *` it
/// replaces nothing; with `If-Match` it replaces that version only. A tenant has at most 200.
#[utoipa::path(put, path = "/v1/saved/{name}", tag = "saved", params(
    ("name" = String, Path, description = "Its name: one line of at most 128 bytes"), ScopeParameters,
    ("if-none-match" = Option<String>, Header, description = "`*`: nothing is saved under this name yet"),
    ("if-match" = Option<String>, Header, description = "The version that is replaced"),
), request_body = Save, responses(
    (status = 201, body = Saved, description = "It is new"),
    (status = 200, body = Saved, description = "It was replaced"),
))]
pub async fn put(
    tenant: Tenant,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(save): Body<Save>,
) -> Result<Response, Refusal> {
    let expected = match versions::given(&headers)? {
        None => SaveExpected::Anything,
        Some(Expected::Absent) => SaveExpected::Absent,
        Some(Expected::Version(version)) => SaveExpected::Version(version),
    };
    let (saved, is_new) = tenant.save(&name, save, expected).await?;
    Ok(answer(if is_new { StatusCode::CREATED } else { StatusCode::OK }, saved))
}

/// Deletes a saved view or query.
#[utoipa::path(delete, path = "/v1/saved/{name}", tag = "saved", params(
    ("name" = String, Path, description = "Its name"), ScopeParameters,
    ("if-match" = Option<String>, Header, description = "Only this version"),
), responses((status = 204, description = "It is deleted")))]
pub async fn delete(
    tenant: Tenant,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    let expected = versions::version(&headers)?.map_or(SaveExpected::Anything, SaveExpected::Version);
    tenant.delete_saved(&name, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn answer(status: StatusCode, saved: Saved) -> Response {
    (status, [(ETAG, format!("\"{}\"", saved.version))], Json(saved)).into_response()
}
