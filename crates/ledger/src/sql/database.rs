//! The sandbox: a SQLite database in memory whose tables are those of the query. Once they are filled, an authorizer
//! lets statements read them and call functions that compute, and nothing else.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use super::constant::Evaluate;
use super::error::SqlError;
use super::functions;
use super::like::IsOver;
use super::limits::{MAX_COLUMNS, MAX_DATABASE_BYTES, MAX_MEMORY_BYTES, MAX_VALUE_BYTES, PROGRESS_STEPS};
use super::table::{ColumnKind, TableInfo};
use super::value::Value;
use super::{instant, limits};

/// Size of a page of the database, in bytes.
const PAGE_BYTES: usize = 4096;

/// A database for one query.
pub struct Database {
    connection: Connection,
    /// Whether the statement that is prepared is one of this file.
    is_own: Arc<AtomicBool>,
}

/// Rows of a statement.
pub struct Found {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more.
    pub is_truncated: bool,
}

impl Database {
    /// An empty database. `is_over` is asked again and again while it works; statements end when it is true.
    ///
    /// # Errors
    /// When SQLite has no memory.
    pub fn open(now_ms: i64, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Result<Self, SqlError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_MEMORY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_in_memory_with_flags(flags).map_err(told)?;
        bound_process(&connection)?;
        let is_over: IsOver = Arc::new(is_over);
        let of_steps = Arc::clone(&is_over);
        connection.progress_handler(PROGRESS_STEPS, Some(move || of_steps())).map_err(told)?;
        set_up(&connection, now_ms, &is_over).map_err(told)?;
        Ok(Database { connection, is_own: Arc::new(AtomicBool::new(true)) })
    }

    /// Creates a table. `unique` columns tell its rows apart.
    ///
    /// # Errors
    /// When SQLite has no memory.
    pub fn create(&self, table: &TableInfo, unique: Option<&[&str]>) -> Result<(), SqlError> {
        self.is_own.store(true, Ordering::Relaxed);
        let columns =
            table.columns.iter().map(|column| format!("\"{}\" {}", column.name, column.kind.declared()));
        let columns = Vec::from_iter(columns).join(", ");
        let unique = unique.map_or(String::new(), |key| format!(", UNIQUE (\"{}\")", key.join("\", \"")));
        self.connection
            .execute_batch(&format!("CREATE TABLE \"{}\" ({columns}{unique})", table.name))
            .map_err(told)
    }

    /// Adds rows to a table: the cells of these columns. Those that are there already are left out.
    ///
    /// # Errors
    /// When the database becomes too large, or the query is over.
    pub fn insert<'r>(
        &self,
        table: &TableInfo,
        columns: &[&'static str],
        rows: impl Iterator<Item = &'r [Value]>,
    ) -> Result<(), SqlError> {
        self.is_own.store(true, Ordering::Relaxed);
        let names = match columns {
            [] => table.columns.first().map_or("", |column| column.name).to_owned(),
            columns => columns.join("\", \""),
        };
        let places = match columns.len() {
            0 => "NULL".to_owned(),
            count => vec!["?"; count].join(", "),
        };
        let sql = format!("INSERT OR IGNORE INTO \"{}\" (\"{names}\") VALUES ({places})", table.name);
        let kinds = columns.iter().map(|name| table.column(name).map(|column| column.kind));
        let kinds: Vec<Option<ColumnKind>> = kinds.collect();
        self.connection.execute_batch("BEGIN").map_err(told)?;
        let mut statement = self.connection.prepare(&sql).map_err(told)?;
        for row in rows {
            for (place, (cell, kind)) in row.iter().zip(&kinds).enumerate() {
                let bound = match (cell, kind) {
                    (Value::Integer(ms), Some(ColumnKind::Time)) => {
                        statement.raw_bind_parameter(place + 1, instant::text(*ms))
                    }
                    (cell, _) => statement.raw_bind_parameter(place + 1, cell),
                };
                bound.map_err(told)?;
            }
            statement.raw_execute().map_err(told)?;
        }
        drop(statement);
        self.connection.execute_batch("COMMIT").map_err(told)
    }

