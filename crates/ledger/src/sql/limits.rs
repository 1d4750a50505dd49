//! Every limit of queries.

use std::time::Duration;

/// Longest text of a query, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Most tokens of a query.
pub const MAX_TOKENS: usize = 20_000;

/// Most tokens that can lie on one path through the syntax tree: a bound for its depth, counted before it is built.
pub const MAX_PATH_TOKENS: usize = 1_000;

/// Deepest nesting of parentheses, subqueries and prefix operators.
pub const MAX_NESTING: usize = 40;

/// Most references to tables, subqueries and table functions.
pub const MAX_REFERENCES: usize = 32;

/// Most columns of an answer.
pub const MAX_COLUMNS: usize = 500;

/// Rows of an answer when a query does not say.
pub const DEFAULT_ROWS: usize = 1_000;

/// Most rows of an answer.
pub const MAX_ROWS: usize = 100_000;

/// Largest answer in bytes; what is beyond is left out, and the answer is marked as truncated.
pub const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// Most rows that one query fetches.
pub const MAX_FETCHED_ROWS: u64 = 5_000_000;

/// Most bytes that one query reads from tables, also those of rows that its conditions leave out.
pub const MAX_READ_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// Largest temporary database of one query, in bytes.
pub const MAX_DATABASE_BYTES: usize = 256 * 1024 * 1024;

/// Most memory that SQLite takes in this process, for all queries together.
pub const MAX_MEMORY_BYTES: usize = 512 * 1024 * 1024;

/// Longest value that a query can make or read, in bytes: a payload with room for what functions add.
pub const MAX_VALUE_BYTES: i32 = 8 * 1024 * 1024;

/// Longest pattern of LIKE and GLOB, in bytes.
pub const MAX_PATTERN_BYTES: i32 = 256;

/// Most values of one column in a condition, or from a join, that become constraints of their own.
pub const MAX_VALUES: usize = 1_000;

/// Time of a query when it does not say: with its wait for a place.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time of a query: less than a request may take.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// Queries that run at once on a node: as many as processors of a small machine.
pub const MAX_RUNNING: u32 = 2;

/// Queries that wait for a place on a node.
pub const MAX_WAITING: usize = 100;

/// Queries of one tenant that run or wait.
pub const MAX_WAITING_PER_TENANT: usize = 8;

/// Stack of the thread of a query, in bytes: enough for trees of [`MAX_PATH_TOKENS`] in a build without optimisation.
pub const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Between two checks of the deadline, in instructions of SQLite's virtual machine. An instruction may call a function
/// with arguments of [`MAX_VALUE_BYTES`], so there are few.
pub const PROGRESS_STEPS: i32 = 100;
