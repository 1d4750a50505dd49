-- Deleting and pruning, each in one call, and the views for people with psql.

-- Removes instances with everything that belongs to them. The caller has checked what may go.
CREATE FUNCTION @schema@.remove_instances(
    p_ids text[], OUT o_instances bigint, OUT o_executions bigint, OUT o_events bigint, OUT o_messages bigint
) LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
    states bigint[];
BEGIN
    SELECT ARRAY(SELECT count(i.instance_id) FROM generate_series(0, 6) AS c(code)
                   LEFT JOIN (SELECT i.instance_id, i.status FROM unnest(p_ids) AS k(id)
                                JOIN @schema@.instance i ON i.instance_id = k.id) i ON i.status = c.code
                  GROUP BY c.code ORDER BY c.code) INTO states;
    DELETE FROM @schema@.turn t USING unnest(p_ids) AS k(id) WHERE t.instance_id = k.id;
    DELETE FROM @schema@.message m USING unnest(p_ids) AS k(id) WHERE m.instance_id = k.id AND NOT m.late;
    GET DIAGNOSTICS o_messages = ROW_COUNT;
    DELETE FROM @schema@.message m USING unnest(p_ids) AS k(id) WHERE m.instance_id = k.id AND m.late;
    GET DIAGNOSTICS n = ROW_COUNT;
    o_messages := o_messages + n;
    DELETE FROM @schema@.activity a USING unnest(p_ids) AS k(id) WHERE a.instance_id = k.id;
    GET DIAGNOSTICS n = ROW_COUNT;
    o_messages := o_messages + n;
    WITH removed AS (
        DELETE FROM @schema@.event_batch b USING unnest(p_ids) AS k(id) WHERE b.instance_id = k.id RETURNING cardinality(b.ids)
    ) SELECT coalesce(sum(r.cardinality), 0) INTO o_events FROM removed r;
    DELETE FROM @schema@.past_execution e USING unnest(p_ids) AS k(id) WHERE e.instance_id = k.id;
    GET DIAGNOSTICS o_executions = ROW_COUNT;
    DELETE FROM @schema@.label l USING unnest(p_ids) AS k(id) WHERE l.instance_id = k.id;
    DELETE FROM @schema@.instance i USING unnest(p_ids) AS k(id) WHERE i.instance_id = k.id;
    GET DIAGNOSTICS o_instances = ROW_COUNT;
    o_executions := o_executions + o_instances;
    UPDATE @schema@.writer w
       SET executions = w.executions - o_executions, events = w.events - o_events,
           instances = ARRAY[w.instances[1] - states[1], w.instances[2] - states[2], w.instances[3] - states[3],
               w.instances[4] - states[4], w.instances[5] - states[5], w.instances[6] - states[6],
               w.instances[7] - states[7]]
     WHERE w.writer_id = 0;
END $$;

