//! Queries of a tenant.

use std::fmt;

use segno_ledger::sql::{Answer, Query, SqlError, Tables};

use super::Tenant;
use crate::operation;
use crate::problem::{Code, Refusal};
use crate::telemetry;

/// A refusal as an error of a table.
#[derive(Debug)]
pub struct Refused(pub Refusal);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refused {}

impl Tenant {
    /// Runs a query over tables of this tenant, and writes its answer on the thread of the query: an answer is large
    /// enough to hold up other requests. It takes one of the places that tenants share.
    ///
    /// # Errors
    /// `sql-refused`, `sql-failed`, `sql-too-large`, `sql-timeout`, `unavailable` when too many queries wait, and why a
    /// table cannot be read.
    pub async fn sql<T: Send + 'static>(
        &self,
        query: Query,
        tables: &Tables,
        write: impl Fn(Answer) -> Result<T, SqlError> + Clone + Send + 'static,
    ) -> Result<T, Refusal> {
        let clock = &self.app.clock;
        let begin_ns = clock.monotonic_ns();
        let write = move |answer: Answer| {
            let rows: u64 = answer.fetched.iter().map(|fetched| fetched.read_rows).sum();
            Ok((write(answer)?, rows))
        };
        let answer = self.resources().sql.run_into(self.scope.prefix(), query, tables, write).await;
        let seconds = clock.monotonic_ns().saturating_sub(begin_ns) as f64 / 1e9;
        let outcome = match &answer {
            Ok(_) => "answered",
            Err(error) => error.code().map_or("error", |code| code.trim_start_matches("sql-")),
        };
        metrics::counter!(telemetry::SQL_QUERIES, "outcome" => outcome).increment(1);
        metrics::histogram!(telemetry::SQL_SECONDS).record(seconds);
        let (written, rows) = answer.map_err(|error| self.told(error))?;
        metrics::counter!(telemetry::SQL_ROWS_READ).increment(rows);
        Ok(written)
    }

    fn told(&self, error: SqlError) -> Refusal {
        let code = match &error {
            SqlError::Refused(_) => Code::SqlRefused,
            SqlError::Failed(_) => Code::SqlFailed,
            SqlError::TooLarge(_) | SqlError::OutOfMemory => Code::SqlTooLarge,
            SqlError::TimedOut { .. } | SqlError::NotBegun { .. } => Code::SqlTimeout,
            SqlError::Busy(detail) => return Refusal::unavailable(detail, operation::effect()),
            SqlError::Internal(_) => {
                tracing::error!(%error, "a query could not be run");
                Code::Internal
            }
            SqlError::Table { .. } => return self.of_table(error),
        };
        Refusal::new(code, error.to_string())
    }

    fn of_table(&self, error: SqlError) -> Refusal {
        let SqlError::Table { table, error } = error else {
            return Refusal::new(Code::Internal, error.to_string());
        };
        match error.downcast::<Refused>() {
            Ok(refused) => refused.0,
            Err(error) => {
                tracing::error!(%error, table, "a table could not be read");
                Refusal::new(
                    Code::Internal,
                    format!("table {table} cannot be read; the server's log has the reason"),
                )
            }
        }
    }
}
