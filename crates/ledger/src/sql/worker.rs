//! One query on a thread of its own: planning, filling the database with what the tables deliver, evaluation. SQLite
//! and the walks over syntax trees block, and need a stack of a known size.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use segno::clock::Clock;
use tokio::sync::mpsc;

use super::answer::{self, Answer, Fetched};
use super::binding::Binding;
use super::conjunct;
use super::database::Database;
use super::error::SqlError;
use super::functions;
use super::limits::{MAX_ANSWER_BYTES, MAX_FETCHED_ROWS, MAX_READ_BYTES, MAX_VALUES};
use super::near;
use super::plan::{Fetch, Reading, plan};
use super::scope::Resolved;
use super::table::{Constraint, Row, Scan, TableInfo, Tables, Test};
use super::value::Value;

/// Pages that a table may be ahead of the thread.
const PAGES_AHEAD: usize = 2;

/// What a page of a table is, or why there is none.
pub type Page = Result<Vec<Row>, Box<dyn std::error::Error + Send + Sync>>;

/// What the thread asks for: pages of a table, until there are no more or the receiver is gone.
pub struct Order {
    /// The table.
    pub table: &'static TableInfo,
    /// What is needed of it.
    pub scan: Scan,
    /// Where the pages go.
    pub pages: mpsc::Sender<Page>,
}

/// When a query has to end.
#[derive(Clone)]
pub struct Deadline {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// At this time, in Unix milliseconds.
    pub at_ms: u64,
    /// The caller has gone.
    pub is_cancelled: Arc<AtomicBool>,
}

impl Deadline {
    fn is_over(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed) || self.clock.now_ms() >= self.at_ms
    }
}

/// A query and what it may name.
pub struct Job {
    /// The query.
    pub text: String,
    /// The tables.
    pub tables: Tables,
    /// Most rows of the answer.
    pub max_rows: usize,
    /// When it has to end.
    pub deadline: Deadline,
    /// Where orders go.
    pub orders: mpsc::Sender<Order>,
}

impl Job {
    /// Runs the query to its end, and writes its answer.
    pub fn run<T>(self, write: impl FnOnce(Answer) -> Result<T, SqlError>) -> Result<T, SqlError> {
        let answer = self.answer()?;
        if self.deadline.is_over() {
            return Err(SqlError::TimedOut { seconds: 0 });
        }
        write(answer)
    }

    fn answer(&self) -> Result<Answer, SqlError> {
        let clock = &self.deadline.clock;
        let now_ms = i64::try_from(clock.now_ms()).unwrap_or(i64::MAX);
        let deadline = self.deadline.clone();
        let mut database = Database::open(now_ms, move || deadline.is_over())?;
        database.close_off([])?;
        let plan = plan(&self.text, &self.tables, self.max_rows, &database)?;
        let tables = plan.fetches.iter().map(|fetch| fetch.table.name.to_owned());
        let functions = functions::TABLES.iter().map(|name| (*name).to_owned());
        database.close_off(tables.chain(functions).chain(plan.names.iter().cloned()))?;
        let begin_ns = clock.monotonic_ns();
        let mut filling = Filling { job: self, database: &database, rows: 0, bytes: 0 };
        let mut fetched = Vec::new();
        for fetch in &plan.fetches {
            fetched.push(filling.fetch(fetch)?);
        }
        let filled_ns = clock.monotonic_ns();
        let found = database.query(&plan.sql, self.max_rows, MAX_ANSWER_BYTES);
        let found = found.map_err(|error| near::with_suggestion(error, &plan.fetches))?;
        let ended_ns = clock.monotonic_ns();
        Ok(Answer {
            columns: found.columns,
            rows: found.rows,
            is_truncated: found.is_truncated,
            fetched,
            fetch_ms: filled_ns.saturating_sub(begin_ns) / 1_000_000,
            evaluate_ms: ended_ns.saturating_sub(filled_ns) / 1_000_000,
        })
    }
}

/// A database that is being filled.
struct Filling<'a> {
    job: &'a Job,
    database: &'a Database,
    /// Rows that were kept, of all tables.
    rows: u64,
    /// Bytes that were read, of all tables.
    bytes: u64,
}

