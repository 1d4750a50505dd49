//! Every limit of functions, by name and with its unit.
//!
//! A limit is checked where the value comes in, before anything is stored, and the error names it.

use std::time::Duration;

use super::duration::HumanDuration;

/// Longest function name, namespace or tenant in bytes.
pub const MAX_SLUG_BYTES: usize = 64;

/// Longest tag in bytes: a remote routing tag has to fit into 256 with three slugs before it.
pub const MAX_TAG_BYTES: usize = 48;

/// Longest name of a pool, or of a function in a pool, in bytes.
pub const MAX_POOL_NAME_BYTES: usize = 128;

/// Most entries of a pool's allow-list.
pub const MAX_POOL_FUNCTIONS: usize = 1_000;

/// Most pools that the workers of a namespace and tenant may announce.
pub const MAX_ANNOUNCED_POOLS: usize = 1_000;

/// Most bytes that the pools of a namespace and tenant which workers have announced take in the store, with the names
/// of their functions.
pub const MAX_ANNOUNCED_BYTES: usize = 1024 * 1024;

/// Most calls of a pool per second.
pub const MAX_POOL_CALLS_PER_SECOND: f64 = 10_000.0;

/// Longest reason of a pause in bytes.
pub const MAX_PAUSE_REASON_BYTES: usize = 1_024;

/// Longest description in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;

/// Most attempts of one call.
pub const MAX_ATTEMPTS: u32 = 1_000;

/// Largest factor between two pauses.
pub const MAX_RETRY_FACTOR: f64 = 100.0;

/// How long a tool may take if its declaration does not say.
pub const DEFAULT_PROCESS_TIMEOUT: HumanDuration = HumanDuration::from_secs(10 * 60);

/// How long an HTTP call may take if its declaration does not say.
pub const DEFAULT_HTTP_TIMEOUT: HumanDuration = HumanDuration::from_secs(30);

/// Largest schema in bytes of JSON text.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Most regular expressions in one schema: each takes memory when it is compiled.
pub const MAX_SCHEMA_PATTERNS: usize = 32;

/// Longest regular expression in a schema in bytes.
pub const MAX_SCHEMA_PATTERN_BYTES: usize = 2 * 1024;

/// Most bytes that translating all regular expressions of one schema may parse: the validator parses an expression again
/// for each class such as `\\d` and each control letter such as `\\cA` in it.
pub const MAX_SCHEMA_TRANSLATED_BYTES: u64 = 2_000_000;

/// Most states of the automata of all regular expressions in one schema, as estimated before they are compiled.
pub const MAX_SCHEMA_PATTERN_STATES: u64 = 500_000;

/// Deepest nesting of a schema's JSON text. Checking it against its metaschema recurses about five times per level.
pub const MAX_SCHEMA_LEVELS: usize = 64;

/// Most subschemas in one schema: compiling takes time in the square of their number.
pub const MAX_SCHEMA_SUBSCHEMAS: usize = 2_000;

/// Most references (`$ref`, `$dynamicRef`) in one schema.
pub const MAX_SCHEMA_REFERENCES: usize = 500;

/// Longest chain of subschemas that apply to the same value (`$ref` to `$ref`, `allOf` in `allOf`).
pub const MAX_SCHEMA_CHAIN: usize = 64;

/// Most JSON values in subschemas that are outside the places for subschemas: each is checked against the metaschema
/// once per level above it.
pub const MAX_SCHEMA_REVALIDATED: usize = 20_000;

/// Most evaluations that checking one input may take: a subschema with a value is one, and long strings, lists of names
/// and comparisons count as several.
pub const MAX_SCHEMA_EVALUATIONS: u64 = 1_000_000;

/// Deepest recursion of checking one input: a subschema with a value is one level.
pub const MAX_SCHEMA_RECURSION: usize = 200;

/// Most evaluations of an input whose violations are listed one by one: each may be an error in memory.
pub const MAX_EXPLAINED_EVALUATIONS: u64 = 100_000;

/// Threads that compile schemas and check inputs.
pub const SCHEMA_THREADS: usize = 3;

/// Threads of those that one tenant has at once: one is always left for others.
pub const SCHEMA_THREADS_PER_TENANT: usize = SCHEMA_THREADS - 1;

/// Stack of such a thread in bytes.
pub const SCHEMA_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Most checks of one tenant that wait for such a thread; further ones are refused as `unavailable`.
pub const MAX_WAITING_CHECKS_PER_TENANT: usize = 256;

/// Most checks of all tenants that wait for such a thread. Beyond it, those of the tenant with the most are refused.
pub const MAX_WAITING_CHECKS: usize = 4 * MAX_WAITING_CHECKS_PER_TENANT;

/// For so long the check of an action or occurrence that is due waits behind others of its tenant; then it is postponed.
pub const SCHEDULED_CHECK_PATIENCE: Duration = Duration::from_millis(500);

/// Most compiled schemas of stored functions that a node keeps.
pub const MAX_CACHED_SCHEMAS: usize = 1_024;

/// Most bytes of compiled schemas of stored functions that a node keeps, as estimated at worst.
pub const MAX_CACHED_SCHEMA_BYTES: usize = 128 * 1024 * 1024;

/// Largest compiled schema that is kept, in bytes as estimated; larger ones are compiled for each call.
pub const MAX_CACHED_SCHEMA_ENTRY_BYTES: usize = MAX_CACHED_SCHEMA_BYTES / 4;

/// Most violations that one error lists.
pub const MAX_VIOLATIONS: usize = 10;

/// Largest secret in bytes.
pub const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Largest stored function in bytes.
pub const MAX_STORED_FUNCTION_BYTES: usize = 128 * 1024;

/// Most arguments of a tool, its program included.
pub const MAX_ARGUMENTS: usize = 256;

/// Most variables that a declaration sets or passes on.
pub const MAX_VARIABLES: usize = 128;

/// Most bytes of log that are kept of one attempt.
pub const MAX_LOG_BYTES: usize = 256 * 1024;

/// Longest time between SIGTERM and SIGKILL.
pub const MAX_STOP_GRACE: HumanDuration = HumanDuration::from_secs(60);

/// How long a log is kept.
pub const LOG_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Most redirects that a call may follow.
pub const MAX_REDIRECTS: u32 = 3;

/// Most headers that a declaration sets.
pub const MAX_HEADERS: usize = 64;

/// Most record writes of a settler in the commit that ends a call.
pub const MAX_SETTLE_WRITES: usize = 64;
