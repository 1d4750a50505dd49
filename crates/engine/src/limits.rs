//! Every limit of the engine, by name and with its unit.
//!
//! A limit is checked where the value enters (client call, context call, turn commit), before anything
//! is stored, and the error names the limit and the way out.

use std::time::Duration;

/// Largest payload (input, result, signal, status, failure details) in bytes of JSON text.
pub const MAX_PAYLOAD_BYTES: usize = 2 * 1024 * 1024;

/// Deepest nesting of a payload, in levels of arrays and objects. Common JSON readers fail at 128.
pub const MAX_PAYLOAD_DEPTH: usize = 100;

/// Levels that a value may add around the [`Payload`](crate::Payload)s inside it, so that what a node was given fits into
/// what it makes of it: the call of a function around its input, say.
pub const MAX_ENVELOPE_DEPTH: usize = 16;

/// Bytes that a value may add around the [`Payload`](crate::Payload)s inside it, for the same reason.
pub const MAX_ENVELOPE_BYTES: usize = 64 * 1024;

/// Longest message of a failure in bytes; longer ones are cut. Details over [`MAX_PAYLOAD_BYTES`] are left out.
pub const MAX_FAILURE_MESSAGE_BYTES: usize = 64 * 1024;

/// Most events that one execution may record. Long loops use continue-as-new, which starts a fresh history.
pub const MAX_EVENTS_PER_EXECUTION: u64 = 51_200;

/// Most bytes of user data in the history of one execution: inputs, results, messages, statuses and failures. It is read
/// as a whole at every replay. Loops over large data use continue-as-new, or keep the data elsewhere and pass references.
pub const MAX_HISTORY_BYTES: usize = 128 * 1024 * 1024;

/// Longest instance id in bytes.
pub const MAX_INSTANCE_ID_BYTES: usize = 512;

/// Longest name of an orchestration, activity, step, signal, mailbox, tag, session or patch in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// Most labels on one instance.
pub const MAX_LABELS: usize = 32;

/// Longest label value in bytes.
pub const MAX_LABEL_VALUE_BYTES: usize = 256;

/// Most messages and events that wait unread in one execution, over all its mailboxes and signals.
pub const MAX_UNREAD_MESSAGES: usize = 10_000;

/// Most bytes of data of the messages and events that wait unread in one execution. Further ones become dead letters.
pub const MAX_UNREAD_BYTES: usize = 64 * 1024 * 1024;

/// Most bytes of user data in the histories of the executions that a node keeps in memory between turns. Beyond, the
/// least recently used ones leave, and are replayed at their next turn.
pub const MAX_RESIDENT_BYTES: usize = 256 * 1024 * 1024;

/// One execution counts for this many bytes at most against [`MAX_RESIDENT_BYTES`]. So a few executions stay in memory
/// however long their histories are: a replay at every turn would cost the square of the history.
pub const MAX_RESIDENT_EXECUTION_BYTES: usize = MAX_RESIDENT_BYTES / 4;

/// Most commands (activities, timers, children, …) and steps that code may ask for at once, in answer to one event.
pub const MAX_COMMANDS_PER_TURN: usize = 10_000;

/// Most tags that one node may subscribe to.
pub const MAX_WORKER_TAGS: usize = 5;

/// Most tags that one fetch of a [`WorkQueue`](crate::work::WorkQueue) may name.
pub const MAX_FETCH_TAGS: usize = 256;

/// Most prefixes of tags that one fetch of a [`WorkQueue`](crate::work::WorkQueue) may leave out.
pub const MAX_EXCEPT_PREFIXES: usize = 512;

/// Most activities that one fetch of a [`WorkQueue`](crate::work::WorkQueue) leases.
pub const MAX_FETCHED_WORK: usize = 256;

/// Shortest lease of an activity.
pub const MIN_LEASE: Duration = Duration::from_millis(10);

/// Longest lease of an activity without a heartbeat, and longest delay of one that is released.
pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// Deliveries of a turn or activity without an answer before it fails as poison, unless set otherwise.
pub const DEFAULT_MAX_DELIVERIES: u32 = 10;

/// Most instances that one bulk call touches.
pub const MAX_BULK_INSTANCES: usize = 10_000;

/// Most rows that one listing returns.
pub const MAX_PAGE_ROWS: usize = 1_000;

/// Longest pause that a failure may ask for before the next attempt.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How many message ids an execution remembers to drop repeated deliveries.
pub const MAX_REMEMBERED_MESSAGE_IDS: usize = 1_024;

/// Most polls of an orchestration for one delivered event before it is called a busy loop.
pub const MAX_POLLS_PER_DELIVERY: usize = 100_000;

/// Longest durable timer: ten years.
pub const MAX_TIMER: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// Longest reason of a dead letter in bytes; longer ones are cut.
pub const MAX_DEAD_LETTER_REASON_BYTES: usize = 4 * 1024;

/// How long a dead letter is kept.
pub const DEAD_LETTER_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Most bytes of the JSON Schemas that one orchestration declares.
pub const MAX_SCHEMAS_BYTES: usize = 128 * 1024;

/// Most signals and mailboxes of one orchestration that have a schema.
pub const MAX_MESSAGE_SCHEMAS: usize = 100;
