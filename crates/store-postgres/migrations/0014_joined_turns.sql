-- Turns that are committed together with the end of the activity that brings them (kind 11 of an item). The token is the lock of
-- the activity, `ms` is the incarnation of the execution. Such a turn holds no lock on its instance, so it makes a row of `turn` for
-- the time of the commit, or locks the one that exists: no other commit for the instance comes between check and change.

-- Items whose turns cannot join: the instance is locked or has a message to fetch, also one of this call; the activity was
-- delivered before; or the execution has gone on, or is another one.
CREATE FUNCTION @schema@.refused_joins(
    p_now bigint, p_items @schema@.item_list, p_turns @schema@.turn_list, p_messages @schema@.message_list,
    p_outcome smallint[], p_instance text[], p_activity bigint[], p_new text[], p_at_execution bigint[], p_at_event bigint[],
    p_at_incarnation bigint[]
) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    addressed text[] := ARRAY(
        SELECT m.instance_id FROM unnest(p_messages.item, p_messages.instance) AS m(item, instance_id)
         WHERE p_items.kind[m.item] <> 11 OR p_instance[m.item] IS DISTINCT FROM m.instance_id);
BEGIN
    RETURN ARRAY(
        SELECT x.item FROM (
            SELECT n.*, p_instance[n.item] AS instance_id, p_items.execution[n.item] AS execution,
                   row_number() OVER (PARTITION BY p_instance[n.item] ORDER BY n.item) AS place
              FROM unnest(p_turns.item, p_turns.first_event, p_at_execution, p_at_event, p_at_incarnation)
                   AS n(item, first_event, at_execution, at_event, at_incarnation)
             WHERE p_items.kind[n.item] = 11 AND p_outcome[n.item] = 0) x
          JOIN @schema@.activity a ON a.id = p_activity[x.item]
          LEFT JOIN @schema@.turn t ON t.instance_id = x.instance_id
         WHERE (NOT p_items.flag[x.item] AND x.place = 1
                AND a.attempts = 1 AND a.instance_id = x.instance_id AND a.execution_id = x.execution
                AND x.at_execution = x.execution AND x.at_incarnation = p_items.ms[x.item]
                AND x.first_event = x.at_event + 1
                AND (x.instance_id = ANY (p_new)
                     OR (t.lock_token IS NULL AND NOT t.ready AND t.next_at_ms > p_now AND t.not_before_ms <= p_now))
                AND x.instance_id <> ALL (addressed)) IS NOT TRUE);
END $$;