    /// From here on statements may read these names and nothing else.
    ///
    /// # Errors
    /// When SQLite refuses the authorizer.
    pub fn close_off(&mut self, readable: impl IntoIterator<Item = String>) -> Result<(), SqlError> {
        let readable: BTreeSet<String> = readable.into_iter().collect();
        let is_own = Arc::clone(&self.is_own);
        let authorize = move |context: AuthContext<'_>| {
            if is_own.load(Ordering::Relaxed) || is_allowed(&context.action, &readable) {
                Authorization::Allow
            } else {
                Authorization::Deny
            }
        };
        self.connection.authorizer(Some(authorize)).map_err(told)
    }

    /// Evaluates a query, for at most so many rows and bytes.
    ///
    /// # Errors
    /// `sql-failed` when SQLite cannot evaluate it, `sql-too-large` beyond a limit.
    pub fn query(&self, sql: &str, max_rows: usize, max_bytes: usize) -> Result<Found, SqlError> {
        self.is_own.store(false, Ordering::Relaxed);
        let mut statement = self.connection.prepare(sql).map_err(told)?;
        if !statement.readonly() {
            return Err(SqlError::Refused("the query is not read-only".to_owned()));
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        if columns.len() > MAX_COLUMNS {
            let detail = format!("the answer has {} columns; the limit is {MAX_COLUMNS}", columns.len());
            return Err(SqlError::TooLarge(detail));
        }
        let mut found = Found { columns, rows: Vec::new(), is_truncated: false };
        let mut bytes = 0;
        let mut rows = statement.query([]).map_err(told)?;
        while let Some(row) = rows.next().map_err(told)? {
            let cells = 0..found.columns.len();
            let cells = cells.map(|place| row.get_ref(place).map(Value::from)).collect::<Result<Vec<_>, _>>();
            let cells = cells.map_err(told)?;
            bytes += cells.iter().map(Value::bytes).sum::<usize>();
            if found.rows.len() == max_rows || bytes > max_bytes {
                found.is_truncated = true;
                break;
            }
            found.rows.push(cells);
        }
        Ok(found)
    }
}

impl Evaluate for Database {
    fn evaluate(&self, expression: &str) -> Option<Value> {
        let found = self.query(&format!("SELECT {expression}"), 1, limits::MAX_ANSWER_BYTES).ok()?;
        found.rows.into_iter().next()?.into_iter().next()
    }
}

fn is_allowed(action: &AuthAction<'_>, readable: &BTreeSet<String>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } => readable.contains(&table_name.to_ascii_lowercase()),
        AuthAction::Function { function_name } => functions::is_allowed(function_name),
        _ => false,
    }
}

/// Bounds what SQLite takes in this process. The limit is one of the process, so it is set once.
fn bound_process(connection: &Connection) -> Result<(), SqlError> {
    static BOUND: OnceLock<()> = OnceLock::new();
    if BOUND.get().is_none() {
        let bound = format!("PRAGMA hard_heap_limit = {MAX_MEMORY_BYTES}");
        connection.query_row(&bound, [], |_| Ok(())).map_err(told)?;
        let _ = BOUND.set(());
    }
    Ok(())
}

fn set_up(connection: &Connection, now_ms: i64, is_over: &IsOver) -> rusqlite::Result<()> {
    let pages = MAX_DATABASE_BYTES / PAGE_BYTES;
    connection.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA max_page_count = {pages}; PRAGMA journal_mode = OFF; \
         PRAGMA temp_store = MEMORY;"
    ))?;
    for (config, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
    ] {
        connection.set_db_config(config, is_on)?;
    }
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 4 * limits::MAX_TEXT_BYTES as i32),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, limits::MAX_PATH_TOKENS as i32),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, MAX_COLUMNS as i32),
    ] {
        connection.set_limit(limit, value)?;
    }
    functions::register(connection, now_ms, is_over)
}

/// An error of SQLite as a caller is told it.
fn told(error: Error) -> SqlError {
    let code = error.sqlite_error_code();
    let too_large = |detail: String| SqlError::TooLarge(format!("{detail}; fetch fewer rows or columns"));
    match (code, &error) {
        (Some(ErrorCode::OperationInterrupted), _) => SqlError::TimedOut { seconds: 0 },
        (Some(ErrorCode::OutOfMemory), _) => SqlError::OutOfMemory,
        (Some(ErrorCode::DiskFull), _) => {
            let mib = MAX_DATABASE_BYTES / 1024 / 1024;
            too_large(format!("what the query fetches takes more than {mib} MiB"))
        }
        (Some(ErrorCode::TooBig), _) => {
            let mib = MAX_VALUE_BYTES / 1024 / 1024;
            too_large(format!("a value of the query is longer than {mib} MiB"))
        }
        (_, Error::SqliteFailure(_, Some(message)) | Error::SqlInputError { msg: message, .. }) => {
            SqlError::Failed(message.clone())
        }
        _ => SqlError::Failed(error.to_string()),
    }
}
