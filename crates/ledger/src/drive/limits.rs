//! Limits of the driver.

use std::time::Duration;

/// Most records of the outbox that one append takes.
pub const OUTBOX_RECORDS_PER_PART: usize = 1_000;

/// Most bytes of records that one append takes, unless the first alone has more.
pub const OUTBOX_BYTES_PER_PART: usize = 4 * 1024 * 1024;

/// Largest output of a task that is part of its event, in bytes. A larger one is kept by reference to its instance.
pub const MAX_INLINE_OUTPUT_BYTES: usize = 64 * 1024;

/// Longest error message of a task that is part of its event, in bytes.
pub const MAX_ERROR_BYTES: usize = 4 * 1024;

/// How long a task token is valid. Each heartbeat returns a new one.
pub const TASK_TOKEN_LIFE: Duration = Duration::from_secs(60 * 60);

/// Events that wait for longer than this to be folded are reported as a trouble.
pub const FOLD_LAG_LIMIT: Duration = Duration::from_secs(30);

/// How long an attempt whose worker calls back may be handed over without being started.
pub const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long it is known what workers have reported of an attempt: longer than any token.
pub const RECEIPT_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Largest body of a report of a worker, in bytes.
pub const MAX_CALLBACK_BODY_BYTES: usize = 256 * 1024;

/// Longest name, path or category in a report, in bytes.
pub const MAX_CALLBACK_TEXT_BYTES: usize = 1_024;

/// Largest metrics and partial progress of a report, in bytes of JSON text each.
pub const MAX_CALLBACK_METRICS_BYTES: usize = 16 * 1024;

/// Most tasks that are started in one commit.
pub const STARTS_PER_COMMIT: usize = 256;

/// Shortest time between two appends to a bucket, unless the settings have another: four a second, with some ten puts each.
pub const BUCKET_FOLD_INTERVAL: Duration = Duration::from_millis(250);

/// Longest time that a setting may have there, well within a lease.
pub const MAX_FOLD_INTERVAL: Duration = Duration::from_secs(10);

/// A dispatched task is checked when its end was not reported for so long.
pub const CHECK_AFTER: Duration = Duration::from_millis(500);

/// Most dispatched tasks that are checked at once.
pub const CHECKS_PER_PART: usize = 256;

/// Calls that are checked or prepared at the same time.
pub const CALLS_AT_ONCE: usize = 64;

/// Most scopes that a node holds at once.
pub const MAX_HELD_SCOPES: usize = 1_024;

/// How long a scope that has nothing to do is kept, because requests often come in bursts.
pub const KEEP_QUIET: Duration = Duration::from_secs(10);

/// How often the log is listed for events that others have appended.
pub const LOG_POLL: Duration = Duration::from_secs(5);

/// How long a holder that commits nothing keeps its scope, unless the driver sets another time. A lease is renewed when
/// half of it is over.
pub const LEASE: Duration = Duration::from_secs(30);

/// How often a node looks for scopes whose events wait although no node looks after them.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Events that have waited for so long are looked after by the sweep.
pub const SWEEP_AFTER: Duration = Duration::from_secs(60);

/// How long a read after a write of the same caller waits for its event to be visible.
pub const READ_AFTER_WRITE: Duration = Duration::from_secs(2);

/// Longest key of a run, in bytes.
pub const MAX_RUN_KEY_BYTES: usize = 512;

/// How long the key of a run is reserved: as long as the tables keep it.
pub const RUN_KEY_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Most labels of a run.
pub const MAX_LABELS: usize = 32;

/// Longest key or value of a label, in bytes.
pub const MAX_LABEL_BYTES: usize = 256;

/// Most runs, tasks or backfills that are read for one page: a page of 1,000, and one more that tells whether others follow.
pub const MAX_PAGE: usize = 1_001;

/// Most tasks of a run: those of its plan for each of its partitions, and the items of its lists. A run in memory takes about
/// 30 kB for each.
pub const MAX_RUN_TASKS: usize = 25_000;

/// Most tasks that one request names.
pub const MAX_NAMED_TASKS: usize = 1_000;

/// Longest text of a reason, in bytes.
pub const MAX_REASON_BYTES: usize = 4 * 1024;

/// Partitions of a chunk of a backfill that says nothing about it.
pub const CHUNK_SIZE: u32 = 10;

/// Runs of a backfill at a time that says nothing about it.
pub const BACKFILL_RUNS: u32 = 2;

/// Most runs of a backfill at a time.
pub const MAX_BACKFILL_RUNS: u32 = 100;

/// Most partitions of a backfill.
pub const MAX_BACKFILL_PARTITIONS: u32 = 100_000;

/// Bytes of events that are appended as one object, unless a single event has more.
pub const APPEND_BYTES: usize = 8 * 1024 * 1024;

/// Most failed tasks of a run of which there is a notice each.
pub const MAX_TASK_NOTICES: u32 = 20;

/// Most DAGs of a tenant whose assets are in the lineage graph.
pub const MAX_LINEAGE_DAGS: usize = 5_000;

/// Most tenants whose lineage graphs are kept in memory.
pub const MAX_CACHED_GRAPHS: usize = 64;

/// Most edges between the assets of a tenant.
pub const MAX_LINEAGE_EDGES: usize = 200_000;

/// Most pairs of an asset and a task that reads it, of all assets of a tenant.
pub const MAX_LINEAGE_READERS: usize = 500_000;

/// Documents of more bytes are not parsed by the threads that serve.
pub const MAX_INLINE_DOCUMENT_BYTES: usize = 16 * 1024;

/// Most assets upstream or downstream of one.
pub const MAX_LINEAGE_ASSETS: usize = 500;

/// Most partitions of each of them.
pub const MAX_LINEAGE_PARTITIONS: usize = 100;

/// Most runs that one poll of a sensor requests.
pub const MAX_SENSOR_RUNS: usize = 100;

/// Longest cursor of a sensor, in bytes.
pub const MAX_CURSOR_BYTES: usize = 4 * 1024;

/// Longest time of one poll of a sensor.
pub const POLL_TIMEOUT: Duration = Duration::from_secs(60);

/// Shortest time between two polls of a sensor.
pub const MIN_POLL: Duration = Duration::from_secs(30);

/// Longest time between two polls of a sensor that fails, unless its interval is longer.
pub const MAX_SENSOR_BACKOFF: Duration = Duration::from_secs(60 * 60);

/// Most polls of a node at a time.
pub const MAX_POLLS: usize = 64;

/// Most of them of one namespace and tenant.
pub const MAX_POLLS_OF_SCOPE: usize = 8;

/// How long acknowledgements may wait for other events to be appended with.
pub const ACKNOWLEDGE_WITHIN: Duration = Duration::from_millis(100);
