//! Running a query.

use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use segno_api::sql::{SqlAnswer, SqlFetched, SqlFormat, SqlQuery};
use segno_ledger::sql::limits::{DEFAULT_ROWS, DEFAULT_TIMEOUT, MAX_ROWS, MAX_TIMEOUT};
use segno_ledger::sql::{Answer, Fetched, PARQUET, Query, SqlError, Value, to_parquet};
use serde_json::value::RawValue;

use super::{csv, shipped, tables};
use crate::access::Caller;
use crate::app::{Granted, Tenant};
use crate::extract::Body;
use crate::problem::Refusal;
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
    let format = request.format.unwrap_or_else(|| accepted(&headers));
    let tables = tables::all(&tenant, &granted, &caller);
    let (is_truncated, body) = tenant.sql(query, &tables, move |answer| written(format, answer)).await?;
    let content_type = match format {
        SqlFormat::Json => return Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response()),
        SqlFormat::Csv => "text/csv; charset=utf-8",
        SqlFormat::Parquet => PARQUET,
    };
    let truncated = [(TRUNCATED, is_truncated.to_string())];
    Ok(([(header::CONTENT_TYPE, content_type)], truncated, body).into_response())
}

/// The body of a response with an answer, and whether rows are missing.
fn written(format: SqlFormat, answer: Answer) -> Result<(bool, Bytes), SqlError> {
    let is_truncated = answer.is_truncated;
    let body = match format {
        SqlFormat::Json => shown(answer).and_then(|shown| serde_json::to_vec(&shown)).map(Bytes::from),
        SqlFormat::Csv => Ok(Bytes::from(csv::written(&answer))),
        SqlFormat::Parquet => return Ok((is_truncated, to_parquet(&answer)?)),
    };
    let body = body.map_err(|error| SqlError::Internal(format!("its answer cannot be written: {error}")))?;
    Ok((is_truncated, body))
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

fn shown(answer: Answer) -> Result<SqlAnswer, serde_json::Error> {
    let rows = answer.rows.iter().map(|row| row.iter().map(cell).collect());
    Ok(SqlAnswer {
        columns: answer.columns,
        rows: rows.collect::<Result<_, _>>()?,
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
