//! Runs the query of a runbook within limits, under the host and secret policy of stored functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use segno::Payload;
use segno::clock::{self, Clock};
use segno_actions::functions::http::Document;
use segno_actions::functions::{Fetch, FunctionError, Functions, InvokeRequest, Scope, SettingValue};
use segno_actions::pools::RoomCalls;
use segno_actions::template::kind_of;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::error::SourceError;
use super::json::read_objects_into;
use super::sql::{SqlLimits, SqlReader};
use crate::definition::{DataSource, SourceKind};
use crate::limits::{MAX_SOURCE_BYTES, MAX_SOURCE_PAGES, MAX_SOURCE_ROWS};
use crate::members::{Cell, CsvLimits, Row, Rows, read_cells_into, read_csv_into};

/// A query that is to be run.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// Who has published the runbook.
    pub scope: &'q Scope,
    /// The source.
    pub source: &'q DataSource,
    /// Columns that the runbook needs.
    pub required: &'q BTreeSet<String>,
    /// The same for every attempt of this query.
    pub key: &'q str,
    /// Longest time in all.
    pub timeout: Duration,
}

/// Runs queries. Cheap to clone.
#[derive(Clone)]
pub struct Sources {
    functions: Functions,
    calls: RoomCalls,
    clock: Arc<dyn Clock>,
    sql: Arc<dyn SqlReader>,
    /// Files of tenants are below `<this>/<namespace>/<tenant>/`; without it, no files are read.
    csv_directory: Option<PathBuf>,
}

impl Sources {
    /// Queries that reach the world by these doors. Without a directory, no files of the node are read.
    pub fn new(
        functions: Functions,
        calls: RoomCalls,
        clock: Arc<dyn Clock>,
        sql: Arc<dyn SqlReader>,
        csv_directory: Option<PathBuf>,
    ) -> Self {
        Sources { functions, calls, clock, sql, csv_directory }
    }

    /// Checks what can be checked without a query, for the publisher: secrets and files that the tenant may read.
    ///
    /// # Errors
    /// `source-failed` with the reason.
    pub fn check(&self, scope: &Scope, source: &DataSource) -> Result<(), SourceError> {
        let refuse = |error: FunctionError| SourceError::wrong(source.kind.name(), error.to_string());
        match &source.kind {
            SourceKind::Sql { connection, .. } => {
                self.functions.check_secret(scope, "data_source.connection", connection).map_err(refuse)
            }
            SourceKind::Http { headers, .. } => headers.iter().try_for_each(|(name, value)| match value {
                SettingValue::Secret(secret) => {
                    let field = format!("data_source.headers.{name}");
                    self.functions.check_secret(scope, &field, secret).map_err(refuse)
                }
                SettingValue::Text(_) => Ok(()),
            }),
            SourceKind::Csv { location } if location.starts_with('/') => {
                own_file(&self.own_directory(scope)?, location).map(|_| ())
            }
            SourceKind::Csv { .. } | SourceKind::Function { .. } | SourceKind::Manual => Ok(()),
        }
    }

    /// Runs a query and returns all rows. A manual source has none.
    ///
    /// # Errors
    /// `source-failed` when the source does not answer, refuses, or answers with too much; `invalid-members` when rows
    /// cannot be members.
    pub async fn rows(&self, query: Query<'_>) -> Result<Rows, SourceError> {
        let mut rows = Vec::new();
        let columns = self.rows_into(query, &mut |row| rows.push(row)).await?;
        Ok(Rows { columns, rows })
    }

    /// The same row by row, for a caller that does not keep them. Returns the columns.
    ///
    /// # Errors
    /// As [`Sources::rows`]; rows that were taken before do not count.
    pub async fn rows_into(
        &self,
        query: Query<'_>,
        take: &mut (dyn FnMut(Row) + Send),
    ) -> Result<Vec<String>, SourceError> {
        if let Some(rows) = clock::timeout(&*self.clock, query.timeout, self.read(query, take)).await {
            return rows;
        }
        self.cancel(query).await;
        Err(SourceError::Failed {
            kind: query.source.kind.name(),
            message: format!("it took longer than the limit of {} s", query.timeout.as_secs()),
            is_retryable: true,
        })
    }

