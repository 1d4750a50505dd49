-- One call commits many items: turns, ends of activities, messages, record batches, renewals. Items are numbered from 1;
-- everything that belongs to an item names its number. Every item is checked first, and what fails is left out whole;
-- nothing that one item does can fail another.
--
-- Kinds: 1 turn, 2 end of an activity, 3 message, 4 activity, 5 records, 6 give back a turn, 7 give back an activity,
-- 8 renew a turn, 9 renew an activity, 10 events outside a turn.
-- Outcomes: 0 done, 1 the lock does not hold, 2 an event id exists, 3 a record is not as expected, 4 the instance exists,
-- 5 the instance is absent.
CREATE FUNCTION @schema@.commit_items(
    p_now bigint,
    p_kind smallint[], p_token bigint[], p_execution bigint[], p_ms bigint[], p_flag boolean[], p_instance text[],
    t_item integer[], t_stores boolean[], t_first bigint[], t_sorted boolean[], t_status smallint[], t_output bytea[],
    t_name text[], t_version text[], t_parent text[], t_pin text[], t_pin_key text[], t_incarnation bigint[],
    t_custom smallint[], t_custom_status bytea[], t_labelled boolean[],
    l_item integer[], l_key text[], l_value text[],
    e_item integer[], e_id bigint[], e_data bytea[],
    m_item integer[], m_instance text[], m_visible bigint[], m_delay bigint[], m_timer_execution bigint[],
    m_timer bigint[], m_guard smallint[], m_body bytea[],
    a_item integer[], a_instance text[], a_execution bigint[], a_id bigint[], a_lane text[], a_session text[],
    a_visible bigint[], a_body bytea[],
    c_item integer[], c_instance text[], c_execution bigint[], c_id bigint[],
    x_item integer[], x_execution bigint[], x_timer bigint[],
    r_item integer[], r_kind text[], r_id text[], r_expect smallint[], r_version bigint[], r_delete boolean[],
    r_due bigint[], r_life bigint[], r_body bytea[],
    OUT o_outcome smallint[], OUT o_instance text[], OUT o_version bigint[],
    OUT o_executions bigint, OUT o_events bigint, OUT o_instances bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    touched text[] := '{}';
    locked text[] := '{}';
    acked text[] := '{}';
    m_new bigint[] := '{}';
    m_at bigint[] := '{}';
    start_instance text[] := '{}';
    start_id bigint[] := '{}';
    has_turns boolean := p_kind && '{1,6,8,10}'::smallint[];
    has_activities boolean := p_kind && '{2,7,9}'::smallint[];
    item_activity bigint[];
    sessions text[];
    bad integer[];
    wrong integer;
    counted record;
BEGIN
    o_executions := 0;
    o_events := 0;
    o_instances := '{0,0,0,0,0,0,0}';
    o_version := '{}';

    -- Numbers and times of new messages.
    IF m_item <> '{}' THEN
        SELECT array_agg(nextval('@schema@.message_id')) INTO m_new FROM generate_series(1, cardinality(m_item));
        SELECT array_agg(CASE WHEN x.delay IS NULL THEN coalesce(x.visible, p_now) ELSE p_now + x.delay END)
          INTO m_at FROM unnest(m_delay, m_visible) AS x(delay, visible);
    END IF;

    -- The rows of all instances that are touched, in order. A row can go away between being found and being locked.
    IF has_turns OR m_item <> '{}' THEN
        FOR round IN 1..20 LOOP
            IF m_item <> '{}' THEN
                INSERT INTO @schema@.turn (instance_id, pin_key, ready, head, next_at_ms)
                SELECT x.instance_id, coalesce(i.pin_key, ''), bool_or(x.at <= p_now),
                       coalesce(min(x.id) FILTER (WHERE x.at <= p_now), 0), min(x.at)
                  FROM unnest(m_instance, m_new, m_at) AS x(instance_id, id, at)
                  LEFT JOIN @schema@.instance i ON i.instance_id = x.instance_id
                 GROUP BY x.instance_id, i.pin_key ORDER BY x.instance_id
                ON CONFLICT (instance_id) DO NOTHING;
            END IF;
            SELECT coalesce(array_agg(DISTINCT s.instance_id), '{}') INTO touched FROM (
                SELECT t.instance_id FROM unnest(p_token) AS k(token) JOIN @schema@.turn t ON t.lock_token = k.token
                UNION ALL SELECT unnest(m_instance)
                UNION ALL SELECT t.instance_id FROM unnest(p_instance) AS k(instance_id)
                            JOIN @schema@.turn t ON t.instance_id = k.instance_id) s;
            SELECT coalesce(array_agg(s.instance_id), '{}') INTO locked FROM (
                SELECT t.instance_id FROM unnest(touched) AS k(instance_id)
                  JOIN @schema@.turn t ON t.instance_id = k.instance_id
                 ORDER BY t.instance_id FOR UPDATE OF t) s;
            EXIT WHEN cardinality(locked) = cardinality(touched);
            IF round = 20 THEN
                RAISE EXCEPTION 'the rows of a commit do not stand still' USING ERRCODE = '40001';
            END IF;
        END LOOP;
    END IF;

    -- Who holds what.
    SELECT array_agg(CASE WHEN o.kind IN (1, 6, 8) AND t.instance_id IS NULL THEN 1 ELSE 0 END::smallint ORDER BY o.item),
           array_agg(coalesce(t.instance_id, o.instance_id) ORDER BY o.item)
      INTO o_outcome, o_instance
      FROM unnest(p_kind, p_token, p_instance) WITH ORDINALITY AS o(kind, token, instance_id, item)
      LEFT JOIN @schema@.turn t ON t.lock_token = o.token AND t.next_at_ms > p_now AND o.kind IN (1, 6, 8);

    IF has_activities OR c_item <> '{}' THEN
        PERFORM 1 FROM @schema@.activity a
          JOIN (SELECT b.id FROM unnest(p_token) AS k(token) JOIN @schema@.activity b ON b.lock_token = k.token
                UNION
                SELECT b.id FROM unnest(c_instance, c_execution, c_id) AS c(instance_id, execution_id, activity_id)
                  JOIN @schema@.activity b ON b.instance_id = c.instance_id AND b.execution_id = c.execution_id
                   AND b.activity_id = c.activity_id) s ON s.id = a.id
         ORDER BY a.id FOR UPDATE OF a;
    END IF;
    IF has_activities THEN
        SELECT array_agg(CASE WHEN o.kind IN (2, 7, 9) AND a.id IS NULL THEN 1 ELSE o.outcome END::smallint ORDER BY o.item),
               array_agg(a.id ORDER BY o.item),
               array_agg(DISTINCT a.session_id) FILTER (WHERE a.session_id IS NOT NULL AND o.kind IN (2, 9))
          INTO o_outcome, item_activity, sessions
          FROM unnest(p_kind, p_token, o_outcome) WITH ORDINALITY AS o(kind, token, outcome, item)
          LEFT JOIN @schema@.activity a ON a.lock_token = o.token AND a.next_at_ms > p_now AND o.kind IN (2, 7, 9);
        IF sessions IS NOT NULL THEN
            PERFORM 1 FROM @schema@.session s JOIN unnest(sessions) AS k(id) ON s.session_id = k.id
             ORDER BY s.session_id FOR UPDATE OF s;
        END IF;
    END IF;

    -- Events that exist already. Usually one look at the last event of an execution tells that all of them are new.
    IF e_item <> '{}' THEN
        SELECT array_agg(x.item) INTO bad
          FROM unnest(t_item, t_first, t_sorted) AS x(item, first, sorted)
         WHERE x.first IS NOT NULL AND o_outcome[x.item] = 0
           AND CASE WHEN x.sorted AND x.first > coalesce(
                   (SELECT e.event_id FROM @schema@.event e
                     WHERE e.instance_id = o_instance[x.item] AND e.execution_id = p_execution[x.item]
                     ORDER BY e.event_id DESC LIMIT 1), 0) THEN false
               ELSE (SELECT count(*) > count(DISTINCT n.id) OR bool_or(e.event_id IS NOT NULL)
                       FROM unnest(e_item, e_id) AS n(item, id)
                       LEFT JOIN @schema@.event e ON e.instance_id = o_instance[x.item]
                        AND e.execution_id = p_execution[x.item] AND e.event_id = n.id
                      WHERE n.item = x.item) END;
        IF bad IS NOT NULL THEN
            FOREACH wrong IN ARRAY bad LOOP o_outcome[wrong] := 2; END LOOP;
        END IF;
    END IF;

    -- Records that are not as expected. A key occurs once in a call.
    IF r_item <> '{}' THEN
        PERFORM 1 FROM unnest(r_kind, r_id) AS x(kind, id)
          JOIN @schema@.record r ON r.kind = x.kind AND r.id = x.id ORDER BY r.kind, r.id FOR UPDATE OF r;
        SELECT array_agg(DISTINCT x.item) INTO bad
          FROM unnest(r_item, r_kind, r_id, r_expect, r_version) AS x(item, kind, id, expect, version)
          LEFT JOIN @schema@.record r ON r.kind = x.kind AND r.id = x.id
           AND (r.expires_at_ms IS NULL OR r.expires_at_ms > p_now)
         WHERE CASE x.expect WHEN 0 THEN false WHEN 1 THEN r.version IS NOT NULL
               ELSE r.version IS DISTINCT FROM x.version END;
        IF bad IS NOT NULL THEN
            FOREACH wrong IN ARRAY bad LOOP
                IF o_outcome[wrong] = 0 THEN o_outcome[wrong] := 3; END IF;
            END LOOP;
        END IF;
    END IF;

    -- From here on everything is applied; what failed above is left out by its outcome.
    IF t_item <> '{}' THEN
        SELECT coalesce(array_agg(o.instance_id), '{}') INTO acked
          FROM unnest(p_kind, o_outcome, o_instance) AS o(kind, outcome, instance_id)
         WHERE o.kind = 1 AND o.outcome = 0;
        DELETE FROM @schema@.message m USING (
            SELECT t.instance_id, unnest(t.fetched) AS id FROM unnest(acked) AS k(instance_id)
              JOIN @schema@.turn t ON t.instance_id = k.instance_id) d
         WHERE NOT m.late AND m.instance_id = d.instance_id AND m.id = d.id;
        DELETE FROM @schema@.message m USING (
            SELECT t.instance_id, unnest(t.fetched_late) AS id FROM unnest(acked) AS k(instance_id)
              JOIN @schema@.turn t ON t.instance_id = k.instance_id WHERE t.fetched_late <> '{}') d
         WHERE m.late AND m.instance_id = d.instance_id AND m.id = d.id;

        SELECT coalesce(count(*) FILTER (WHERE d.is_new_execution), 0) AS executions,
               ARRAY(SELECT coalesce(sum(CASE WHEN c.code = w.status_after THEN 1 ELSE 0 END
                            - CASE WHEN c.code = w.status_before THEN 1 ELSE 0 END), 0)
                       FROM generate_series(0, 6) AS c(code), unnest(array_agg(d.status_before), array_agg(d.status_after))
                            AS w(status_before, status_after) GROUP BY c.code ORDER BY c.code) AS instances
          INTO counted
          FROM @schema@.store_turns(p_now, o_outcome, o_instance, p_execution, t_item, t_stores, t_status, t_output,
               t_name, t_version, t_parent, t_pin, t_pin_key, t_incarnation, t_custom, t_custom_status, t_labelled,
               l_item, l_key, l_value) d;
        o_executions := counted.executions;
        IF counted.instances <> '{}' THEN o_instances := counted.instances; END IF;

        INSERT INTO @schema@.event (instance_id, execution_id, event_id, data)
        SELECT o_instance[e.item], p_execution[e.item], e.id, e.data
          FROM unnest(e_item, e_id, e_data) AS e(item, id, data) WHERE o_outcome[e.item] = 0;
        GET DIAGNOSTICS o_events = ROW_COUNT;
    END IF;

    IF has_activities THEN
        PERFORM @schema@.settle_activities(p_now, p_kind, p_ms, p_flag, o_outcome, item_activity, sessions);
    END IF;

    IF a_item <> '{}' THEN
        INSERT INTO @schema@.activity (id, instance_id, execution_id, activity_id, lane, session_id, ready, next_at_ms,
                                       visible_at_ms, body)
        SELECT nextval('@schema@.activity_id'), a.instance_id, a.execution_id, a.id, a.lane, a.session_id,
               coalesce(a.visible, p_now) <= p_now, coalesce(a.visible, p_now), a.visible, a.body
          FROM unnest(a_item, a_instance, a_execution, a_id, a_lane, a_session, a_visible, a_body)
               AS a(item, instance_id, execution_id, id, lane, session_id, visible, body)
         WHERE o_outcome[a.item] = 0;
    END IF;

    -- Messages. A guarded one is judged by what is there now, and by guarded starts before it in this call.
    IF m_item <> '{}' THEN
        IF m_guard && '{1,2}'::smallint[] THEN
            SELECT array_agg(g.place) INTO bad FROM (
                SELECT f.place, f.guard,
                       i.name IS NOT NULL OR (t.start_id IS NOT NULL AND NOT (f.instance_id = ANY (acked)
                           AND t.start_id = ANY (coalesce(t.fetched, '{}') || coalesce(t.fetched_late, '{}')))) AS present,
                       min(f.place) FILTER (WHERE f.guard = 1) OVER (PARTITION BY f.instance_id) AS first_start
                  FROM unnest(m_item, m_instance, m_guard) WITH ORDINALITY AS f(item, instance_id, guard, place)
                  LEFT JOIN @schema@.instance i ON i.instance_id = f.instance_id
                  LEFT JOIN @schema@.turn t ON t.instance_id = f.instance_id
                 WHERE f.guard <> 0 AND o_outcome[f.item] = 0) g
             WHERE CASE g.guard WHEN 1 THEN g.present OR g.place <> g.first_start
                   ELSE NOT (g.present OR coalesce(g.first_start < g.place, false)) END;
            IF bad IS NOT NULL THEN
                FOREACH wrong IN ARRAY bad LOOP
                    m_new[wrong] := NULL;
                    IF p_kind[m_item[wrong]] = 3 THEN o_outcome[m_item[wrong]] := 3 + m_guard[wrong]; END IF;
                END LOOP;
            END IF;
            SELECT coalesce(array_agg(f.instance_id), '{}'), coalesce(array_agg(f.id), '{}')
              INTO start_instance, start_id
              FROM unnest(m_item, m_instance, m_guard, m_new) AS f(item, instance_id, guard, id)
             WHERE f.guard = 1 AND f.id IS NOT NULL AND o_outcome[f.item] = 0;
        END IF;
        INSERT INTO @schema@.message (id, instance_id, late, visible_at_ms, timer_execution_id, timer_id, body)
        SELECT m.id, m.instance_id, m.at > p_now, m.at, m.timer_execution, m.timer, m.body
          FROM unnest(m_item, m_new, m_instance, m_at, m_timer_execution, m_timer, m_body)
               AS m(item, id, instance_id, at, timer_execution, timer, body)
         WHERE o_outcome[m.item] = 0 AND m.id IS NOT NULL;
    END IF;

    -- Taking back comes last, so that it reaches what the same turn scheduled.
    IF c_item <> '{}' THEN
        DELETE FROM @schema@.activity a USING unnest(c_item, c_instance, c_execution, c_id)
               AS c(item, instance_id, execution_id, activity_id)
         WHERE o_outcome[c.item] = 0 AND a.instance_id = c.instance_id AND a.execution_id = c.execution_id
           AND a.activity_id = c.activity_id;
    END IF;
    IF x_item <> '{}' THEN
        DELETE FROM @schema@.message m USING unnest(x_item, x_execution, x_timer) AS x(item, execution_id, timer_id)
         WHERE o_outcome[x.item] = 0 AND m.instance_id = o_instance[x.item]
           AND m.timer_execution_id = x.execution_id AND m.timer_id = x.timer_id;
    END IF;

    IF r_item <> '{}' THEN
        o_version := @schema@.store_records(p_now, o_outcome, r_item, r_kind, r_id, r_expect, r_version, r_delete,
                                            r_due, r_life, r_body);
    END IF;

    IF touched <> '{}' THEN
        PERFORM @schema@.settle_turns(p_now, p_kind, p_ms, p_flag, o_outcome, o_instance, touched, start_instance,
                                      start_id);
    END IF;
END $$;

-- Stores what turns say about their instances and executions. Answers one row for each turn that stored something.
CREATE FUNCTION @schema@.store_turns(
    p_now bigint, p_outcome smallint[], p_instance text[], p_execution bigint[],
    t_item integer[], t_stores boolean[], t_status smallint[], t_output bytea[], t_name text[], t_version text[],
    t_parent text[], t_pin text[], t_pin_key text[], t_incarnation bigint[], t_custom smallint[], t_custom_status bytea[],
    t_labelled boolean[], l_item integer[], l_key text[], l_value text[]
) RETURNS TABLE (is_new_execution boolean, status_before smallint, status_after smallint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    is_known boolean[];
    is_continued boolean[];
    before smallint[];
    after smallint[];
    is_current boolean[];
BEGIN
    SELECT array_agg(i.instance_id IS NOT NULL ORDER BY x.place), array_agg(e.instance_id IS NOT NULL ORDER BY x.place),
           array_agg(i.status ORDER BY x.place),
           array_agg(CASE WHEN NOT x.stores OR p_execution[x.item] < i.current_execution_id THEN i.status
                     ELSE coalesce(x.status, CASE WHEN e.instance_id IS NULL THEN 1 ELSE i.status END) END::smallint
                     ORDER BY x.place),
           array_agg(x.stores AND p_execution[x.item] >= coalesce(i.current_execution_id, 0) ORDER BY x.place)
      INTO is_known, is_continued, before, after, is_current
      FROM unnest(t_item, t_stores, t_status) WITH ORDINALITY AS x(item, stores, status, place)
      LEFT JOIN @schema@.instance i ON i.instance_id = p_instance[x.item]
      LEFT JOIN @schema@.execution e ON e.instance_id = p_instance[x.item] AND e.execution_id = p_execution[x.item];

    INSERT INTO @schema@.execution (instance_id, execution_id, status, started_at_ms, completed_at_ms, pinned_version,
                                    incarnation, output)
    SELECT p_instance[x.item], p_execution[x.item], coalesce(x.status, 1), p_now,
           CASE WHEN x.status >= 3 THEN p_now END, x.pin, x.incarnation, x.output
      FROM unnest(t_item, t_stores, is_continued, t_status, t_pin, t_incarnation, t_output)
           AS x(item, stores, continued, status, pin, incarnation, output)
     WHERE p_outcome[x.item] = 0 AND x.stores AND NOT x.continued;
    UPDATE @schema@.execution e
       SET status = coalesce(x.status, e.status),
           completed_at_ms = CASE WHEN x.status IS NULL THEN e.completed_at_ms WHEN x.status >= 3 THEN p_now END,
           pinned_version = coalesce(x.pin, e.pinned_version), incarnation = coalesce(x.incarnation, e.incarnation),
           output = coalesce(x.output, e.output)
      FROM unnest(t_item, is_continued, t_status, t_pin, t_incarnation, t_output)
           AS x(item, continued, status, pin, incarnation, output)
     WHERE p_outcome[x.item] = 0 AND x.continued AND e.instance_id = p_instance[x.item]
       AND e.execution_id = p_execution[x.item]
       AND NOT (x.status IS NULL AND x.pin IS NULL AND x.incarnation IS NULL AND x.output IS NULL);

    UPDATE @schema@.instance i
       SET revision = i.revision + 1, updated_at_ms = p_now, status = x.after,
           current_execution_id = CASE WHEN x.current THEN p_execution[x.item] ELSE i.current_execution_id END,
           completed_at_ms = CASE WHEN NOT x.current THEN i.completed_at_ms WHEN x.status >= 3 THEN p_now
                             WHEN x.status IS NULL AND x.continued THEN i.completed_at_ms END,
           pin_key = CASE WHEN NOT x.current THEN i.pin_key
                     ELSE coalesce(x.pin_key, CASE WHEN x.continued THEN i.pin_key ELSE '' END) END,
           name = coalesce(x.name, i.name), version = coalesce(x.version, i.version),
           parent_id = coalesce(x.parent, i.parent_id),
           custom_status_version = i.custom_status_version + CASE WHEN x.custom > 0 THEN 1 ELSE 0 END,
           custom_status = CASE WHEN x.custom > 0 THEN x.custom_status ELSE i.custom_status END
      FROM unnest(t_item, is_known, is_continued, is_current, after, t_status, t_pin_key, t_name, t_version, t_parent,
                  t_custom, t_custom_status)
           AS x(item, known, continued, current, after, status, pin_key, name, version, parent, custom, custom_status)
     WHERE p_outcome[x.item] = 0 AND x.known AND i.instance_id = p_instance[x.item];
    INSERT INTO @schema@.instance (instance_id, current_execution_id, status, created_at_ms, updated_at_ms,
                                   completed_at_ms, revision, name, version, parent_id, pin_key, custom_status_version,
                                   custom_status)
    SELECT p_instance[x.item], p_execution[x.item], coalesce(x.status, 1), p_now, p_now,
           CASE WHEN x.status >= 3 THEN p_now END, 1, x.name, x.version, x.parent, coalesce(x.pin_key, ''),
           CASE WHEN x.custom > 0 THEN 1 ELSE 0 END, x.custom_status
      FROM unnest(t_item, t_stores, is_known, t_status, t_pin_key, t_name, t_version, t_parent, t_custom, t_custom_status)
           AS x(item, stores, known, status, pin_key, name, version, parent, custom, custom_status)
     WHERE p_outcome[x.item] = 0 AND x.stores AND NOT x.known;

    IF t_labelled && '{t}'::boolean[] THEN
        DELETE FROM @schema@.label l USING unnest(t_item, t_labelled) AS x(item, labelled)
         WHERE x.labelled AND p_outcome[x.item] = 0 AND l.instance_id = p_instance[x.item];
        UPDATE @schema@.instance i
           SET labels = ARRAY(SELECT unnest(ARRAY[y.key, y.value]) FROM unnest(l_item, l_key, l_value)
                              AS y(item, key, value) WHERE y.item = x.item)
          FROM unnest(t_item, t_labelled) AS x(item, labelled)
         WHERE x.labelled AND p_outcome[x.item] = 0 AND i.instance_id = p_instance[x.item];
        INSERT INTO @schema@.label (key, value, created_at_ms, instance_id)
        SELECT y.key, y.value, i.created_at_ms, i.instance_id
          FROM unnest(l_item, l_key, l_value) AS y(item, key, value)
          JOIN @schema@.instance i ON i.instance_id = p_instance[y.item] WHERE p_outcome[y.item] = 0;
    END IF;

    -- A turn that stores nothing has a state only if its instance is known.
    RETURN QUERY SELECT x.stores AND NOT x.continued, x.before,
                        CASE WHEN x.stores OR x.known THEN coalesce(x.after, 1::smallint) END
      FROM unnest(t_item, t_stores, is_known, is_continued, before, after)
           AS x(item, stores, known, continued, before, after)
     WHERE p_outcome[x.item] = 0;
END $$;

CREATE FUNCTION @schema@.store_records(
    p_now bigint, p_outcome smallint[],
    r_item integer[], r_kind text[], r_id text[], r_expect smallint[], r_version bigint[], r_delete boolean[],
    r_due bigint[], r_life bigint[], r_body bytea[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    versions bigint[];
BEGIN
    SELECT array_agg(CASE WHEN x.gone OR p_outcome[x.item] <> 0 THEN 0 ELSE nextval('@schema@.record_version') END)
      INTO versions FROM unnest(r_item, r_delete) AS x(item, gone);
    -- An expired record that must be absent is here still; it is locked since it was checked.
    DELETE FROM @schema@.record r USING unnest(r_item, r_kind, r_id, r_expect, r_delete) AS x(item, kind, id, expect, gone)
     WHERE (x.gone OR x.expect = 1) AND p_outcome[x.item] = 0 AND r.kind = x.kind AND r.id = x.id;
    INSERT INTO @schema@.record (kind, id, version, due_at_ms, expires_at_ms, body)
    SELECT x.kind, x.id, x.new_version, x.due, p_now + x.life, x.body
      FROM unnest(r_item, r_kind, r_id, r_expect, r_delete, versions, r_due, r_life, r_body)
           AS x(item, kind, id, expect, gone, new_version, due, life, body)
     WHERE x.expect = 1 AND NOT x.gone AND p_outcome[x.item] = 0 ORDER BY x.kind, x.id
    ON CONFLICT (kind, id) DO NOTHING;
    INSERT INTO @schema@.record (kind, id, version, due_at_ms, expires_at_ms, body)
    SELECT x.kind, x.id, x.new_version, x.due, p_now + x.life, x.body
      FROM unnest(r_item, r_kind, r_id, r_expect, r_delete, versions, r_due, r_life, r_body)
           AS x(item, kind, id, expect, gone, new_version, due, life, body)
     WHERE x.expect <> 1 AND NOT x.gone AND p_outcome[x.item] = 0 ORDER BY x.kind, x.id
    ON CONFLICT (kind, id) DO UPDATE
       SET version = excluded.version, due_at_ms = excluded.due_at_ms, expires_at_ms = excluded.expires_at_ms,
           body = excluded.body;
    -- Another commit made the record that was absent when it was checked: the caller tries the whole call again.
    IF r_expect && '{1}'::smallint[] AND EXISTS (
        SELECT 1 FROM unnest(r_item, r_kind, r_id, r_expect, r_delete, versions)
               AS x(item, kind, id, expect, gone, new_version)
          JOIN @schema@.record r ON r.kind = x.kind AND r.id = x.id
         WHERE x.expect = 1 AND NOT x.gone AND p_outcome[x.item] = 0 AND r.version <> x.new_version) THEN
        RAISE EXCEPTION 'a record was written by another commit meanwhile' USING ERRCODE = '40001';
    END IF;
    RETURN versions;
END $$;

CREATE FUNCTION @schema@.settle_activities(
    p_now bigint, p_kind smallint[], p_ms bigint[], p_flag boolean[], p_outcome smallint[], p_activity bigint[],
    p_sessions text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.activity a USING unnest(p_kind, p_outcome, p_activity) AS o(kind, outcome, id)
     WHERE o.kind = 2 AND o.outcome = 0 AND a.id = o.id;
    IF p_kind && '{7,9}'::smallint[] THEN
        UPDATE @schema@.activity a
           SET lock_token = CASE WHEN o.kind = 9 THEN a.lock_token END,
               ready = o.kind = 7 AND o.ms <= 0,
               next_at_ms = p_now + o.ms,
               attempts = CASE WHEN o.kind = 7 AND o.flag THEN greatest(a.attempts - 1, 0) ELSE a.attempts END
          FROM unnest(p_kind, p_outcome, p_activity, p_ms, p_flag) AS o(kind, outcome, id, ms, flag)
         WHERE o.kind IN (7, 9) AND o.outcome = 0 AND a.id = o.id;
    END IF;
    IF p_sessions IS NOT NULL THEN
        UPDATE @schema@.session s SET last_activity_ms = p_now FROM unnest(p_sessions) AS k(id)
         WHERE s.session_id = k.id AND s.last_activity_ms < p_now;
    END IF;
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

-- Brings the rows of touched instances in line: who is locked, who can be fetched, when the others may be, and who has
-- nothing left and goes.
CREATE FUNCTION @schema@.settle_turns(
    p_now bigint, p_kind smallint[], p_ms bigint[], p_flag boolean[], p_outcome smallint[], p_instance text[],
    p_touched text[], p_start_instance text[], p_start_id bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_kind && '{6}'::smallint[] THEN
        PERFORM @schema@.count_attempts(ARRAY(
            SELECT o.instance_id FROM unnest(p_kind, p_flag, p_outcome, p_instance) AS o(kind, flag, outcome, instance_id)
             WHERE o.kind = 6 AND NOT o.flag AND o.outcome = 0));
    END IF;
    -- What happens to each instance, gathered by grouping: a join of two lists costs their product.
    WITH change AS (
        SELECT x.instance_id, bool_or(x.kind = 6 OR (x.kind = 1 AND NOT x.flag)) AS released, bool_or(x.kind = 1) AS consumed,
               max(p_now + x.ms) FILTER (WHERE x.kind = 8) AS renewed_to,
               max(p_now + x.ms) FILTER (WHERE x.kind = 6) AS hidden_to, max(x.start_id) AS new_start_id
          FROM (SELECT o.instance_id, o.kind, o.flag, o.ms, NULL::bigint AS start_id
                  FROM unnest(p_kind, p_ms, p_flag, p_outcome, p_instance) AS o(kind, ms, flag, outcome, instance_id)
                 WHERE o.kind IN (1, 6, 8) AND o.outcome = 0
                UNION ALL SELECT k.instance_id, NULL, NULL, NULL, NULL FROM unnest(p_touched) AS k(instance_id)
                UNION ALL SELECT n.instance_id, NULL, NULL, NULL, n.id
                  FROM unnest(p_start_instance, p_start_id) AS n(instance_id, id)) x
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
