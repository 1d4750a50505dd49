//! The report of a batch: members and steps as CSV.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;

use crate::app::Tenant;
use crate::extract::Path;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Members and steps of a batch as CSV: one line for each member and step, with status, attempts,
/// times and error. Cells that a spreadsheet would take for a formula begin with an apostrophe.
/// What cannot be read has a line with the status `unreadable`, its id and the reason. The answer
/// is sent while it is read; one that cannot be read to its end has a last line with the member
/// status `incomplete` and the reason, and is broken off.
#[utoipa::path(get, path = "/v1/batches/{id}/report", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters,
), responses((status = 200, content_type = "text/csv", body = String)))]
pub async fn report(tenant: Tenant, Path(id): Path<u64>) -> Result<Response, Refusal> {
    // A report takes as long as its reader does: it is limited like a stream.
    let place = tenant.stream_place()?;
    let parts = tenant.batch_report(id).await?.map(move |part| {
        let _held = &place;
        part
    });
    let name = format!("attachment; filename=\"batch-{id}.csv\"");
    let headers =
        [(header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(parts)).into_response())
}