    /// Cancels what goes on after the future of [`Sources::rows`] was dropped: the call of a function.
    /// Connections to databases and servers end with the future.
    pub async fn cancel(&self, query: Query<'_>) {
        if !query.source.kind.is_called() {
            return;
        }
        let cancelled = self.calls.cancel(query.scope, query.key, "its query no longer waits for it").await;
        if let Err(error) = cancelled {
            tracing::warn!(job = query.key, %error, "the call of a data source cannot be cancelled");
        }
    }

    async fn read(
        &self,
        query: Query<'_>,
        take: &mut (dyn FnMut(Row) + Send),
    ) -> Result<Vec<String>, SourceError> {
        let (source, required) = (query.source, query.required);
        let objects = match &query.source.kind {
            SourceKind::Manual => return Ok(Vec::new()),
            SourceKind::Csv { location } => {
                let bytes = self.csv(&query, location).await?;
                return Ok(read_csv_into(&bytes, source, required, CsvLimits::SOURCE, take)?);
            }
            SourceKind::Sql { connection, query: text } => {
                let field = "data_source.connection";
                let url = self.functions.read_secret(query.scope, field, connection).await;
                let url = url.map_err(|failure| SourceError::failure("sql", &failure))?;
                let limits = SqlLimits {
                    timeout: query.timeout,
                    max_rows: MAX_SOURCE_ROWS,
                    max_bytes: MAX_SOURCE_BYTES,
                };
                let found = self.sql.rows(&url, text, limits).await?;
                let cell = |value: Option<String>| value.map_or(Cell::Missing, Cell::Text);
                let rows = found.rows.into_iter().map(|row| row.into_iter().map(cell).collect());
                return Ok(read_cells_into(found.columns, rows.collect(), source, required, take)?);
            }
            SourceKind::Http { url, headers, rows, next_page } => {
                let pages =
                    Pages { query: &query, headers, rows: rows.as_deref(), next: next_page.as_deref() };
                self.pages(pages, url).await?
            }
            SourceKind::Function { function, input } => self.function(&query, function, input).await?,
        };
        Ok(read_objects_into(objects, source, required, take)?)
    }

    async fn csv(&self, query: &Query<'_>, location: &str) -> Result<Vec<u8>, SourceError> {
        if location.starts_with('/') {
            let own = self.own_directory(query.scope)?;
            let path = own_file(&own, location)?;
            return read_file(&own, &path).await;
        }
        let document = self.fetch(query, "csv", location, &BTreeMap::new(), MAX_SOURCE_BYTES).await?;
        Ok(document.bytes)
    }

    /// Where the files of a tenant are.
    fn own_directory(&self, scope: &Scope) -> Result<PathBuf, SourceError> {
        let Some(directory) = &self.csv_directory else {
            let message = "files of the node are not read; ask who runs it to set runbooks.csv_directory, or \
                           publish the file at a URL";
            return Err(SourceError::wrong("csv", message));
        };
        Ok(directory.join(scope.namespace.as_str()).join(scope.tenant.as_str()))
    }

    async fn fetch(
        &self,
        query: &Query<'_>,
        kind: &'static str,
        url: &str,
        headers: &BTreeMap<String, SettingValue>,
        limit_bytes: usize,
    ) -> Result<Document, SourceError> {
        let fetch = Fetch {
            scope: query.scope,
            url,
            headers,
            limit_bytes,
            timeout: query.timeout,
            idempotency_key: query.key,
        };
        self.functions.fetch(fetch).await.map_err(|failure| SourceError::failure(kind, &failure))
    }

    async fn pages(&self, pages: Pages<'_>, first: &str) -> Result<Vec<Value>, SourceError> {
        let wrong = |message: String| SourceError::wrong("http", message);
        let mut rows: Vec<Value> = Vec::new();
        let mut url = first.to_owned();
        let mut room = MAX_SOURCE_BYTES;
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for page in 1..=MAX_SOURCE_PAGES {
            if !seen.insert(url.clone()) {
                return Err(wrong(format!("page {page}: it was read before, at {url}")));
            }
            let document = self.fetch(pages.query, "http", &url, pages.headers, room).await?;
            room = room.saturating_sub(document.bytes.len());
            let (found, next) =
                pages.take(&document).map_err(|problem| wrong(format!("page {page}: {problem}")))?;
            rows.extend(found);
            if rows.len() > MAX_SOURCE_ROWS {
                return Err(wrong(format!("there are more than {MAX_SOURCE_ROWS} rows")));
            }
            match next {
                Some(next) => url = next,
                None => return Ok(rows),
            }
        }
        Err(wrong(format!("there are more than {MAX_SOURCE_PAGES} pages")))
    }