impl Filling<'_> {
    fn fetch(&mut self, fetch: &Fetch) -> Result<Fetched, SqlError> {
        let unique = (fetch.readings.len() > 1).then_some(fetch.table.key);
        self.database.create(fetch.table, unique)?;
        let mut fetched = Fetched {
            table: fetch.table.name,
            aliases: Vec::new(),
            columns: fetch.columns.clone(),
            pushed: Vec::new(),
            filtered: Vec::new(),
            limit: None,
            scans: 0,
            read_rows: 0,
            read_bytes: 0,
            kept_rows: 0,
        };
        for reading in &fetch.readings {
            self.read(fetch, reading, &mut fetched)?;
        }
        Ok(fetched)
    }

    fn read(&mut self, fetch: &Fetch, reading: &Reading, fetched: &mut Fetched) -> Result<(), SqlError> {
        let mut pushes = Pushes::of(reading);
        if pushes.variants.is_none() {
            for binding in &reading.bindings {
                if pushes.fixed.contains_key(binding.column.name) {
                    continue;
                }
                if let Some(values) = self.bound(binding)? {
                    let name = binding.column.name;
                    fetched.pushed.push(format!("{name} is one of {} values of {}", values.len(), {
                        let sources: Vec<&str> = binding.sources.iter().copied().collect();
                        sources.join(", ")
                    }));
                    pushes.variants = Some((name, values));
                    break;
                }
            }
        }
        if !fetched.aliases.contains(&reading.alias) {
            fetched.aliases.push(reading.alias.clone());
        }
        pushes.tell(fetch.table, reading, fetched);
        fetched.limit = reading.limit.or(fetched.limit);
        for (number, constraints) in pushes.constraints().into_iter().enumerate() {
            let scan = Scan { columns: fetch.columns.clone(), constraints, limit: reading.limit };
            fetched.scans += 1;
            let share = pushes.share(number, &scan.columns);
            self.scan(fetch, (reading, share), scan, fetched)?;
        }
        Ok(())
    }

    /// The values of a binding; `None` when there are too many, or when its query needs more than is there.
    fn bound(&self, binding: &Binding) -> Result<Option<Vec<Test>>, SqlError> {
        let found = match self.database.query(&binding.sql, MAX_VALUES, MAX_ANSWER_BYTES) {
            Ok(found) if found.columns.len() == 1 && !found.is_truncated => found,
            // A subquery that depends on the rows around it cannot be evaluated by itself.
            Ok(_) | Err(SqlError::Failed(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut tests = Vec::new();
        for value in found.rows.into_iter().flatten().filter(|value| *value != Value::Null) {
            match conjunct::equals(Resolved { factor: 0, column: binding.column }, value) {
                Some(test) => tests.push(test),
                None => return Ok(None),
            }
        }
        Ok(Some(tests))
    }

    fn scan(
        &mut self,
        fetch: &Fetch,
        (reading, share): (&Reading, Option<Share<'_>>),
        scan: Scan,
        fetched: &mut Fetched,
    ) -> Result<(), SqlError> {
        let columns = scan.columns.clone();
        let filters = Filters::of(reading, &columns);
        let mut missing = scan.limit;
        let (pages, mut delivered) = mpsc::channel(PAGES_AHEAD);
        let order = Order { table: fetch.table, scan, pages };
        let gone = || SqlError::TimedOut { seconds: 0 };
        self.job.orders.blocking_send(order).map_err(|_| gone())?;
        while let Some(page) = delivered.blocking_recv() {
            let mut rows = page.map_err(|error| SqlError::Table { table: fetch.table.name, error })?;
            if rows.iter().any(|row| row.len() != columns.len()) {
                let detail = format!("table {} delivered rows of another width", fetch.table.name);
                return Err(SqlError::Internal(detail));
            }
            let bytes: usize = rows.iter().flatten().map(Value::bytes).sum();
            fetched.read_rows += rows.len() as u64;
            fetched.read_bytes += bytes as u64;
            self.bytes += bytes as u64;
            rows.retain(|row| filters.accept(row) && share.as_ref().is_none_or(|share| share.has(row)));
            if let Some(missing) = &mut missing {
                rows.truncate(usize::try_from(*missing).unwrap_or(usize::MAX));
                *missing -= rows.len() as u64;
            }
            fetched.kept_rows += rows.len() as u64;
            self.rows += rows.len() as u64;
            self.check_sizes(fetch.table)?;
            let inserted = self.database.insert(fetch.table, &columns, rows.iter().map(Vec::as_slice));
            inserted?;
            if missing == Some(0) {
                break;
            }
            if self.job.deadline.is_over() {
                return Err(gone());
            }
        }
        Ok(())
    }

    fn check_sizes(&self, table: &TableInfo) -> Result<(), SqlError> {
        let advice = "constrain id, name, status or creation time; --explain shows what is fetched";
        if self.rows > MAX_FETCHED_ROWS {
            let detail = format!(
                "the query fetches more than {MAX_FETCHED_ROWS} rows, the last ones of {}; {advice}",
                table.name
            );
            return Err(SqlError::TooLarge(detail));
        }
        if self.bytes > MAX_READ_BYTES {
            let mib = MAX_READ_BYTES / 1024 / 1024;
            let detail =
                format!("the query reads more than {mib} MiB, the last of them of {}; {advice}", table.name);
            return Err(SqlError::TooLarge(detail));
        }
        Ok(())
    }
}

/// The rows that one of several scans of a reading keeps. Tables may deliver rows that do not meet their constraints, so each row could
/// come with every scan.
struct Share<'a> {
    /// The column that the scans tell apart.
    cell: usize,
    tests: &'a [Test],
    number: usize,
}

impl Share<'_> {
    fn has(&self, row: &[Value]) -> bool {
        let cell = &row[self.cell];
        self.tests.iter().position(|test| test.accepts(cell)) == Some(self.number)
    }
}

/// What a reading lets its table apply.
struct Pushes {
    /// One constraint of each kind for a column.
    fixed: BTreeMap<&'static str, Vec<Constraint>>,
    /// A column that equals one of several values: one scan for each.
    variants: Option<(&'static str, Vec<Test>)>,
}

impl Pushes {
    fn of(reading: &Reading) -> Self {
        let mut fixed: BTreeMap<&'static str, Vec<Constraint>> = BTreeMap::new();
        let mut variants = None;
        for conjunct in &reading.conjuncts {
            let column = conjunct.of.column;
            if !conjunct.any_of.iter().all(|test| column.pushdown.takes(test)) {
                continue;
            }
            match conjunct.any_of.as_slice() {
                [test] => {
                    let known = fixed.entry(column.name).or_default();
                    narrow(known, Constraint { column: column.name, test: test.clone() });
                }
                tests if variants.is_none() => variants = Some((column.name, tests.to_vec())),
                _ => {}
            }
        }
        let variants = variants.filter(|(column, _)| !has_equals(fixed.get(column)));
        Pushes { fixed, variants }
    }

    /// The rows of a scan, if there are several.
    fn share(&self, number: usize, columns: &[&'static str]) -> Option<Share<'_>> {
        let (column, tests) = self.variants.as_ref()?;
        let cell = columns.iter().position(|name| name == column)?;
        Some(Share { cell, tests, number })
    }

    /// The constraints of each scan. None at all when a column would have to equal one of no values.
    fn constraints(&self) -> Vec<Vec<Constraint>> {
        let fixed: Vec<Constraint> = self.fixed.values().flatten().cloned().collect();
        match &self.variants {
            None => vec![fixed],
            Some((column, tests)) => tests
                .iter()
                .map(|test| {
                    // One test of a kind for a column, and the one for a value says most.
                    let others = fixed.iter().filter(|other| other.column != *column).cloned();
                    others.chain([Constraint { column, test: test.clone() }]).collect()
                })
                .collect(),
        }
    }

    /// Notes what the table applies, and what is applied to its rows.
    fn tell(&self, table: &'static TableInfo, reading: &Reading, fetched: &mut Fetched) {
        let mut add = |shown: String, is_pushed: bool| {
            let shelf = if is_pushed { &mut fetched.pushed } else { &mut fetched.filtered };
            if !shelf.contains(&shown) {
                shelf.push(shown);
            }
        };
        for constraint in self.fixed.values().flatten() {
            add(answer::shown_constraint(table, constraint), true);
        }
        for conjunct in &reading.conjuncts {
            let column = conjunct.of.column;
            let is_variant = self.variants.as_ref().is_some_and(|(_, tests)| *tests == conjunct.any_of);
            match conjunct.any_of.as_slice() {
                [test] => {
                    let is_pushed = column.pushdown.takes(test) && self.fixed.contains_key(column.name);
                    if !is_pushed {
                        add(answer::shown(column, test), false);
                    }
                }
                tests => add(format!("{} is one of {} values", column.name, tests.len()), is_variant),
            }
        }
    }
}

fn has_equals(constraints: Option<&Vec<Constraint>>) -> bool {
    constraints.is_some_and(|known| known.iter().any(|known| matches!(known.test, Test::Equals(_))))
}

/// Adds a constraint to those of a column: ranges are intersected, and of others the first one of a kind is kept, because
/// rows are filtered by all of them anyway.
fn narrow(known: &mut Vec<Constraint>, new: Constraint) {
    for constraint in known.iter_mut() {
        match (&mut constraint.test, &new.test) {
            (Test::Within { from, before }, Test::Within { from: new_from, before: new_before }) => {
                *from = (*from).max(*new_from);
                *before = [*before, *new_before].into_iter().flatten().min();
                return;
            }
            (Test::Equals(_), Test::Equals(_)) | (Test::Prefix(_), Test::Prefix(_)) => return,
            _ => {}
        }
    }
    known.push(new);
}

/// What every kept row of a reading meets, by the place of its cell.
struct Filters<'a>(Vec<(usize, &'a [Test])>);

impl<'a> Filters<'a> {
    fn of(reading: &'a Reading, columns: &[&'static str]) -> Self {
        let filters = reading.conjuncts.iter().filter_map(|conjunct| {
            let place = columns.iter().position(|column| *column == conjunct.of.column.name)?;
            Some((place, conjunct.any_of.as_slice()))
        });
        Filters(filters.collect())
    }

    fn accept(&self, row: &Row) -> bool {
        self.0.iter().all(|(place, any_of)| any_of.iter().any(|test| test.accepts(&row[*place])))
    }
}