-- Takes what every commit for these instances must take first, so that none is under way.
CREATE FUNCTION @schema@.lock_instances(p_ids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM unnest(p_ids) AS k(id) JOIN @schema@.turn t ON t.instance_id = k.id ORDER BY t.instance_id FOR UPDATE OF t;
    PERFORM 1 FROM unnest(p_ids) AS k(id) JOIN @schema@.activity a ON a.instance_id = k.id ORDER BY a.id FOR UPDATE OF a;
    PERFORM 1 FROM unnest(p_ids) AS k(id) JOIN @schema@.instance i ON i.instance_id = k.id
      ORDER BY i.instance_id FOR UPDATE OF i;
END $$;

-- Outcomes: 0 done, 1 `o_text` has not ended, 2 `o_text` has a child outside the list.
CREATE FUNCTION @schema@.delete_instances(
    p_ids text[], p_force boolean, OUT o_outcome smallint, OUT o_text text,
    OUT o_instances bigint, OUT o_executions bigint, OUT o_events bigint, OUT o_messages bigint
) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
BEGIN
    o_outcome := 0;
    PERFORM @schema@.lock_instances(p_ids);
    IF NOT p_force THEN
        SELECT i.instance_id INTO o_text FROM unnest(p_ids) AS k(id) JOIN @schema@.instance i ON i.instance_id = k.id
         WHERE i.status NOT IN (3, 4, 5) LIMIT 1;
        IF FOUND THEN o_outcome := 1; RETURN; END IF;
    END IF;
    SELECT i.parent_id INTO o_text FROM unnest(p_ids) AS k(id) JOIN @schema@.instance i ON i.parent_id = k.id
      JOIN @schema@.instance p ON p.instance_id = k.id
     WHERE i.instance_id <> ALL (p_ids) LIMIT 1;
    IF FOUND THEN o_outcome := 2; RETURN; END IF;
    SELECT r.* INTO o_instances, o_executions, o_events, o_messages FROM @schema@.remove_instances(p_ids) r;
END $$;

-- Instances that a bulk call considers: ended ones by completion, then, without a completion time, the others by age.
CREATE FUNCTION @schema@.matching_instances(p_ids text[], p_before_ms bigint)
RETURNS TABLE (instance_id text, parent_id text, status smallint) LANGUAGE sql STABLE AS $$
    (SELECT i.instance_id, i.parent_id, i.status FROM @schema@.instance i
      WHERE i.status IN (3, 4, 5) AND (p_before_ms IS NULL OR i.completed_at_ms < p_before_ms)
        AND (p_ids IS NULL OR i.instance_id = ANY (p_ids))
      ORDER BY i.completed_at_ms, i.instance_id)
    UNION ALL
    (SELECT i.instance_id, i.parent_id, i.status FROM @schema@.instance i
      WHERE p_before_ms IS NULL AND i.status NOT IN (3, 4, 5) AND (p_ids IS NULL OR i.instance_id = ANY (p_ids))
      ORDER BY i.created_at_ms, i.instance_id)
$$;

-- Removes ended roots that match, each with its descendants, unless one of those has not ended.
CREATE FUNCTION @schema@.delete_bulk(
    p_ids text[], p_before_ms bigint, p_limit bigint,
    OUT o_instances bigint, OUT o_executions bigint, OUT o_events bigint, OUT o_messages bigint
) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    root record;
    tree text[];
    ended boolean;
    doomed text[] := '{}';
    trees bigint := 0;
BEGIN
    FOR root IN SELECT m.instance_id FROM @schema@.matching_instances(p_ids, p_before_ms) m
                 WHERE m.parent_id IS NULL AND m.status IN (3, 4, 5) LOOP
        EXIT WHEN trees >= p_limit;
        WITH RECURSIVE family AS (
            SELECT root.instance_id COLLATE "C" AS id, true AS ended
            UNION ALL
            SELECT i.instance_id, i.status IN (3, 4, 5) FROM family JOIN @schema@.instance i ON i.parent_id = family.id
        ) SELECT array_agg(f.id), bool_and(f.ended) INTO tree, ended FROM family f;
        IF ended THEN
            doomed := doomed || tree;
            trees := trees + 1;
        END IF;
    END LOOP;
    SELECT coalesce(array_agg(d.id ORDER BY d.id), '{}') INTO doomed FROM unnest(doomed) AS d(id);
    PERFORM @schema@.lock_instances(doomed);
    SELECT r.* INTO o_instances, o_executions, o_events, o_messages FROM @schema@.remove_instances(doomed) r;
END $$;

-- Removes old executions of these instances: never the current one, never one that runs.
CREATE FUNCTION @schema@.prune(
    p_ids text[], p_keep bigint, p_before_ms bigint, OUT o_instances bigint, OUT o_executions bigint, OUT o_events bigint
) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    old_instances text[];
    old_executions bigint[];
BEGIN
    PERFORM @schema@.lock_instances(p_ids);
    SELECT count(*) INTO o_instances FROM unnest(p_ids) AS k(id) JOIN @schema@.instance i ON i.instance_id = k.id;
    -- The current one is the first that is kept.
    SELECT coalesce(array_agg(d.instance_id), '{}'), coalesce(array_agg(d.execution_id), '{}') INTO old_instances, old_executions FROM (
        SELECT e.instance_id, e.execution_id, e.status, e.completed_at_ms,
               row_number() OVER (PARTITION BY e.instance_id ORDER BY e.execution_id DESC) AS place
          FROM unnest(p_ids) AS k(id) JOIN @schema@.past_execution e ON e.instance_id = k.id) d
     WHERE d.place >= p_keep AND d.status >= 3 AND (p_before_ms IS NULL OR d.completed_at_ms < p_before_ms);
    WITH removed AS (
        DELETE FROM @schema@.event_batch b USING unnest(old_instances, old_executions) AS k(id, execution_id)
         WHERE b.instance_id = k.id AND b.execution_id = k.execution_id RETURNING cardinality(b.ids)
    ) SELECT coalesce(sum(r.cardinality), 0) INTO o_events FROM removed r;
    DELETE FROM @schema@.past_execution e USING unnest(old_instances, old_executions) AS k(id, execution_id)
     WHERE e.instance_id = k.id AND e.execution_id = k.execution_id;
    GET DIAGNOSTICS o_executions = ROW_COUNT;
    UPDATE @schema@.writer w SET executions = w.executions - o_executions, events = w.events - o_events
     WHERE w.writer_id = 0;
END $$;

-- Removes writers that have been silent for long and some of the records whose life has ended.
CREATE FUNCTION @schema@.sweep(p_silent_ms bigint) RETURNS bigint LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    now_at bigint := @schema@.now_ms();
    gone bigint;
BEGIN
    WITH dead AS (
        DELETE FROM @schema@.writer w WHERE w.writer_id <> 0 AND w.at_ms < now_at - p_silent_ms RETURNING w.*
    ), total AS (
        SELECT sum(d.executions) AS executions, sum(d.events) AS events,
               ARRAY(SELECT sum(n.count) FROM (SELECT u.count, u.code FROM dead, unnest(dead.instances) WITH ORDINALITY
                       AS u(count, code)) n GROUP BY n.code ORDER BY n.code) AS instances FROM dead d
    )
    UPDATE @schema@.writer w
       SET executions = w.executions + total.executions, events = w.events + total.events,
           instances = ARRAY(SELECT one.count + other.count FROM unnest(w.instances) WITH ORDINALITY AS one(count, code)
                               JOIN unnest(total.instances) WITH ORDINALITY AS other(count, code) ON one.code = other.code
                              ORDER BY one.code)
      FROM total WHERE w.writer_id = 0 AND total.executions IS NOT NULL;
    DELETE FROM @schema@.record r USING (
        SELECT d.kind, d.id FROM @schema@.record d WHERE d.expires_at_ms <= now_at
         ORDER BY d.expires_at_ms LIMIT 1000 FOR UPDATE SKIP LOCKED) s
     WHERE r.kind = s.kind AND r.id = s.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

-- Views with stable names, to look and never to write.
CREATE FUNCTION @schema@.status_name(p_status smallint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (ARRAY['Pending', 'Running', 'Paused', 'Completed', 'Failed', 'Cancelled', 'ContinuedAsNew'])[p_status + 1]
$$;
CREATE FUNCTION @schema@.as_time(p_ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_ms >= 9000000000000000 THEN 'infinity'::timestamptz ELSE to_timestamp(p_ms / 1000.0) END
$$;
CREATE VIEW @schema@.instances AS
    SELECT i.instance_id, i.name, i.version, @schema@.status_name(i.status) AS status,
           i.execution_id AS current_execution_id, i.parent_id, i.pinned_version, @schema@.as_time(i.created_at_ms) AS created_at, @schema@.as_time(i.updated_at_ms) AS updated_at,
           @schema@.as_time(i.completed_at_ms) AS completed_at, jsonb_object(i.labels) AS labels, i.revision,
           t.instance_id IS NOT NULL AS has_messages, t.lock_token IS NOT NULL AS is_locked
      FROM @schema@.instance i
      LEFT JOIN @schema@.turn t ON t.instance_id = i.instance_id;
CREATE VIEW @schema@.executions AS
    SELECT e.instance_id, e.execution_id, @schema@.status_name(e.status) AS status, e.pinned_version,
           @schema@.as_time(e.started_at_ms) AS started_at, @schema@.as_time(e.completed_at_ms) AS completed_at,
           (SELECT coalesce(sum(cardinality(b.ids)), 0) FROM @schema@.event_batch b WHERE b.instance_id = e.instance_id
               AND b.execution_id = e.execution_id) AS event_count, e.output
      FROM @schema@.execution e;
CREATE VIEW @schema@.history AS
    SELECT h.instance_id, h.execution_id, h.event_id, h.data FROM @schema@.event h;
CREATE VIEW @schema@.records AS
    SELECT r.kind, r.id, r.version, @schema@.as_time(r.due_at_ms) AS due_at, @schema@.as_time(r.expires_at_ms) AS expires_at,
           r.body
      FROM @schema@.record r WHERE r.version > 0 AND (r.expires_at_ms IS NULL OR r.expires_at_ms > @schema@.now_ms());
CREATE VIEW @schema@.queue_depths AS
    WITH moment AS MATERIALIZED (SELECT @schema@.now_ms() AS at), orchestrator AS (
        SELECT CASE WHEN t.lock_token IS NOT NULL AND t.next_at_ms > moment.at
                         AND m.id = ANY (coalesce(t.fetched, '{}') || coalesce(t.fetched_late, '{}')) THEN 'locked'
                    WHEN (m.late AND m.visible_at_ms > moment.at) OR t.not_before_ms > moment.at THEN 'delayed'
                    ELSE 'visible' END AS place
          FROM moment, @schema@.message m JOIN @schema@.turn t ON t.instance_id = m.instance_id
    ), worker AS (
        SELECT CASE WHEN a.ready OR a.next_at_ms <= moment.at THEN 'visible' WHEN a.lock_token IS NOT NULL THEN 'locked'
                    ELSE 'delayed' END AS place
          FROM moment, @schema@.activity a WHERE a.id > 0
    )
    SELECT (SELECT count(*) FROM orchestrator WHERE place = 'visible') AS orchestrator_queue,
           (SELECT count(*) FROM worker WHERE place = 'visible') AS worker_queue,
           (SELECT count(*) FROM orchestrator WHERE place = 'delayed')
               + (SELECT count(*) FROM worker WHERE place = 'delayed') AS delayed,
           (SELECT count(*) FROM orchestrator WHERE place = 'locked')
               + (SELECT count(*) FROM worker WHERE place = 'locked') AS locked;

CREATE FUNCTION @schema@.refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the view % is for reading only', TG_TABLE_NAME
        USING HINT = 'Change instances and records through Segno: it keeps tables, queues and counts in step.';
END $$;
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON @schema@.instances
    FOR EACH ROW EXECUTE FUNCTION @schema@.refuse_write();
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON @schema@.executions
    FOR EACH ROW EXECUTE FUNCTION @schema@.refuse_write();
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON @schema@.history
    FOR EACH ROW EXECUTE FUNCTION @schema@.refuse_write();
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON @schema@.records
    FOR EACH ROW EXECUTE FUNCTION @schema@.refuse_write();
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON @schema@.queue_depths
    FOR EACH ROW EXECUTE FUNCTION @schema@.refuse_write();