    async fn function(
        &self,
        query: &Query<'_>,
        function: &str,
        input: &Value,
    ) -> Result<Vec<Value>, SourceError> {
        let wrong = |message: String| SourceError::wrong("function", message);
        let name = function.parse().map_err(|error: FunctionError| wrong(error.to_string()))?;
        let input = Payload::encode(input).map_err(|error| wrong(error.to_string()))?;
        let called = self.calls.call(query.scope, query.key, InvokeRequest::new(name, input)).await;
        let result = called.map_err(|failure| SourceError::failure("function", &failure))?;
        match result.decode().map_err(|error| wrong(format!("the result of {function}: {error}")))? {
            Value::Array(rows) => Ok(rows),
            other => Err(wrong(format!(
                "{function} must return an array of rows; it returned {}",
                kind_of(&other)
            ))),
        }
    }
}

/// Pages of an HTTP source.
#[derive(Clone, Copy)]
struct Pages<'p> {
    query: &'p Query<'p>,
    headers: &'p BTreeMap<String, SettingValue>,
    /// JSON pointer to the rows.
    rows: Option<&'p str>,
    /// JSON pointer to the URL of the next page.
    next: Option<&'p str>,
}

impl Pages<'_> {
    /// The rows of a page, and where the next one is.
    fn take(&self, page: &Document) -> Result<(Vec<Value>, Option<String>), String> {
        let text = std::str::from_utf8(&page.bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        // The engine's rule first: some names in objects would make the parser read something else.
        Payload::check_text(text).map_err(|error| error.to_string())?;
        let mut value: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let next = match self.next.and_then(|pointer| value.pointer(pointer)) {
            None | Some(Value::Null) => None,
            Some(Value::String(next)) if next.is_empty() => None,
            Some(Value::String(next)) => {
                let url = page.url.join(next).map_err(|error| format!("the next page {next:?}: {error}"))?;
                // Headers with secrets go with the request.
                if url.origin() != page.url.origin() {
                    return Err(format!("the next page {url} is on another host than this one"));
                }
                Some(url.to_string())
            }
            Some(_) => return Err("the URL of the next page is not a text".to_owned()),
        };
        let rows = match self.rows {
            Some(pointer) => value
                .pointer_mut(pointer)
                .map(Value::take)
                .ok_or_else(|| format!("there is nothing at {pointer}, which rows points to"))?,
            None => value,
        };
        match rows {
            Value::Array(rows) => Ok((rows, next)),
            _ => Err("the rows are not an array; point to it with rows: /path".to_owned()),
        }
    }
}

/// The path of a file, if it is below the tenant's own directory.
fn own_file(own: &Path, location: &str) -> Result<PathBuf, SourceError> {
    let path = Path::new(location);
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if is_plain && path.starts_with(own) { Ok(path.to_owned()) } else { Err(outside(own, path)) }
}

fn outside(own: &Path, path: &Path) -> SourceError {
    let message = format!("files of this tenant are below {}; {} is not", own.display(), path.display());
    SourceError::wrong("csv", message)
}

async fn read_file(own: &Path, path: &Path) -> Result<Vec<u8>, SourceError> {
    let unreadable = |error: std::io::Error| SourceError::Failed {
        kind: "csv",
        message: format!("{}: {error}", path.display()),
        is_retryable: true,
    };
    // Links are followed first: they may lead to the files of others.
    let real = tokio::fs::canonicalize(path).await.map_err(unreadable)?;
    if !real.starts_with(tokio::fs::canonicalize(own).await.map_err(unreadable)?) {
        return Err(outside(own, path));
    }
    // Opening a pipe waits for its writer, and would hold a thread.
    if !tokio::fs::metadata(&real).await.map_err(unreadable)?.is_file() {
        return Err(SourceError::wrong("csv", format!("{} is not a file", path.display())));
    }
    let file = tokio::fs::File::open(&real).await.map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than allowed shows that there is more.
    let most = MAX_SOURCE_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).await.map_err(unreadable)?;
    Ok(bytes)
}
