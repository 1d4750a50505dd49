//! Every limit of runbooks, by name and with its unit.
//!
//! A limit is checked where the value comes in, before anything is stored, and the error names it.

use std::time::Duration;

use segno_actions::document::{Budget, ListLimit};
use segno_actions::template::limits::MAX_JSON_TEMPLATE_BYTES;

/// A limit of whole MiB as people read it.
pub(crate) fn in_mib(bytes: usize) -> String {
    format!("{} MiB", bytes / (1024 * 1024))
}

/// Largest YAML document in bytes.
pub const MAX_RUNBOOK_BYTES: usize = 1024 * 1024;

/// Deepest nesting of a YAML document.
pub const MAX_YAML_DEPTH: usize = 32;

/// Most nodes of a YAML document: scalars, lists and maps, aliases expanded.
pub const MAX_YAML_NODES: usize = 100_000;

/// Most aliases (`*name`) of a YAML document.
pub const MAX_YAML_ALIASES: usize = 1_000;

/// Most anchors (`&name`) of a YAML document.
pub const MAX_YAML_ANCHORS: usize = 1_000;

/// Most bytes of all scalars of a YAML document, aliases expanded.
pub const MAX_YAML_SCALAR_BYTES: usize = 4 * 1024 * 1024;

/// What the parser may use for one runbook.
pub const YAML_BUDGET: Budget = Budget {
    noun: "runbook",
    max_bytes: MAX_RUNBOOK_BYTES,
    max_depth: MAX_YAML_DEPTH,
    max_nodes: MAX_YAML_NODES,
    max_aliases: MAX_YAML_ALIASES,
    max_anchors: MAX_YAML_ANCHORS,
    max_scalar_bytes: MAX_YAML_SCALAR_BYTES,
    lists: &[
        ListLimit { path: &["phases"], max_items: MAX_PHASES },
        ListLimit { path: &["phases", "*", "steps"], max_items: MAX_STEPS },
        ListLimit { path: &["init"], max_items: MAX_STEPS },
        ListLimit { path: &["on_member_removed"], max_items: MAX_STEPS },
        ListLimit { path: &["rollbacks", "*"], max_items: MAX_STEPS },
    ],
};

/// Longest name of a runbook, phase, step, rollback, worker pool, function, variable or column in
/// bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// Longest description or approval message in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;

/// Most phases of a runbook.
pub const MAX_PHASES: usize = 100;

/// Most steps of a phase, of `init`, of a rollback or of `on_member_removed`.
pub const MAX_STEPS: usize = 100;

/// Most rollbacks of a runbook.
pub const MAX_ROLLBACKS: usize = 100;

/// Most parameters of a step on the first level, and most of its output parameters.
pub const MAX_PARAMS: usize = 256;

/// Largest `params` of a step in bytes of JSON text, before placeholders are resolved.
pub const MAX_PARAMS_BYTES: usize = MAX_JSON_TEMPLATE_BYTES;

/// Largest `params` of a call in bytes of JSON text, after placeholders are resolved.
pub const MAX_RESOLVED_PARAMS_BYTES: usize = 128 * 1024;

/// Most retries of a step.
pub const MAX_RETRIES: u32 = 1_000;

/// Pause before a retry in seconds if the runbook does not set one.
pub const DEFAULT_RETRY_INTERVAL_SEC: u64 = 60;

/// Most waves of a phase.
pub const MAX_WAVES: usize = 100;

/// Largest `max_parallel` of a phase.
pub const MAX_PARALLEL: u32 = 1_000_000;

/// Most blackout windows of a runbook.
pub const MAX_BLACKOUTS: usize = 32;

/// Most entries in `days` of a blackout window.
pub const MAX_BLACKOUT_DAYS: usize = 100;

/// Days after which a blackout is evaluated again, should it last that long.
pub const MAX_BLACKOUT_LOOKAHEAD_DAYS: i64 = 400;

/// Longest query of a data source in bytes.
pub const MAX_QUERY_BYTES: usize = 64 * 1024;

/// Longest location or URL of a data source in bytes.
pub const MAX_URL_BYTES: usize = 4 * 1024;

/// Most headers of an HTTP data source.
pub const MAX_HEADERS: usize = 32;

/// Seconds between two queries of a data source if the runbook does not set them.
pub const DEFAULT_INTERVAL_SEC: u64 = 5 * 60;

/// Least seconds between two queries of a data source.
pub const MIN_INTERVAL_SEC: u64 = 10;

/// Percentage of a batch's members that one query may remove without approval if the runbook does
/// not set it.
pub const DEFAULT_MAX_REMOVED_PERCENT: u8 = 20;

/// Batches of `batch_time: immediate` start at a multiple of so many seconds.
pub const IMMEDIATE_BATCH_SEC: i64 = 5 * 60;

/// Most multi-valued columns of a data source.
pub const MAX_MULTI_VALUED_COLUMNS: usize = 100;

/// Most values in one cell of a multi-valued column.
pub const MAX_VALUES: usize = 1_000;

/// Largest CSV file of a manual batch in bytes.
pub const MAX_CSV_BYTES: usize = 10 * 1024 * 1024;

/// Most rows of a CSV file of a manual batch.
pub const MAX_CSV_ROWS: usize = 50_000;

/// Largest answer of a data source in bytes, all pages together.
pub const MAX_SOURCE_BYTES: usize = 256 * 1024 * 1024;

/// Most rows of a data source.
pub const MAX_SOURCE_ROWS: usize = 1_000_000;

/// Most pages of an HTTP data source.
pub const MAX_SOURCE_PAGES: usize = 10_000;

/// Longest time of a query of a data source.
pub const SOURCE_TIMEOUT: Duration = Duration::from_mins(2);

/// Most columns of a member's row.
pub const MAX_COLUMNS: usize = 500;

/// Longest key of a member in characters.
pub const MAX_MEMBER_KEY_CHARS: usize = 256;

/// Largest row of a member in bytes.
pub const MAX_ROW_BYTES: usize = 64 * 1024;