-- Removes the rows that joined turns needed and for which nothing waits; answers which others have to be looked at.
CREATE FUNCTION @schema@.close_joined(p_joined text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    left_over text[];
BEGIN
    WITH closed AS (
        DELETE FROM @schema@.turn t USING unnest(p_joined) AS k(instance_id)
         WHERE t.instance_id = k.instance_id AND t.lock_token IS NULL
           AND NOT EXISTS (SELECT 1 FROM @schema@.message m WHERE m.instance_id = k.instance_id AND NOT m.late)
           AND NOT EXISTS (SELECT 1 FROM @schema@.message m WHERE m.instance_id = k.instance_id AND m.late)
        RETURNING t.instance_id
    )
    SELECT ARRAY(SELECT unnest(p_joined) EXCEPT SELECT c.instance_id FROM closed c) INTO left_over;
    RETURN left_over;
END $$;

-- Ends, gives back and renews activities, and notes that their sessions are in use.
CREATE OR REPLACE FUNCTION @schema@.settle_activities(
    p_now bigint, p_items @schema@.item_list, p_outcome smallint[], p_activity bigint[], p_sessions text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.activity a USING unnest(p_items.kind, p_activity, p_outcome) AS o(kind, id, outcome)
     WHERE o.kind IN (2, 11) AND o.outcome = 0 AND a.id = o.id;
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

CREATE OR REPLACE FUNCTION @schema@.commit_items(
    p_now bigint, p_items @schema@.item_list, p_turns @schema@.turn_list, p_labels @schema@.label_list,
    p_events @schema@.event_list, p_messages @schema@.message_list, p_activities @schema@.activity_list,
    p_cancels @schema@.cancel_list, p_timers @schema@.timer_list, p_records @schema@.record_list, p_wish @schema@.wish,
    OUT o_outcome smallint[], OUT o_version bigint[], OUT o_executions bigint, OUT o_events bigint,
    OUT o_instances bigint[], OUT o_turn_token bigint[], OUT o_turn_instance text[], OUT o_activity bigint[],
    OUT o_activity_token bigint[], OUT o_leaves_turns boolean, OUT o_leaves_activities boolean
) LANGUAGE plpgsql AS $$
DECLARE
    -- What each item is about.
    instances text[];
    activities bigint[];
    executions bigint[] := p_items.execution;
    -- Of the instances of turns.
    at_execution bigint[];
    at_status smallint[];
    at_event bigint[];
    at_incarnation bigint[];
    -- Instances of turns that join their activities.
    joined text[] := '{}';
    -- Messages: their numbers, NULL once refused, and times.
    m_id bigint[];
    m_at bigint[];
    room record;
    opened record;
    -- Instances for which a row was made, with the tokens of those that were locked at once; and those that had one.
    new_instances text[] := '{}';
    new_tokens bigint[] := '{}';
    others text[] := '{}';
    found integer;
    -- Instances whose fetched messages were taken, those of them whose lock ended, and what became of their rows.
    consumed text[] := '{}';
    released text[] := '{}';
    gone text[];
    left_over text[];
    -- Instances whose rows have to be brought in line in the end.
    unsettled text[] := '{}';
    is_refused boolean := false;
    sessions text[] := '{}';
    held integer[] := '{}';
    item integer;
BEGIN
    o_version := '{}';
    o_executions := 0;
    o_events := 0;
    o_instances := '{0,0,0,0,0,0,0}';
    o_activity := '{}';
    o_activity_token := '{}';
    -- Whoever needs a lock has lost it, until it is found.
    SELECT array_agg(CASE WHEN k.kind IN (1, 2, 6, 7, 8, 9, 11) THEN 1 ELSE 0 END::smallint) INTO o_outcome
      FROM unnest(p_items.kind) AS k(kind);
    SELECT * INTO instances, activities FROM @schema@.held_rows(p_items);
    SELECT * INTO room FROM @schema@.capacity(p_now, p_wish);

    -- The rows of all instances that are touched, in order. A row can go away between being found and being locked.
    IF p_messages.item <> '{}' THEN
        SELECT array_agg(nextval('@schema@.message_id')),
               array_agg(CASE WHEN x.delay IS NULL THEN coalesce(x.visible, p_now) ELSE p_now + x.delay END)
          INTO m_id, m_at FROM unnest(p_messages.delay, p_messages.visible) AS x(delay, visible);
    END IF;
    IF p_items.kind && '{11}'::smallint[] THEN
        joined := ARRAY(SELECT DISTINCT o.instance_id FROM unnest(p_items.kind, instances) AS o(kind, instance_id)
                         WHERE o.kind = 11 AND o.instance_id IS NOT NULL);
    END IF;
    FOR round IN 1..20 LOOP
        unsettled := '{}';
        IF p_messages.item <> '{}' OR joined <> '{}' THEN
            -- The row that a joined turn needs as its lock is made like that of a message whose time is far.
            SELECT * INTO opened FROM @schema@.open_turns(p_now, p_messages.instance || joined,
                m_id || array_fill(NULL::bigint, ARRAY[cardinality(joined)]),
                m_at || array_fill(p_now + 60000, ARRAY[cardinality(joined)]),
                p_messages.guard || array_fill(0::smallint, ARRAY[cardinality(joined)]),
                CASE WHEN round = 1 THEN room.o_turns ELSE 0 END, p_wish);
            new_instances := new_instances || opened.o_instance;
            new_tokens := new_tokens || opened.o_token;
            IF opened.o_wanted > cardinality(new_instances) THEN
                others := ARRAY(SELECT unnest(p_messages.instance || joined) EXCEPT SELECT unnest(new_instances));
            END IF;
        END IF;
        SELECT coalesce(array_agg(s.item) FILTER (WHERE s.holds), '{}'),
               coalesce(array_agg(s.instance_id) FILTER (WHERE s.item IS NULL OR s.kind > 1), '{}'),
               count(*) FILTER (WHERE s.item IS NULL)
          INTO held, unsettled, found FROM (
            SELECT k.item, k.kind, t.instance_id, t.lock_token = k.token AND t.next_at_ms > p_now AS holds
              FROM (SELECT o.item, o.kind, o.token, o.instance_id
                      FROM unnest(p_items.kind, p_items.token, instances) WITH ORDINALITY
                           AS o(kind, token, instance_id, item) WHERE o.kind IN (1, 6, 8, 10)
                    UNION ALL
                    SELECT NULL, NULL, NULL, u.instance_id FROM unnest(others) AS u(instance_id)) k
              JOIN @schema@.turn t ON t.instance_id = k.instance_id ORDER BY t.instance_id FOR UPDATE OF t) s;
        EXIT WHEN found >= cardinality(others);
        IF round = 20 THEN
            RAISE EXCEPTION 'the rows of a commit do not stand still' USING ERRCODE = '40001';
        END IF;
    END LOOP;

    FOREACH item IN ARRAY held LOOP
        o_outcome[item] := 0;
    END LOOP;

    -- The same for activities, and the sessions that they keep alive.
    IF p_items.kind && '{2,7,9,11}'::smallint[] OR p_cancels.item <> '{}' THEN
        SELECT coalesce(array_agg(s.item) FILTER (WHERE s.holds), '{}'),
               coalesce(array_agg(s.session_id) FILTER (WHERE s.holds AND s.session_id IS NOT NULL AND s.kind IN (2, 9, 11)), '{}')
          INTO held, sessions FROM (
            SELECT k.item, k.kind, a.session_id, a.lock_token = k.token AND a.next_at_ms > p_now AS holds
              FROM (SELECT o.item, o.kind, o.token, o.id
                      FROM unnest(p_items.kind, p_items.token, activities) WITH ORDINALITY AS o(kind, token, id, item)
                     WHERE o.kind IN (2, 7, 9, 11)
                    UNION ALL
                    SELECT NULL, NULL, NULL, b.id
                      FROM unnest(p_cancels.instance, p_cancels.execution, p_cancels.id)
                           AS c(instance_id, execution_id, activity_id)
                      JOIN @schema@.activity b ON b.instance_id = c.instance_id AND b.execution_id = c.execution_id
                       AND b.activity_id = c.activity_id) k
              JOIN @schema@.activity a ON a.id = k.id ORDER BY a.id FOR UPDATE OF a) s;
        FOREACH item IN ARRAY held LOOP
            o_outcome[item] := 0;
        END LOOP;
        IF sessions <> '{}' THEN
            PERFORM 1 FROM (SELECT DISTINCT k.id FROM unnest(sessions) AS k(id)) k
              JOIN @schema@.session s ON s.session_id = k.id ORDER BY s.session_id FOR UPDATE OF s;
        END IF;
    END IF;

    -- Where the instances of turns stand, events that exist already, records that are not as expected.
    IF p_turns.item <> '{}' THEN
        SELECT array_agg(s.execution_id), array_agg(s.status), array_agg(s.last_event_id), array_agg(s.incarnation)
          INTO at_execution, at_status, at_event, at_incarnation FROM (
            SELECT i.execution_id, i.status, i.last_event_id, i.incarnation FROM unnest(p_turns.item) WITH ORDINALITY AS x(item, place)
              LEFT JOIN @schema@.instance i ON i.instance_id = instances[x.item] ORDER BY x.place) s;
    END IF;
    IF p_items.kind && '{11}'::smallint[] THEN
        FOREACH item IN ARRAY @schema@.refused_joins(p_now, p_items, p_turns, p_messages, o_outcome, instances, activities,
            new_instances, at_execution, at_event, at_incarnation)
        LOOP
            o_outcome[item] := 1;
        END LOOP;
    END IF;
    IF p_events.item <> '{}' THEN
        FOREACH item IN ARRAY
            @schema@.late_events(o_outcome, instances, executions, p_turns, at_execution, at_event)
        LOOP
            o_outcome[item] := 2;
        END LOOP;
    END IF;
    IF p_records.item <> '{}' THEN
        FOREACH item IN ARRAY @schema@.unexpected_records(p_now, p_records) LOOP
            IF o_outcome[item] = 0 THEN o_outcome[item] := 3; END IF;
        END LOOP;
    END IF;

    -- A batch that depends on its guards is refused with the first message that one forbids. One at a time: what a refused batch
    -- would have started stands in the way of no other.
    IF p_items.kind && '{5}'::smallint[] AND p_items.flag && '{t}'::boolean[] AND p_messages.guard && '{1,2}'::smallint[] THEN
        LOOP
            SELECT min(r.place) INTO item
              FROM unnest(@schema@.refused_messages(o_outcome, '{}', p_messages)) AS r(place)
             WHERE p_items.kind[p_messages.item[r.place]] = 5 AND p_items.flag[p_messages.item[r.place]];
            EXIT WHEN item IS NULL;
            o_outcome[p_messages.item[item]] := 3 + p_messages.guard[item];
        END LOOP;
    END IF;

    -- From here on everything is applied; what failed above is left out by its outcome.
    IF p_turns.item <> '{}' THEN
        SELECT coalesce(array_agg(o.instance_id) FILTER (WHERE NOT o.flag), '{}'), coalesce(array_agg(o.instance_id), '{}')
          INTO released, consumed
          FROM unnest(p_items.kind, p_items.flag, o_outcome, instances) AS o(kind, flag, outcome, instance_id)
         WHERE o.kind = 1 AND o.outcome = 0;
        SELECT * INTO o_executions, o_instances
          FROM @schema@.store_turns(p_now, o_outcome, instances, executions, p_turns, at_execution, at_status);
        IF p_turns.labelled && '{t}'::boolean[] THEN
            PERFORM @schema@.store_labels(o_outcome, instances, p_turns, p_labels);
        END IF;
        IF p_events.item <> '{}' THEN
            INSERT INTO @schema@.event_batch (instance_id, execution_id, last_id, ids, data)
            SELECT instances[e.item], executions[e.item], max(e.id), array_agg(e.id), array_agg(e.data)
              FROM (SELECT n.item, n.id, n.data FROM unnest(p_events.item, p_events.id, p_events.data) AS n(item, id, data)
                     WHERE o_outcome[n.item] = 0 ORDER BY n.item, n.id) e GROUP BY e.item;
            SELECT count(*) INTO o_events FROM unnest(p_events.item) AS n(item) WHERE o_outcome[n.item] = 0;
        END IF;
    END IF;
    IF p_items.kind && '{2,7,9,11}'::smallint[] THEN
        PERFORM @schema@.settle_activities(p_now, p_items, o_outcome, activities, sessions);
    END IF;
    IF p_activities.item <> '{}' THEN
        SELECT * INTO o_activity, o_activity_token
          FROM @schema@.add_activities(p_now, o_outcome, p_activities, room.o_activities, p_wish);
    END IF;
    IF p_messages.item <> '{}' THEN
        is_refused := o_outcome && '{1,2,3,4,5}'::smallint[];
        IF p_messages.guard && '{1,2}'::smallint[] THEN
            FOREACH item IN ARRAY @schema@.refused_messages(o_outcome, consumed, p_messages) LOOP
                is_refused := true;
                m_id[item] := NULL;
                IF p_items.kind[p_messages.item[item]] = 3 THEN
                    o_outcome[p_messages.item[item]] := 3 + p_messages.guard[item];
                END IF;
            END LOOP;
        END IF;
        INSERT INTO @schema@.message (id, instance_id, late, visible_at_ms, timer_execution_id, timer_id, body)
        SELECT m.id, m.instance_id, m.at > p_now, m.at, m.timer_execution, m.timer, m.body
          FROM unnest(p_messages.item, m_id, p_messages.instance, m_at, p_messages.timer_execution, p_messages.timer,
                      p_messages.body) AS m(item, id, instance_id, at, timer_execution, timer, body)
         WHERE o_outcome[m.item] = 0 AND m.id IS NOT NULL;
    END IF;

    -- Taking back comes last, so that it reaches what the same turn scheduled.
    IF p_cancels.item <> '{}' THEN
        DELETE FROM @schema@.activity a USING unnest(p_cancels.item, p_cancels.instance, p_cancels.execution, p_cancels.id)
               AS c(item, instance_id, execution_id, activity_id)
         WHERE o_outcome[c.item] = 0 AND a.instance_id = c.instance_id AND a.execution_id = c.execution_id
           AND a.activity_id = c.activity_id;
    END IF;
    IF p_timers.item <> '{}' THEN
        DELETE FROM @schema@.message m USING unnest(p_timers.item, p_timers.execution, p_timers.timer)
               AS x(item, execution_id, timer_id)
         WHERE o_outcome[x.item] = 0 AND m.instance_id = instances[x.item]
           AND m.timer_execution_id = x.execution_id AND m.timer_id = x.timer_id;
    END IF;
    IF p_records.item <> '{}' THEN
        o_version := @schema@.store_records(p_now, o_outcome, p_records);
    END IF;

    -- A row that has nothing left goes, which is what mostly happens. The others are looked at one by one.
    IF consumed <> '{}' THEN
        gone := @schema@.close_turns(released);
        IF cardinality(gone) < cardinality(consumed) THEN
            left_over := ARRAY(SELECT unnest(consumed) EXCEPT SELECT unnest(gone));
            PERFORM @schema@.remove_fetched(left_over);
            unsettled := unsettled || left_over;
        END IF;
    END IF;
    IF joined <> '{}' THEN
        unsettled := unsettled || @schema@.close_joined(joined);
    END IF;
    IF is_refused THEN
        unsettled := unsettled || @schema@.reopen_turns(o_outcome, p_messages, m_id);
    END IF;
    IF unsettled <> '{}' THEN
        PERFORM @schema@.settle_turns(p_now, p_items, o_outcome, instances, unsettled, p_messages, m_id);
    END IF;
    -- What was locked at once and is still so.
    SELECT coalesce(array_agg(n.token), '{}'), coalesce(array_agg(n.instance_id), '{}') INTO o_turn_token, o_turn_instance
      FROM unnest(new_tokens, new_instances) AS n(token, instance_id)
     WHERE n.token IS NOT NULL
       AND (NOT is_refused OR EXISTS (SELECT 1 FROM @schema@.turn t WHERE t.instance_id = n.instance_id
                                               AND t.lock_token = n.token));
    -- Whether there may be more to fetch than that.
    o_leaves_turns := room.o_waiting_turns > 0 OR unsettled <> '{}'
        OR cardinality(o_turn_token) < (SELECT count(*) FROM unnest(new_tokens, new_instances) AS n(token, instance_id)
                                         WHERE n.token IS NOT NULL OR n.instance_id <> ALL (joined));
    o_leaves_activities := room.o_waiting_activities > 0 OR p_items.kind && '{7}'::smallint[]
        OR cardinality(o_activity) < coalesce(cardinality(p_activities.item), 0);
END $$;
