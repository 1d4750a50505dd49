//! Every limit of DAG definitions and plans, by name and with its unit.
//!
//! A limit is checked where the value comes in, before anything is stored, and the error names it.

use segno_actions::document::{Budget, ListLimit};

/// Largest document in bytes.
pub const MAX_DAG_BYTES: usize = 4 * 1024 * 1024;

/// What the parser may use for one DAG. [`MAX_TASKS`] tasks with 50 values each fit.
pub const DAG_BUDGET: Budget = Budget {
    noun: "DAG",
    max_bytes: MAX_DAG_BYTES,
    max_depth: 32,
    max_nodes: 500_000,
    max_aliases: 10_000,
    max_anchors: 1_000,
    max_scalar_bytes: 8 * 1024 * 1024,
    lists: &[
        ListLimit { path: &["tasks"], max_items: MAX_TASKS },
        ListLimit { path: &["sensors"], max_items: MAX_SENSORS },
    ],
};

/// Most tasks of a DAG. A plan is one event, and an event of so many tasks stays below the largest object that the
/// ledger appends at once.
pub const MAX_TASKS: usize = 10_000;

/// Most edges of a DAG.
pub const MAX_EDGES: usize = 100_000;

/// Longest name of a DAG, task, parameter, asset, pool, sensor or partition definition in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// Most names that are compared with wrong ones of one document, for suggestions.
pub const MAX_COMPARISONS: usize = 100_000;

/// Longest description in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;

/// Most parameters of a DAG.
pub const MAX_PARAMS: usize = 100;

/// Largest value of one parameter, and of all parameters of a run, in bytes of JSON text.
pub const MAX_PARAMS_BYTES: usize = 64 * 1024;

/// Largest JSON Schema of a parameter in bytes of JSON text.
pub const MAX_PARAM_SCHEMA_BYTES: usize = 64 * 1024;

/// Largest input of a task in bytes of JSON text, before placeholders are resolved.
pub const MAX_INPUT_BYTES: usize = 64 * 1024;

/// Largest input of a task in bytes of JSON text, after placeholders are resolved.
pub const MAX_RESOLVED_INPUT_BYTES: usize = 1024 * 1024;

/// Most bytes of all inputs of a plan as JSON text.
pub const MAX_PLAN_INPUT_BYTES: usize = 4 * 1024 * 1024;

/// Most attempts of a task.
pub const MAX_ATTEMPTS: u32 = 1_000;

/// Largest factor between two waits.
pub const MAX_BACKOFF_FACTOR: u32 = 100;

/// Most items of a `for_each`, and the default of `max_items`.
pub const MAX_FOR_EACH_ITEMS: u32 = 10_000;

/// Most bytes of JSON text of the inputs that one `for_each` adds.
pub const MAX_EXPANDED_BYTES: usize = 4 * 1024 * 1024;

/// Most steps of a rehearsal; one that takes more is stopped.
pub const MAX_REHEARSAL_STEPS: usize = 100_000;

/// Most concurrency pools of a DAG.
pub const MAX_POOLS: usize = 100;

/// Most slots of a concurrency pool.
pub const MAX_POOL_SLOTS: u32 = 1_000_000;

/// Most runs of a DAG at a time.
pub const MAX_CONCURRENT_RUNS: u32 = 10_000;

/// Most assets of a DAG.
pub const MAX_ASSETS: usize = 10_000;

/// Most upstream assets of one asset.
pub const MAX_UPSTREAM_ASSETS: usize = 100;

/// Most partition definitions of a DAG.
pub const MAX_PARTITION_DEFINITIONS: usize = 100;

/// Most static partition keys.
pub const MAX_STATIC_KEYS: usize = 10_000;

/// Longest static partition key in bytes.
pub const MAX_PARTITION_KEY_BYTES: usize = 128;

/// Most keys that a range of partitions may have: eleven years of hours.
pub const MAX_RANGE_KEYS: usize = 100_000;

/// Most sensors of a DAG.
pub const MAX_SENSORS: usize = 100;

/// Least seconds between two evaluations of a sensor.
pub const MIN_SENSOR_INTERVAL_SEC: u64 = 30;

/// Seconds between two evaluations of a sensor that sets none.
pub const DEFAULT_SENSOR_INTERVAL_SEC: u64 = 60;

/// Least seconds in which an asset is stale.
pub const MIN_FRESHNESS_SEC: u64 = 60;

/// Most excluded days of a schedule.
pub const MAX_EXCLUDED_DAYS: usize = 1_000;
