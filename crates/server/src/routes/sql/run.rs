//! Running a query.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_api::sql::{SqlAnswer, SqlFetched, SqlFormat, SqlQuery};
use segno_ledger::sql::limits::{DEFAULT_ROWS, DEFAULT_TIMEOUT, MAX_ROWS, MAX_TIMEOUT};
use segno_ledger::sql::{Answer, Fetched, PARQUET, Query, Value, to_parquet};
use serde_json::value::RawValue;

use super::{csv, shipped, tables};
use crate::access::Caller;
use crate::app::{Granted, Tenant};
use crate::extract::Body;
use crate::problem::{Code, Refusal};
use crate::scope::ScopeParameters;

/// The header of an answer in CSV or Parquet that tells whether rows are missing.
const TRUNCATED: &str = "segno-truncated";

/// Runs one SELECT in SQLite's dialect over the tables that `GET /v1/sql` lists. Nothing is written. It ends when its
/// caller hangs up. The form of the answer is that of the request's `format`, or else of the header `Accept`.
#[utoipa::path(post, path = "/v1/sql", tag = "sql", params(ScopeParameters), request_body = SqlQuery, responses(
    (status = 200, content((SqlAnswer = "application/json"), (String = "text/csv"), (Vec<u8> = "application/vnd.apache.parquet"))),
))]
pub async fn run(
    tenant: Tenant,
    granted: Granted,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(request): Body<SqlQuery>,
) -> Result<Response, Refusal> {
    let query = query(&request)?;
    let answer = tenant.sql(query, &tables::all(&tenant, &granted, &caller)).await?;
    let truncated = [(TRUNCATED, answer.is_truncated.to_string())];
    Ok(match request.format.unwrap_or_else(|| accepted(&headers)) {
        SqlFormat::Json => Json(shown(answer)?).into_response(),
        SqlFormat::Csv => {
            let headers = [(header::CONTENT_TYPE, "text/csv; charset=utf-8")];
            (headers, truncated, csv::written(&answer)).into_response()
        }
        SqlFormat::Parquet => {
            let file = to_parquet(&answer).map_err(|error| {
                tracing::error!(%error, "the answer of a query cannot be written as Parquet");
                Refusal::new(Code::Internal, "the answer cannot be shown; the server's log has the reason")
            })?;
            ([(header::CONTENT_TYPE, PARQUET)], truncated, file).into_response()
        }
    })
}

/// The form that the header `Accept` names first; JSON if it names none of them.
fn accepted(headers: &HeaderMap) -> SqlFormat {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let types = accept.flat_map(|value| value.split(','));
    let mut forms = types.filter_map(|kind| match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(SqlFormat::Json),
        "text/csv" => Some(SqlFormat::Csv),
        PARQUET => Some(SqlFormat::Parquet),
        _ => None,
    });
    forms.next().unwrap_or(SqlFormat::Json)
}

fn query(request: &SqlQuery) -> Result<Query, Refusal> {
    let text = match (&request.query, &request.shipped) {
        (Some(text), None) => text.clone(),
        (None, Some(name)) => {
            let known = shipped::SHIPPED.iter().find(|shipped| shipped.name == name);
            let names = shipped::SHIPPED.iter().map(|shipped| shipped.name);
            let unknown = || {
                let names = Vec::from_iter(names).join(", ");
                Refusal::field("shipped", format!("there is no shipped query {name:?}; there are: {names}"))
            };
            known.ok_or_else(unknown)?.text.to_owned()
        }
        (None, None) => {
            return Err(Refusal::field("query", "is missing; write a SELECT, or name a shipped query"));
        }
        (Some(_), Some(_)) => {
            return Err(Refusal::field("shipped", "cannot be used with query; give one of them"));
        }
    };
    let max_rows = request.max_rows.unwrap_or(DEFAULT_ROWS);
    if !(1..=MAX_ROWS).contains(&max_rows) {
        return Err(Refusal::field("max_rows", format!("must be 1 to {MAX_ROWS}")));
    }
    let timeout = request.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    if timeout.is_zero() || timeout > MAX_TIMEOUT {
        let seconds = MAX_TIMEOUT.as_secs();
        return Err(Refusal::field("timeout_seconds", format!("must be 1 to {seconds}")));
    }
    Ok(Query { text, max_rows, timeout })
}

fn shown(answer: Answer) -> Result<SqlAnswer, Refusal> {
    let rows = answer.rows.iter().map(|row| row.iter().map(cell).collect()).collect::<Result<_, _>>();
    let rows = rows.map_err(|error: serde_json::Error| {
        tracing::error!(%error, "the answer of a query cannot be shown");
        Refusal::new(Code::Internal, "the answer cannot be shown; the server's log has the reason")
    })?;
    Ok(SqlAnswer {
        columns: answer.columns,
        rows,
        truncated: answer.is_truncated,
        fetched: answer.fetched.into_iter().map(fetched).collect(),
        fetch_ms: answer.fetch_ms,
        evaluate_ms: answer.evaluate_ms,
    })
}

fn cell(value: &Value) -> Result<segno_api::Json, serde_json::Error> {
    match value {
        Value::Null => segno_api::Json::from_text(RawValue::NULL.get().to_owned()),
        Value::Integer(number) => segno_api::Json::of(number),
        Value::Real(number) if number.is_finite() => segno_api::Json::of(number),
        Value::Real(number) => segno_api::Json::of(&number.to_string()),
        Value::Text(text) => segno_api::Json::of(text),
        Value::Blob(bytes) => segno_api::Json::of(&csv::hex(bytes)),
    }
}

fn fetched(fetched: Fetched) -> SqlFetched {
    SqlFetched {
        table: fetched.table.to_owned(),
        aliases: fetched.aliases,
        columns: fetched.columns.into_iter().map(str::to_owned).collect(),
        pushed: fetched.pushed,
        filtered: fetched.filtered,
        limit: fetched.limit,
        scans: fetched.scans,
        read_rows: fetched.read_rows,
        read_bytes: fetched.read_bytes,
        kept_rows: fetched.kept_rows,
    }
}
