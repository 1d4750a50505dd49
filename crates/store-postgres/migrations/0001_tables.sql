-- Tables, indexes and sequences. Times are Unix milliseconds of the database's clock; ids compare byte by byte.
--
-- Hot and narrow: turn, message, activity, session. Append-only: event_batch, past_execution. One row per thing: instance, record.
-- Order in which every commit takes row locks, so that two commits never wait for each other:
-- turn by instance, activity by id, session by id, record by kind and id. Fetches skip what is locked and never wait.

CREATE SEQUENCE @schema@.lock_token;
CREATE SEQUENCE @schema@.message_id;
CREATE SEQUENCE @schema@.activity_id;
CREATE SEQUENCE @schema@.record_version;

-- The only clock that decides visibility and expiry.
CREATE FUNCTION @schema@.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- One row per instance that has started or received events, with its current execution: a turn changes this row and no
-- other one.
CREATE TABLE @schema@.instance (
    instance_id text COLLATE "C" PRIMARY KEY,
    created_at_ms bigint NOT NULL,
    updated_at_ms bigint NOT NULL,
    revision bigint NOT NULL,
    name text COLLATE "C",
    version text,
    parent_id text COLLATE "C",
    custom_status_version bigint NOT NULL DEFAULT 0,
    custom_status bytea,
    -- Key, value, key, value.
    labels text[] NOT NULL DEFAULT '{}',
    -- From here on it is about the current execution.
    execution_id bigint NOT NULL,
    status smallint NOT NULL,
    started_at_ms bigint NOT NULL,
    completed_at_ms bigint,
    last_event_id bigint NOT NULL,
    incarnation bigint,
    pinned_version text,
    -- The engine version that it is pinned to, in a form that sorts like versions; '' for none.
    pin_key text COLLATE "C" NOT NULL DEFAULT '',
    output bytea
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX instance_status ON @schema@.instance (status, created_at_ms DESC, instance_id);
CREATE INDEX instance_name ON @schema@.instance (name, created_at_ms DESC, instance_id) WHERE name IS NOT NULL;
CREATE INDEX instance_parent ON @schema@.instance (parent_id, created_at_ms DESC, instance_id) WHERE parent_id IS NOT NULL;
CREATE INDEX instance_ended ON @schema@.instance (completed_at_ms, instance_id) WHERE status IN (3, 4, 5);

CREATE TABLE @schema@.label (
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    created_at_ms bigint NOT NULL,
    instance_id text COLLATE "C" NOT NULL
);
CREATE INDEX label_value ON @schema@.label (key, value, created_at_ms DESC, instance_id);
CREATE INDEX label_instance ON @schema@.label (instance_id);

-- Executions that another one followed.
CREATE TABLE @schema@.past_execution (
    instance_id text COLLATE "C" NOT NULL,
    execution_id bigint NOT NULL,
    status smallint NOT NULL,
    started_at_ms bigint NOT NULL,
    completed_at_ms bigint,
    incarnation bigint,
    pinned_version text,
    output bytea,
    PRIMARY KEY (instance_id, execution_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- All executions.
CREATE VIEW @schema@.execution AS
    SELECT instance_id, execution_id, status, started_at_ms, completed_at_ms, incarnation, pinned_version, output
      FROM @schema@.past_execution
    UNION ALL
    SELECT instance_id, execution_id, status, started_at_ms, completed_at_ms, incarnation, pinned_version, output
      FROM @schema@.instance;

-- Histories: a row has the events of one commit, `data[n]` that of number `ids[n]`. Rows are kept as they are up to the
-- size of a page: compressing each of them would cost more than it saves.
CREATE TABLE @schema@.event_batch (
    instance_id text COLLATE "C" NOT NULL,
    execution_id bigint NOT NULL,
    -- The highest of its numbers.
    last_id bigint NOT NULL,
    ids bigint[] NOT NULL,
    data bytea[] NOT NULL,
    PRIMARY KEY (instance_id, execution_id, last_id)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.2, toast_tuple_target = 8160);

-- Histories, an event a row.
CREATE VIEW @schema@.event AS
    SELECT b.instance_id, b.execution_id, e.event_id, e.data
      FROM @schema@.event_batch b CROSS JOIN LATERAL unnest(b.ids, b.data) AS e(event_id, data);

-- What waits for an instance, and its lock; a row exists only while there is a message or a lock. It is also what
-- every commit for the instance locks first.
CREATE TABLE @schema@.turn (
    instance_id text COLLATE "C" PRIMARY KEY,
    pin_key text COLLATE "C" NOT NULL,
    -- Whether it can be fetched now; then `head` is its oldest visible message and its place in the order.
    ready boolean NOT NULL,
    head bigint NOT NULL,
    -- When not ready: when that may change. The end of the lock if there is one, else the time of the next message.
    next_at_ms bigint NOT NULL,
    lock_token bigint,
    -- Messages under the lock: those that came visible, and those that had a later time when they came.
    fetched bigint[],
    fetched_late bigint[],
    -- Nothing is shown before this time: the batch was given back with a delay.
    not_before_ms bigint NOT NULL DEFAULT 0,
    -- The guarded start that waits.
    start_id bigint
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX turn_ready ON @schema@.turn (pin_key, head) WHERE ready;
CREATE INDEX turn_later ON @schema@.turn (next_at_ms) WHERE NOT ready;

-- The orchestrator queue. Inserted once, deleted once; `attempts` counts only fetches that came to nothing.
-- Every message is in exactly one of the two indexes, by whether it had to wait when it came.
CREATE TABLE @schema@.message (
    id bigint NOT NULL,
    instance_id text COLLATE "C" NOT NULL,
    late boolean NOT NULL,
    visible_at_ms bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    timer_execution_id bigint,
    timer_id bigint,
    body bytea NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX message_prompt ON @schema@.message (instance_id, id) WHERE NOT late;
CREATE INDEX message_late ON @schema@.message (instance_id, visible_at_ms, id) WHERE late;
CREATE INDEX message_timer ON @schema@.message (instance_id, timer_execution_id, timer_id) WHERE timer_id IS NOT NULL;

-- The worker queue.
CREATE TABLE @schema@.activity (
    id bigint PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    execution_id bigint NOT NULL,
    activity_id bigint NOT NULL,
    -- '' without a tag, else ':' and the tag.
    lane text COLLATE "C" NOT NULL,
    session_id text COLLATE "C",
    ready boolean NOT NULL,
    -- When not ready: the end of the lock if there is one, else the time of the activity.
    next_at_ms bigint NOT NULL,
    lock_token bigint,
    attempts integer NOT NULL DEFAULT 0,
    -- As it was given.
    visible_at_ms bigint,
    body bytea NOT NULL
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX activity_ready ON @schema@.activity (lane, id) WHERE ready AND session_id IS NULL;
CREATE INDEX activity_session ON @schema@.activity (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX activity_later ON @schema@.activity (next_at_ms) WHERE NOT ready;
CREATE INDEX activity_name ON @schema@.activity (instance_id, execution_id, activity_id);

CREATE TABLE @schema@.session (
    session_id text COLLATE "C" PRIMARY KEY,
    owner text NOT NULL,
    until_ms bigint NOT NULL,
    last_activity_ms bigint NOT NULL
) WITH (fillfactor = 60);
CREATE INDEX session_until ON @schema@.session (until_ms);

CREATE TABLE @schema@.record (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    due_at_ms bigint,
    expires_at_ms bigint,
    body bytea NOT NULL,
    PRIMARY KEY (kind, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX record_due ON @schema@.record (kind, due_at_ms, id) WHERE due_at_ms IS NOT NULL;
CREATE INDEX record_expiry ON @schema@.record (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- The last exchange of each connection that writes, with its answers: a writer that lost its connection asks again under
-- the same number and learns what came of it instead of doing it twice. Also what each writer added to the counts over
-- the whole store; their sum is the truth, and writer 0 keeps the part of writers that are gone.
CREATE TABLE @schema@.writer (
    writer_id bigint PRIMARY KEY,
    exchange_no bigint NOT NULL DEFAULT 0,
    at_ms bigint NOT NULL,
    outcomes smallint[] NOT NULL DEFAULT '{}',
    versions bigint[] NOT NULL DEFAULT '{}',
    turn_tokens bigint[] NOT NULL DEFAULT '{}',
    activity_tokens bigint[] NOT NULL DEFAULT '{}',
    executions bigint NOT NULL DEFAULT 0,
    events bigint NOT NULL DEFAULT 0,
    -- Instances by state, in the order of the codes.
    instances bigint[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}'
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
INSERT INTO @schema@.writer (writer_id, at_ms) VALUES (0, 0);

-- Ballast. Queues are empty most of the time, and whenever statistics are taken of an empty table, the planner reads it
-- as a whole from then on, also when there are 100,000 rows in it. Rows that nobody ever fetches keep it from
-- believing that. Their numbers are negative and their time never comes.
INSERT INTO @schema@.turn (instance_id, pin_key, ready, head, next_at_ms)
SELECT E'\x01ballast ' || n, '', false, -n, 9223372036854775807 FROM generate_series(1, 1000) AS n;
INSERT INTO @schema@.message (id, instance_id, late, visible_at_ms, timer_execution_id, timer_id, body)
SELECT -n, E'\x01ballast message ' || n, n % 2 = 0, 9223372036854775807, -n, -n, '' FROM generate_series(1, 2000) AS n;
INSERT INTO @schema@.activity (id, instance_id, execution_id, activity_id, lane, ready, next_at_ms, body)
SELECT -n, E'\x01ballast ' || n, -n, -n, '', false, 9223372036854775807, '' FROM generate_series(1, 1000) AS n;
INSERT INTO @schema@.record (kind, id, version, body)
SELECT E'\x01ballast', n::text, 0, '' FROM generate_series(1, 1000) AS n;
ANALYZE @schema@.turn;
ANALYZE @schema@.message;
ANALYZE @schema@.activity;
ANALYZE @schema@.record;
