//! Every key of the YAML format, object by object. The JSON Schema for editors and the guide are
//! tested against these tables.

use segno_actions::document::ObjectKeys;

/// The document.
pub(super) const RUNBOOK: ObjectKeys = ObjectKeys {
    object: "runbook",
    keys: &[
        "name",
        "description",
        "retry",
        "data_source",
        "members",
        "on_phase_failure",
        "blackout",
        "notify",
        "init",
        "phases",
        "on_member_removed",
        "rollbacks",
    ],
};

/// `data_source`.
pub(super) const DATA_SOURCE: ObjectKeys = ObjectKeys {
    object: "data_source",
    keys: &[
        "type",
        "connection",
        "query",
        "location",
        "url",
        "headers",
        "rows",
        "next_page",
        "function",
        "input",
        "primary_key",
        "batch_time",
        "batch_time_column",
        "multi_valued_columns",
        "interval",
        "max_removed_percent",
    ],
};

/// An item of `multi_valued_columns`.
pub(super) const MULTI_VALUED: ObjectKeys =
    ObjectKeys { object: "multi_valued_column", keys: &["name", "format"] };

/// A value that is a secret.
pub(super) const SECRET: ObjectKeys = ObjectKeys { object: "secret", keys: &["env", "file"] };

/// An item of `phases`.
pub(super) const PHASE: ObjectKeys = ObjectKeys {
    object: "phase",
    keys: &[
        "name",
        "offset",
        "steps",
        "success_threshold",
        "max_parallel",
        "waves",
        "error_budget",
        "approval",
    ],
};

/// An item of `waves`.
pub(super) const WAVE: ObjectKeys = ObjectKeys { object: "wave", keys: &["percent", "pause"] };

/// `approval`.
pub(super) const APPROVAL: ObjectKeys = ObjectKeys { object: "approval", keys: &["message", "timeout"] };

/// `notify`.
pub(super) const NOTIFY: ObjectKeys = ObjectKeys { object: "notify", keys: &["function", "on"] };

/// An item of `blackout`.
pub(super) const BLACKOUT: ObjectKeys =
    ObjectKeys { object: "blackout", keys: &["days", "from", "to", "timezone"] };

/// A step, wherever it stands.
pub(super) const STEP: ObjectKeys = ObjectKeys {
    object: "step",
    keys: &["name", "worker_id", "function", "params", "output_params", "on_failure", "poll", "retry"],
};

/// `poll`.
pub(super) const POLL: ObjectKeys = ObjectKeys { object: "poll", keys: &["interval", "timeout"] };

/// `retry`.
pub(super) const RETRY: ObjectKeys = ObjectKeys { object: "retry", keys: &["max_retries", "interval"] };

/// All of them.
pub const OBJECTS: &[&ObjectKeys] = &[
    &RUNBOOK,
    &DATA_SOURCE,
    &MULTI_VALUED,
    &SECRET,
    &PHASE,
    &WAVE,
    &APPROVAL,
    &BLACKOUT,
    &NOTIFY,
    &STEP,
    &POLL,
    &RETRY,
];
