//! Functions: those of the configuration, and stored ones.

use axum::Json;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use segno_actions::Listed;
use segno_actions::functions::{self as catalogue, FunctionError, FunctionName, Origin, VersionedFunction};
use segno_api::function::{Function, FunctionList, FunctionOrigin};

use super::paging::{self, Chunk, Found, Page, Row, limit};
use super::versions::{Expected, expected, version};
use crate::app::Tenant;
use crate::extract::{Body, Path, Query};
use crate::problem::{Code, Refusal};
use crate::scope::ScopeParameters;

/// Functions, by name.
#[utoipa::path(get, path = "/v1/functions", tag = "functions", params(ScopeParameters, Page), responses(
    (status = 200, body = FunctionList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<FunctionList>, Refusal> {
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let after = paging::name_of(after.as_deref(), |name| FunctionName::new(name).ok())?;
        let found = tenant.functions(after.as_ref(), rows).await;
        Ok(Chunk::of(found.map_err(|error: FunctionError| tenant.refused(error))?, rows))
    };
    let show = |row: Listed<VersionedFunction>| match row {
        Listed::Readable(found) => {
            Ok(Row::new(paging::of_text(found.name.as_str()), Listed::Readable(shown(&found)?)))
        }
        Listed::Unreadable(row) => Ok(Row::new(paging::of_text(&row.id), Listed::Unreadable(row))),
    };
    let Found { rows: functions, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(FunctionList { functions, unreadable, next_cursor }))
}

/// One function.
#[utoipa::path(get, path = "/v1/functions/{name}", tag = "functions", params(
    ("name" = String, Path, description = "Name of the function"), ScopeParameters,
), responses(
    (status = 200, body = Function, headers(("etag" = String, description = "The version; only of stored functions"))),
))]
pub async fn get(tenant: Tenant, Path(name): Path<String>) -> Result<Response, Refusal> {
    let refused = |error: FunctionError| tenant.refused(error);
    let name = FunctionName::new(name).map_err(refused)?;
    let found = tenant.function(&name).await.map_err(refused)?;
    answer(StatusCode::OK, &found)
}

/// Creates or replaces a function. `If-None-Match: *` creates it; `If-Match` with the `ETag` of a version replaces that one.
/// Without either nothing is written, so that nobody overwrites what they have not seen.
#[utoipa::path(put, path = "/v1/functions/{name}", tag = "functions", params(
    ("name" = String, Path, description = "Name of the function"), ScopeParameters,
    ("if-none-match" = Option<String>, Header, description = "`*`: there must be none yet"),
    ("if-match" = Option<String>, Header, description = "The version that is replaced"),
), request_body(content = segno_api::Json, description = "The declaration, as the guide's page \"functions\" describes it"), responses(
    (status = 201, body = Function, description = "It was created"),
    (status = 200, body = Function, description = "It was replaced"),
))]
pub async fn put(
    tenant: Tenant,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(function): Body<catalogue::Function>,
) -> Result<Response, Refusal> {
    let refused = |error: FunctionError| tenant.refused(error);
    let name = FunctionName::new(name).map_err(refused)?;
    let (status, version) = match expected(&headers)? {
        Expected::Absent => match tenant.create_function(&name, &function).await {
            Ok(version) => (StatusCode::CREATED, version),
            Err(error) => return Err(not_created(&tenant, &name, &error).await),
        },
        Expected::Version(version) => {
            let replaced = tenant.replace_function(&name, &function, version).await;
            (StatusCode::OK, replaced.map_err(|error| not_as_expected(&error, &tenant))?)
        }
    };
    answer(status, &VersionedFunction { name, origin: Origin::Stored { version }, function })
}

/// Removes a stored function. Calls that wait to be run will fail.
#[utoipa::path(delete, path = "/v1/functions/{name}", tag = "functions", params(
    ("name" = String, Path, description = "Name of the function"), ScopeParameters,
    ("if-match" = Option<String>, Header, description = "Only this version"),
), responses(
    (status = 204, description = "It is removed"),
))]
pub async fn delete(
    tenant: Tenant,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    let name = FunctionName::new(name).map_err(|error| tenant.refused(error))?;
    let deleted = tenant.delete_function(&name, version(&headers)?).await;
    deleted.map_err(|error| match error {
        FunctionError::Unknown { .. } => tenant.refused(error),
        _ => not_as_expected(&error, &tenant),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// A function that is not as the caller expects is told as HTTP has it.
fn not_as_expected(error: &FunctionError, tenant: &Tenant) -> Refusal {
    match error {
        FunctionError::Changed { .. } | FunctionError::Unknown { .. } => {
            Refusal::new(Code::PreconditionFailed, error.to_string())
        }
        _ => tenant.refused(error),
    }
}

/// A name that is taken is not as the caller expects, unless the configuration has taken it: then no version would do.
async fn not_created(tenant: &Tenant, name: &FunctionName, error: &FunctionError) -> Refusal {
    let is_taken = matches!(error, FunctionError::Exists { .. });
    let found = tenant.function(name).await;
    if is_taken && !found.is_ok_and(|found| found.origin == Origin::Configured) {
        return Refusal::new(Code::PreconditionFailed, error.to_string());
    }
    tenant.refused(error)
}

fn answer(status: StatusCode, found: &VersionedFunction) -> Result<Response, Refusal> {
    let shown = shown(found)?;
    let tag = shown.version.map(|version| [(ETAG, format!("\"{version}\""))]);
    Ok((status, tag, Json(shown)).into_response())
}

fn shown(found: &VersionedFunction) -> Result<Function, Refusal> {
    let declaration = segno_api::Json::of(&found.function).map_err(|error| {
        tracing::error!(%error, function = %found.name, "a declaration cannot be shown");
        Refusal::new(Code::Internal, "a declaration cannot be shown; the server's log has the reason")
    })?;
    let (origin, version) = match found.origin {
        Origin::Configured => (FunctionOrigin::Configured, None),
        Origin::Stored { version } => (FunctionOrigin::Stored, Some(version)),
    };
    Ok(Function { name: found.name.to_string(), origin, version, declaration })
}
