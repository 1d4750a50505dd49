//! Every key of the format, object by object. The JSON Schema for editors and the guide are tested against these tables.

use segno_actions::document::ObjectKeys;

/// The document.
pub(super) const DAG: ObjectKeys = ObjectKeys {
    object: "dag",
    keys: &[
        "name",
        "description",
        "params",
        "partitions",
        "partitioned_by",
        "assets",
        "pools",
        "schedule",
        "sensors",
        "notify",
        "max_concurrent_runs",
        "defaults",
        "tasks",
    ],
};

/// A value of `params`.
pub(super) const PARAMETER: ObjectKeys =
    ObjectKeys { object: "parameter", keys: &["description", "default", "schema"] };

/// A value of `partitions`.
pub(super) const PARTITIONS: ObjectKeys = ObjectKeys {
    object: "partitions",
    keys: &["window", "timezone", "first", "last", "values", "dimensions"],
};

/// A value of `assets`.
pub(super) const ASSET: ObjectKeys =
    ObjectKeys { object: "asset", keys: &["description", "partitions", "freshness", "upstream"] };

/// An item of `upstream`.
pub(super) const UPSTREAM: ObjectKeys = ObjectKeys { object: "upstream", keys: &["asset", "mapping"] };

/// `schedule`.
pub(super) const SCHEDULE: ObjectKeys = ObjectKeys {
    object: "schedule",
    keys: &[
        "cron_expr",
        "every",
        "at",
        "timezone",
        "daylight",
        "anchor",
        "starts_at",
        "ends_at",
        "exclude",
        "params",
    ],
};

/// `daylight`.
pub(super) const DAYLIGHT: ObjectKeys = ObjectKeys { object: "daylight", keys: &["gap", "overlap"] };

/// An item of `sensors`.
pub(super) const SENSOR: ObjectKeys =
    ObjectKeys { object: "sensor", keys: &["name", "function", "input", "interval"] };

/// `notify`.
pub(super) const NOTIFY: ObjectKeys = ObjectKeys { object: "notify", keys: &["function", "on"] };

/// `defaults`.
pub(super) const DEFAULTS: ObjectKeys = ObjectKeys {
    object: "defaults",
    keys: &["retry", "timeout", "heartbeat_timeout", "tag", "pool", "worker_pool"],
};

/// An item of `tasks`.
pub(super) const TASK: ObjectKeys = ObjectKeys {
    object: "task",
    keys: &[
        "key",
        "depends_on",
        "function",
        "orchestration",
        "input",
        "retry",
        "timeout",
        "heartbeat_timeout",
        "tag",
        "pool",
        "worker_pool",
        "completion",
        "trigger_rule",
        "for_each",
        "asset",
    ],
};

/// `retry`.
pub(super) const RETRY: ObjectKeys =
    ObjectKeys { object: "retry", keys: &["attempts", "initial_delay", "factor", "max_delay"] };

/// `for_each`.
pub(super) const FOR_EACH: ObjectKeys = ObjectKeys { object: "for_each", keys: &["items", "max_items"] };

/// All of them.
pub const OBJECTS: &[&ObjectKeys] = &[
    &DAG,
    &PARAMETER,
    &PARTITIONS,
    &ASSET,
    &UPSTREAM,
    &SCHEDULE,
    &DAYLIGHT,
    &SENSOR,
    &NOTIFY,
    &DEFAULTS,
    &TASK,
    &RETRY,
    &FOR_EACH,
];
