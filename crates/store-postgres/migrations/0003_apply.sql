-- The parts of a commit: what is checked, what is stored, and how the queues are brought in line.

-- Items with events whose numbers are not above all that their executions have: histories grow at their end only.
CREATE FUNCTION @schema@.late_events(
    p_outcome smallint[], p_instance text[], p_execution bigint[], p_turns @schema@.turn_list, p_at_execution bigint[],
    p_at_event bigint[]
) RETURNS integer[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT x.item
          FROM unnest(p_turns.item, p_turns.first_event, p_turns.sorted, p_at_execution, p_at_event)
               AS x(item, first_event, sorted, at_execution, at_event)
         WHERE x.first_event IS NOT NULL AND p_outcome[x.item] = 0
           AND (NOT x.sorted OR x.first_event <= CASE
                    WHEN x.at_execution IS NULL OR p_execution[x.item] > x.at_execution THEN 0
                    WHEN p_execution[x.item] = x.at_execution THEN coalesce(x.at_event, 0)
                    ELSE (SELECT coalesce(max(b.last_id), 0) FROM @schema@.event_batch b
                           WHERE b.instance_id = p_instance[x.item] AND b.execution_id = p_execution[x.item])
                END));
END $$;

-- Removes the messages that these instances hold under their locks.
CREATE FUNCTION @schema@.remove_fetched(p_instances text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.message m USING (
        SELECT t.instance_id, unnest(t.fetched) AS id FROM unnest(p_instances) AS k(instance_id)
          JOIN @schema@.turn t ON t.instance_id = k.instance_id) d
     WHERE NOT m.late AND m.instance_id = d.instance_id AND m.id = d.id;
    DELETE FROM @schema@.message m USING (
        SELECT t.instance_id, unnest(t.fetched_late) AS id FROM unnest(p_instances) AS k(instance_id)
          JOIN @schema@.turn t ON t.instance_id = k.instance_id WHERE t.fetched_late <> '{}') d
     WHERE m.late AND m.instance_id = d.instance_id AND m.id = d.id;
END $$;

-- Stores what turns say about their instances and executions. Answers how many executions are new, and by how much
-- the number of instances in each state has changed.
CREATE FUNCTION @schema@.store_turns(
    p_now bigint, p_outcome smallint[], p_instance text[], p_execution bigint[], p_turns @schema@.turn_list,
    p_at_execution bigint[], p_at_status smallint[], OUT o_executions bigint, OUT o_instances bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    has_past boolean;
BEGIN
    SELECT count(*) FILTER (WHERE x.stores AND x.execution > coalesce(x.at_execution, 0)),
           bool_or(x.stores AND x.execution <> x.at_execution),
           ARRAY[count(*) FILTER (WHERE x.after = 0) - count(*) FILTER (WHERE x.before = 0),
                 count(*) FILTER (WHERE x.after = 1) - count(*) FILTER (WHERE x.before = 1),
                 count(*) FILTER (WHERE x.after = 2) - count(*) FILTER (WHERE x.before = 2),
                 count(*) FILTER (WHERE x.after = 3) - count(*) FILTER (WHERE x.before = 3),
                 count(*) FILTER (WHERE x.after = 4) - count(*) FILTER (WHERE x.before = 4),
                 count(*) FILTER (WHERE x.after = 5) - count(*) FILTER (WHERE x.before = 5),
                 count(*) FILTER (WHERE x.after = 6) - count(*) FILTER (WHERE x.before = 6)]
      INTO o_executions, has_past, o_instances
      FROM (SELECT n.stores, n.at_execution, n.before, p_execution[n.item] AS execution,
                   CASE WHEN n.stores AND p_execution[n.item] > coalesce(n.at_execution, 0) THEN coalesce(n.status, 1)
                        WHEN n.stores AND p_execution[n.item] = n.at_execution THEN coalesce(n.status, n.before)
                        ELSE n.before END AS after
              FROM unnest(p_turns.item, p_turns.stores, p_turns.status, p_at_execution, p_at_status)
                   AS n(item, stores, status, at_execution, before) WHERE p_outcome[n.item] = 0) x;
    IF has_past THEN
        o_executions := o_executions
            + @schema@.store_past_executions(p_now, p_outcome, p_instance, p_execution, p_turns, p_at_execution);
    END IF;

    UPDATE @schema@.instance i
       SET revision = i.revision + 1, updated_at_ms = p_now,
           name = coalesce(x.name, i.name), version = coalesce(x.version, i.version),
           parent_id = coalesce(x.parent, i.parent_id),
           custom_status_version = i.custom_status_version + CASE WHEN x.custom > 0 THEN 1 ELSE 0 END,
           custom_status = CASE WHEN x.custom > 0 THEN x.custom_status ELSE i.custom_status END,
           execution_id = CASE WHEN x.is_next THEN x.execution ELSE i.execution_id END,
           status = CASE WHEN x.is_next THEN coalesce(x.status, 1) WHEN x.is_current THEN coalesce(x.status, i.status)
                    ELSE i.status END,
           started_at_ms = CASE WHEN x.is_next THEN p_now ELSE i.started_at_ms END,
           completed_at_ms = CASE WHEN (x.is_next OR x.is_current) AND x.status >= 3 THEN p_now
                                  WHEN x.is_next OR (x.is_current AND x.status IS NOT NULL) THEN NULL
                                  ELSE i.completed_at_ms END,
           last_event_id = CASE WHEN x.is_next THEN coalesce(x.last_event, 0)
                                WHEN x.is_current THEN greatest(i.last_event_id, x.last_event) ELSE i.last_event_id END,
           incarnation = CASE WHEN x.is_next THEN x.incarnation WHEN x.is_current THEN coalesce(x.incarnation, i.incarnation)
                         ELSE i.incarnation END,
           pinned_version = CASE WHEN x.is_next THEN x.pin WHEN x.is_current THEN coalesce(x.pin, i.pinned_version)
                            ELSE i.pinned_version END,
           pin_key = CASE WHEN x.is_next THEN coalesce(x.pin_key, '') WHEN x.is_current THEN coalesce(x.pin_key, i.pin_key)
                     ELSE i.pin_key END,
           output = CASE WHEN x.is_next THEN x.output WHEN x.is_current THEN coalesce(x.output, i.output) ELSE i.output END
      FROM (SELECT n.*, p_execution[n.item] AS execution, n.stores AND p_execution[n.item] > n.at_execution AS is_next,
                   n.stores AND p_execution[n.item] = n.at_execution AS is_current
              FROM unnest(p_turns.item, p_turns.stores, p_at_execution, p_turns.status, p_turns.last_event, p_turns.output,
                          p_turns.name, p_turns.version, p_turns.parent, p_turns.pin, p_turns.pin_key, p_turns.incarnation,
                          p_turns.custom, p_turns.custom_status)
                   AS n(item, stores, at_execution, status, last_event, output, name, version, parent, pin, pin_key,
                        incarnation, custom, custom_status)
             WHERE p_outcome[n.item] = 0 AND n.at_execution IS NOT NULL) x
     WHERE i.instance_id = p_instance[x.item];
    INSERT INTO @schema@.instance (instance_id, created_at_ms, updated_at_ms, revision, name, version, parent_id,
                                   custom_status_version, custom_status, execution_id, status, started_at_ms,
                                   completed_at_ms, last_event_id, incarnation, pinned_version, pin_key, output)
    SELECT p_instance[x.item], p_now, p_now, 1, x.name, x.version, x.parent, CASE WHEN x.custom > 0 THEN 1 ELSE 0 END,
           x.custom_status, p_execution[x.item], coalesce(x.status, 1), p_now, CASE WHEN x.status >= 3 THEN p_now END,
           coalesce(x.last_event, 0), x.incarnation, x.pin, coalesce(x.pin_key, ''), x.output
      FROM unnest(p_turns.item, p_turns.stores, p_at_execution, p_turns.status, p_turns.last_event, p_turns.output,
                  p_turns.name, p_turns.version, p_turns.parent, p_turns.pin, p_turns.pin_key, p_turns.incarnation,
                  p_turns.custom, p_turns.custom_status)
           AS x(item, stores, at_execution, status, last_event, output, name, version, parent, pin, pin_key,
                incarnation, custom, custom_status)
     WHERE p_outcome[x.item] = 0 AND x.stores AND x.at_execution IS NULL;
END $$;

-- The same for executions that are not the current one: the one that ends because the next one begins, and those that
-- ended before. Answers how many are new.
CREATE FUNCTION @schema@.store_past_executions(
    p_now bigint, p_outcome smallint[], p_instance text[], p_execution bigint[], p_turns @schema@.turn_list,
    p_at_execution bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    added bigint;
BEGIN
    INSERT INTO @schema@.past_execution
    SELECT i.instance_id, i.execution_id, i.status, i.started_at_ms, i.completed_at_ms, i.incarnation, i.pinned_version,
           i.output
      FROM unnest(p_turns.item, p_turns.stores, p_at_execution) AS x(item, stores, at_execution)
      JOIN @schema@.instance i ON i.instance_id = p_instance[x.item]
     WHERE p_outcome[x.item] = 0 AND x.stores AND p_execution[x.item] > x.at_execution;
    UPDATE @schema@.past_execution e
       SET status = coalesce(x.status, e.status),
           completed_at_ms = CASE WHEN x.status IS NULL THEN e.completed_at_ms WHEN x.status >= 3 THEN p_now END,
           incarnation = coalesce(x.incarnation, e.incarnation), pinned_version = coalesce(x.pin, e.pinned_version),
           output = coalesce(x.output, e.output)
      FROM unnest(p_turns.item, p_turns.stores, p_at_execution, p_turns.status, p_turns.incarnation, p_turns.pin,
                  p_turns.output) AS x(item, stores, at_execution, status, incarnation, pin, output)
     WHERE p_outcome[x.item] = 0 AND x.stores AND p_execution[x.item] < x.at_execution
       AND e.instance_id = p_instance[x.item] AND e.execution_id = p_execution[x.item];
    INSERT INTO @schema@.past_execution
    SELECT p_instance[x.item], p_execution[x.item], coalesce(x.status, 1), p_now,
           CASE WHEN x.status >= 3 THEN p_now END, x.incarnation, x.pin, x.output
      FROM unnest(p_turns.item, p_turns.stores, p_at_execution, p_turns.status, p_turns.incarnation, p_turns.pin,
                  p_turns.output) AS x(item, stores, at_execution, status, incarnation, pin, output)
     WHERE p_outcome[x.item] = 0 AND x.stores AND p_execution[x.item] < x.at_execution
       AND NOT EXISTS (SELECT 1 FROM @schema@.past_execution e
                        WHERE e.instance_id = p_instance[x.item] AND e.execution_id = p_execution[x.item]);
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END $$;

CREATE FUNCTION @schema@.store_labels(
    p_outcome smallint[], p_instance text[], p_turns @schema@.turn_list, p_labels @schema@.label_list
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.label l USING unnest(p_turns.item, p_turns.labelled) AS x(item, labelled)
     WHERE x.labelled AND p_outcome[x.item] = 0 AND l.instance_id = p_instance[x.item];
    UPDATE @schema@.instance i
       SET labels = ARRAY(SELECT unnest(ARRAY[y.key, y.value])
                            FROM unnest(p_labels.item, p_labels.key, p_labels.value) AS y(item, key, value)
                           WHERE y.item = x.item)
      FROM unnest(p_turns.item, p_turns.labelled) AS x(item, labelled)
     WHERE x.labelled AND p_outcome[x.item] = 0 AND i.instance_id = p_instance[x.item];
    INSERT INTO @schema@.label (key, value, created_at_ms, instance_id)
    SELECT y.key, y.value, i.created_at_ms, i.instance_id
      FROM unnest(p_labels.item, p_labels.key, p_labels.value) AS y(item, key, value)
      JOIN @schema@.instance i ON i.instance_id = p_instance[y.item] WHERE p_outcome[y.item] = 0;
END $$;

-- Adds activities. The first ones that the waiting process takes are locked for it at once; answers which ones.
CREATE FUNCTION @schema@.add_activities(
    p_now bigint, p_outcome smallint[], p_activities @schema@.activity_list, p_capacity bigint, p_wish @schema@.wish,
    OUT o_activity bigint[], OUT o_token bigint[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH made AS (
        INSERT INTO @schema@.activity (id, instance_id, execution_id, activity_id, lane, session_id, ready, next_at_ms,
                                       lock_token, attempts, visible_at_ms, body)
        SELECT nextval('@schema@.activity_id'), a.instance_id, a.execution_id, a.id, a.lane, a.session_id,
               a.is_visible AND a.token IS NULL,
               CASE WHEN a.token IS NULL THEN coalesce(a.visible, p_now) ELSE p_now + p_wish.activity_ms END, a.token,
               CASE WHEN a.token IS NULL THEN 0 ELSE 1 END, a.visible, a.body
          FROM (SELECT n.*, coalesce(n.visible, p_now) <= p_now AS is_visible,
                       CASE WHEN n.place <= p_capacity AND n.session_id IS NULL AND coalesce(n.visible, p_now) <= p_now
                                 AND (p_wish.lanes IS NULL OR n.lane = ANY (p_wish.lanes))
                            THEN nextval('@schema@.lock_token') END AS token
                  FROM unnest(p_activities.item, p_activities.instance, p_activities.execution, p_activities.id,
                              p_activities.lane, p_activities.session, p_activities.visible, p_activities.body)
                       WITH ORDINALITY
                       AS n(item, instance_id, execution_id, id, lane, session_id, visible, body, place)
                 WHERE p_outcome[n.item] = 0) a
        RETURNING id, lock_token
    )
    SELECT coalesce(array_agg(m.id), '{}'), coalesce(array_agg(m.lock_token), '{}') INTO o_activity, o_token
      FROM made m WHERE m.lock_token IS NOT NULL;
END $$;

-- Places of messages that are refused by their guard: by what is there now, and by guarded starts before them in this
-- call. `p_consumed` are instances whose fetched messages are gone.
CREATE FUNCTION @schema@.refused_messages(p_outcome smallint[], p_consumed text[], p_messages @schema@.message_list)
RETURNS integer[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT g.place FROM (
            SELECT f.place, f.guard,
                   -- A row of this transaction was made for these very messages.
                   i.name IS NOT NULL OR (t.start_id IS NOT NULL AND t.xmin <> pg_current_xact_id()::xid
                       AND NOT (t.start_id = ANY (coalesce(t.fetched, '{}') || coalesce(t.fetched_late, '{}'))
                                AND f.instance_id = ANY (p_consumed))) AS present,
                   min(f.place) FILTER (WHERE f.guard = 1) OVER (PARTITION BY f.instance_id) AS first_start
              FROM unnest(p_messages.item, p_messages.instance, p_messages.guard) WITH ORDINALITY
                   AS f(item, instance_id, guard, place)
              LEFT JOIN @schema@.instance i ON i.instance_id = f.instance_id
              LEFT JOIN @schema@.turn t ON t.instance_id = f.instance_id
             WHERE f.guard <> 0 AND p_outcome[f.item] = 0) g
         WHERE CASE g.guard WHEN 1 THEN g.present OR g.place <> g.first_start
               ELSE NOT (g.present OR coalesce(g.first_start < g.place, false)) END);
END $$;

-- Records that are not as expected. A key occurs once in a call.
CREATE FUNCTION @schema@.unexpected_records(p_now bigint, p_records @schema@.record_list) RETURNS integer[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM unnest(p_records.kind, p_records.id) AS x(kind, id)
      JOIN @schema@.record r ON r.kind = x.kind AND r.id = x.id ORDER BY r.kind, r.id FOR UPDATE OF r;
    RETURN ARRAY(
        SELECT DISTINCT x.item
          FROM unnest(p_records.item, p_records.kind, p_records.id, p_records.expect, p_records.version)
               AS x(item, kind, id, expect, version)
          LEFT JOIN @schema@.record r ON r.kind = x.kind AND r.id = x.id
           AND (r.expires_at_ms IS NULL OR r.expires_at_ms > p_now)
         WHERE CASE x.expect WHEN 0 THEN false WHEN 1 THEN r.version IS NOT NULL
               ELSE r.version IS DISTINCT FROM x.version END);
END $$;

CREATE FUNCTION @schema@.store_records(
    p_now bigint, p_outcome smallint[], p_records @schema@.record_list
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    versions bigint[];
BEGIN
    SELECT array_agg(CASE WHEN x.gone OR p_outcome[x.item] <> 0 THEN 0 ELSE nextval('@schema@.record_version') END)
      INTO versions FROM unnest(p_records.item, p_records.gone) AS x(item, gone);
    -- An expired record that must be absent is here still; it is locked since it was checked.
    DELETE FROM @schema@.record r
     USING unnest(p_records.item, p_records.kind, p_records.id, p_records.expect, p_records.gone)
           AS x(item, kind, id, expect, gone)
     WHERE (x.gone OR x.expect = 1) AND p_outcome[x.item] = 0 AND r.kind = x.kind AND r.id = x.id;
    INSERT INTO @schema@.record (kind, id, version, due_at_ms, expires_at_ms, body)
    SELECT x.kind, x.id, x.new_version, x.due, p_now + x.life, x.body
      FROM unnest(p_records.item, p_records.kind, p_records.id, p_records.expect, p_records.gone, versions, p_records.due,
                  p_records.life, p_records.body)
           AS x(item, kind, id, expect, gone, new_version, due, life, body)
     WHERE x.expect = 1 AND NOT x.gone AND p_outcome[x.item] = 0 ORDER BY x.kind, x.id
    ON CONFLICT (kind, id) DO NOTHING;
    INSERT INTO @schema@.record (kind, id, version, due_at_ms, expires_at_ms, body)
    SELECT x.kind, x.id, x.new_version, x.due, p_now + x.life, x.body
      FROM unnest(p_records.item, p_records.kind, p_records.id, p_records.expect, p_records.gone, versions, p_records.due,
                  p_records.life, p_records.body)
           AS x(item, kind, id, expect, gone, new_version, due, life, body)
     WHERE x.expect <> 1 AND NOT x.gone AND p_outcome[x.item] = 0 ORDER BY x.kind, x.id
    ON CONFLICT (kind, id) DO UPDATE
       SET version = excluded.version, due_at_ms = excluded.due_at_ms, expires_at_ms = excluded.expires_at_ms,
           body = excluded.body;
    -- Another commit made the record that was absent when it was checked: the caller tries the whole call again.
    IF p_records.expect && '{1}'::smallint[] AND EXISTS (
        SELECT 1 FROM unnest(p_records.item, p_records.kind, p_records.id, p_records.expect, p_records.gone, versions)
               AS x(item, kind, id, expect, gone, new_version)
          JOIN @schema@.record r ON r.kind = x.kind AND r.id = x.id
         WHERE x.expect = 1 AND NOT x.gone AND p_outcome[x.item] = 0 AND r.version <> x.new_version) THEN
        RAISE EXCEPTION 'a record was written by another commit meanwhile' USING ERRCODE = '40001';
    END IF;
    RETURN versions;
END $$;

-- Ends, gives back and renews activities, and notes that their sessions are in use.
CREATE FUNCTION @schema@.settle_activities(
    p_now bigint, p_items @schema@.item_list, p_outcome smallint[], p_activity bigint[], p_sessions text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.activity a USING unnest(p_items.kind, p_activity, p_outcome) AS o(kind, id, outcome)
     WHERE o.kind = 2 AND o.outcome = 0 AND a.id = o.id;
    IF p_items.kind && '{7,9}'::smallint[] THEN
        UPDATE @schema@.activity a
           SET lock_token = CASE WHEN o.kind = 9 THEN a.lock_token END, ready = o.kind = 7 AND o.ms <= 0,
               next_at_ms = p_now + o.ms,
               attempts = CASE WHEN o.kind = 7 AND o.flag THEN greatest(a.attempts - 1, 0) ELSE a.attempts END
          FROM unnest(p_items.kind, p_activity, p_outcome, p_items.ms, p_items.flag) AS o(kind, id, outcome, ms, flag)
         WHERE o.kind IN (7, 9) AND o.outcome = 0 AND a.id = o.id;
    END IF;
    IF p_sessions <> '{}' THEN
        UPDATE @schema@.session s SET last_activity_ms = p_now FROM unnest(p_sessions) AS k(id)
         WHERE s.session_id = k.id AND s.last_activity_ms < p_now;
    END IF;
END $$;

-- Removes the rows of released instances for which nothing else waits, with the messages that they held; answers which
-- ones.
CREATE FUNCTION @schema@.close_turns(p_released text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    gone text[];
BEGIN
    WITH closed AS (
        DELETE FROM @schema@.turn t USING unnest(p_released) AS k(instance_id)
         WHERE t.instance_id = k.instance_id AND coalesce(t.fetched_late, '{}') = '{}'
           AND NOT EXISTS (SELECT 1 FROM @schema@.message m WHERE m.instance_id = k.instance_id AND NOT m.late
                              AND m.id <> ALL (coalesce(t.fetched, '{}')))
           AND NOT EXISTS (SELECT 1 FROM @schema@.message m WHERE m.instance_id = k.instance_id AND m.late)
        RETURNING t.instance_id, t.fetched
    ), removed AS (
        DELETE FROM @schema@.message m USING (SELECT c.instance_id, unnest(c.fetched) AS id FROM closed c) d
         WHERE NOT m.late AND m.instance_id = d.instance_id AND m.id = d.id
    )
    SELECT coalesce(array_agg(c.instance_id), '{}') INTO gone FROM closed c;
    RETURN gone;
END $$;

-- Unlocks rows that were made for messages of which some were refused; answers which instances have to be looked at.
CREATE FUNCTION @schema@.reopen_turns(p_outcome smallint[], p_messages @schema@.message_list, p_id bigint[])
RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    refused text[] := ARRAY(
        SELECT DISTINCT m.instance_id
          FROM unnest(p_messages.item, p_messages.instance, p_id) AS m(item, instance_id, id)
         WHERE p_outcome[m.item] <> 0 OR m.id IS NULL);
BEGIN
    UPDATE @schema@.turn t SET lock_token = NULL, fetched = NULL, start_id = NULL
      FROM unnest(refused) AS k(instance_id)
     WHERE t.instance_id = k.instance_id AND t.xmin = pg_current_xact_id()::xid;
    RETURN refused;
END $$;

-- Counts a fetch that came to nothing for the messages that it held.
CREATE FUNCTION @schema@.count_attempts(p_instances text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.message m SET attempts = m.attempts + 1 FROM (
        SELECT t.instance_id, unnest(t.fetched) AS id FROM unnest(p_instances) AS k(instance_id)
          JOIN @schema@.turn t ON t.instance_id = k.instance_id) d
     WHERE NOT m.late AND m.instance_id = d.instance_id AND m.id = d.id;
    UPDATE @schema@.message m SET attempts = m.attempts + 1 FROM (
        SELECT t.instance_id, unnest(t.fetched_late) AS id FROM unnest(p_instances) AS k(instance_id)
          JOIN @schema@.turn t ON t.instance_id = k.instance_id) d
     WHERE m.late AND m.instance_id = d.instance_id AND m.id = d.id;
END $$;

-- Brings the rows of instances in line with what happened to them and to their messages: who is locked, who can be fetched, when the others may be, and who has
-- nothing left and goes.
CREATE FUNCTION @schema@.settle_turns(
    p_now bigint, p_items @schema@.item_list, p_outcome smallint[], p_instance text[], p_unsettled text[],
    p_messages @schema@.message_list, p_message_id bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_items.kind && '{6}'::smallint[] THEN
        PERFORM @schema@.count_attempts(ARRAY(
            SELECT o.instance_id
              FROM unnest(p_items.kind, p_items.flag, p_outcome, p_instance) AS o(kind, flag, outcome, instance_id)
             WHERE o.kind = 6 AND NOT o.flag AND o.outcome = 0));
    END IF;
    -- What happens to each instance, gathered by grouping: a join of two lists costs their product.
    WITH change AS (
        SELECT x.instance_id, bool_or(x.kind = 6 OR (x.kind = 1 AND NOT x.flag)) AS released, bool_or(x.kind = 1) AS consumed,
               max(p_now + x.ms) FILTER (WHERE x.kind = 8) AS renewed_to,
               max(p_now + x.ms) FILTER (WHERE x.kind = 6) AS hidden_to, max(x.start_id) AS new_start_id
          FROM (SELECT o.instance_id, o.kind, o.flag, o.ms, NULL::bigint AS start_id
                  FROM unnest(p_items.kind, p_items.ms, p_items.flag, p_outcome, p_instance)
                       AS o(kind, ms, flag, outcome, instance_id)
                 WHERE o.kind IN (1, 6, 8) AND o.outcome = 0
                UNION ALL SELECT k.instance_id, NULL, NULL, NULL, NULL FROM unnest(p_unsettled) AS k(instance_id)
                UNION ALL SELECT n.instance_id, NULL, NULL, NULL, n.id
                  FROM unnest(p_messages.item, p_messages.instance, p_messages.guard, p_message_id)
                       AS n(item, instance_id, guard, id)
                 WHERE n.guard = 1 AND n.id IS NOT NULL AND p_outcome[n.item] = 0
                   AND n.instance_id = ANY (p_unsettled)) x
         GROUP BY x.instance_id
    ), held AS (
        SELECT t.instance_id, t.lock_token IS NOT NULL AND c.released IS NOT TRUE AS is_locked,
               coalesce(c.released, false) AS released, coalesce(c.consumed, false) AS consumed, c.renewed_to,
               coalesce(c.hidden_to, t.not_before_ms) AS not_before_ms,
               coalesce(i.pin_key, '') AS pin_key,
               coalesce(c.new_start_id, CASE WHEN c.consumed
                                             AND t.start_id = ANY (coalesce(t.fetched, '{}') || coalesce(t.fetched_late, '{}'))
                        THEN NULL ELSE t.start_id END) AS start_id
          FROM change c
          JOIN @schema@.turn t ON t.instance_id = c.instance_id
          LEFT JOIN @schema@.instance i ON i.instance_id = t.instance_id
    ), state AS MATERIALIZED (
        SELECT h.*, prompt.id AS prompt_id, late.id AS late_id, late.visible_at_ms AS late_at,
               prompt.id IS NOT NULL OR late.visible_at_ms <= p_now AS has_visible
          FROM held h
          LEFT JOIN LATERAL (SELECT m.id FROM @schema@.message m
                              WHERE NOT h.is_locked AND m.instance_id = h.instance_id AND NOT m.late
                              ORDER BY m.id LIMIT 1) prompt ON true
          LEFT JOIN LATERAL (SELECT m.id, m.visible_at_ms FROM @schema@.message m
                              WHERE NOT h.is_locked AND m.instance_id = h.instance_id AND m.late
                              ORDER BY m.visible_at_ms, m.id LIMIT 1) late ON true
    ), wanted AS MATERIALIZED (
        SELECT s.*, NOT s.is_locked AND coalesce(s.has_visible, false) AND s.not_before_ms <= p_now AS ready,
               coalesce(least(s.prompt_id, CASE WHEN s.late_at <= p_now THEN s.late_id END), 0) AS head,
               greatest(s.not_before_ms, CASE WHEN s.prompt_id IS NULL THEN s.late_at ELSE 0 END) AS next_at_ms
          FROM state s
    ), gone AS (
        DELETE FROM @schema@.turn t USING wanted w
         WHERE t.instance_id = w.instance_id AND NOT w.is_locked AND w.prompt_id IS NULL AND w.late_id IS NULL
    )
    UPDATE @schema@.turn t
       SET pin_key = w.pin_key, start_id = w.start_id, not_before_ms = w.not_before_ms,
           ready = w.ready,
           head = CASE WHEN w.is_locked THEN t.head ELSE w.head END,
           next_at_ms = CASE WHEN w.is_locked THEN coalesce(w.renewed_to, t.next_at_ms) ELSE w.next_at_ms END,
           lock_token = CASE WHEN w.is_locked THEN t.lock_token END,
           fetched = CASE WHEN w.is_locked AND NOT w.consumed THEN t.fetched END,
           fetched_late = CASE WHEN w.is_locked AND NOT w.consumed THEN t.fetched_late END
      FROM wanted w
     WHERE t.instance_id = w.instance_id AND (w.is_locked OR w.prompt_id IS NOT NULL OR w.late_id IS NOT NULL)
       AND (w.released OR w.consumed OR w.renewed_to IS NOT NULL OR t.pin_key <> w.pin_key
            OR t.start_id IS DISTINCT FROM w.start_id
            OR (NOT w.is_locked AND (t.ready <> w.ready OR (w.ready AND t.head <> w.head)
                                     OR (NOT w.ready AND t.next_at_ms <> w.next_at_ms))));
END $$;
