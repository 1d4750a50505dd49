-- Fetching, and the one call that a process makes: commit what waits, fetch for whoever waits, answer watches.

-- Shows what is due and ends locks that have run out. What another transaction holds is left for the next time.
CREATE FUNCTION @schema@.promote_turns(p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    due text[];
BEGIN
    SELECT array_agg(s.instance_id) INTO due FROM (
        SELECT t.instance_id FROM @schema@.turn t WHERE NOT t.ready AND t.next_at_ms <= p_now
         ORDER BY t.next_at_ms LIMIT 500 FOR UPDATE SKIP LOCKED) s;
    IF due IS NULL THEN RETURN; END IF;
    PERFORM @schema@.count_attempts(due);
    UPDATE @schema@.turn t SET lock_token = NULL, fetched = NULL, fetched_late = NULL
      FROM unnest(due) AS k(instance_id) WHERE t.instance_id = k.instance_id AND t.lock_token IS NOT NULL;
    PERFORM @schema@.settle_turns(p_now, NULL, '{}', '{}', due, NULL, NULL);
END $$;

-- Locks the ready instances with the oldest messages.
CREATE FUNCTION @schema@.fetch_turns(
    p_now bigint, p_max bigint, p_wish @schema@.wish, OUT o_token bigint[], OUT o_instance text[], OUT o_retry boolean
) LANGUAGE plpgsql AS $$
DECLARE
    candidates text[];
BEGIN
    o_token := '{}';
    PERFORM @schema@.promote_turns(p_now);
    -- The head of each pin: what this process cannot replay costs nothing, however much it is.
    WITH RECURSIVE pins AS (
        (SELECT t.pin_key FROM @schema@.turn t WHERE t.ready ORDER BY t.pin_key LIMIT 1)
        UNION ALL
        SELECT (SELECT t.pin_key FROM @schema@.turn t WHERE t.ready AND t.pin_key > pins.pin_key
                 ORDER BY t.pin_key LIMIT 1)
          FROM pins WHERE pins.pin_key IS NOT NULL
    )
    SELECT array_agg(s.instance_id) INTO candidates FROM (
        SELECT c.instance_id FROM pins
         CROSS JOIN LATERAL (SELECT t.instance_id, t.head FROM @schema@.turn t
                              WHERE t.ready AND t.pin_key = pins.pin_key ORDER BY t.head LIMIT p_max) c
         WHERE p_wish.pin_min IS NULL OR pins.pin_key = ''
            OR EXISTS (SELECT 1 FROM unnest(p_wish.pin_min, p_wish.pin_max) AS r(low, high)
                        WHERE pins.pin_key >= r.low AND pins.pin_key <= r.high)
         ORDER BY c.head LIMIT p_max) s;
    -- Locked by key and judged afterwards: with the condition inside, the planner would walk all that is ready.
    SELECT coalesce(array_agg(s.instance_id ORDER BY s.head) FILTER (WHERE s.ready), '{}') INTO o_instance FROM (
        SELECT t.instance_id, t.head, t.ready FROM unnest(candidates) AS k(instance_id)
          JOIN @schema@.turn t ON t.instance_id = k.instance_id FOR UPDATE OF t SKIP LOCKED) s;
    o_retry := cardinality(o_instance) < coalesce(cardinality(candidates), 0);
    IF o_instance = '{}' THEN RETURN; END IF;
    SELECT array_agg(nextval('@schema@.lock_token')) INTO o_token FROM generate_series(1, cardinality(o_instance));
    UPDATE @schema@.turn t
       SET ready = false, lock_token = k.token, next_at_ms = p_now + p_wish.turn_ms,
           fetched = ARRAY(SELECT m.id FROM @schema@.message m
                            WHERE m.instance_id = k.instance_id AND NOT m.late ORDER BY m.id),
           fetched_late = ARRAY(SELECT m.id FROM @schema@.message m
                                 WHERE m.instance_id = k.instance_id AND m.late AND m.visible_at_ms <= p_now ORDER BY m.id)
      FROM unnest(o_instance, o_token) AS k(instance_id, token)
     WHERE t.instance_id = k.instance_id;
END $$;

-- Locks the oldest ready activities.
CREATE FUNCTION @schema@.fetch_activities(
    p_now bigint, p_max bigint, p_wish @schema@.wish, OUT o_activity bigint[], OUT o_token bigint[],
    OUT o_retry boolean
) LANGUAGE plpgsql AS $$
DECLARE
    lanes text[] := p_wish.lanes;
    candidates bigint[];
    free text[];
    held text[];
BEGIN
    o_token := '{}';
    UPDATE @schema@.activity a SET ready = true, lock_token = NULL FROM (
        SELECT b.id FROM @schema@.activity b WHERE NOT b.ready AND b.next_at_ms <= p_now
         ORDER BY b.next_at_ms LIMIT 500 FOR UPDATE SKIP LOCKED) s
     WHERE a.id = s.id;
    IF lanes IS NULL THEN
        WITH RECURSIVE found AS (
            (SELECT a.lane FROM @schema@.activity a WHERE a.ready AND a.session_id IS NULL ORDER BY a.lane LIMIT 1)
            UNION ALL
            SELECT (SELECT a.lane FROM @schema@.activity a WHERE a.ready AND a.session_id IS NULL AND a.lane > found.lane
                     ORDER BY a.lane LIMIT 1)
              FROM found WHERE found.lane IS NOT NULL
        )
        SELECT array_agg(found.lane) INTO lanes FROM found WHERE found.lane IS NOT NULL;
    END IF;
    SELECT coalesce(array_agg(s.id), '{}') INTO candidates FROM (
        SELECT c.id FROM unnest(lanes) AS k(lane)
         CROSS JOIN LATERAL (SELECT a.id FROM @schema@.activity a
                              WHERE a.ready AND a.session_id IS NULL AND a.lane = k.lane ORDER BY a.id LIMIT p_max) c
         ORDER BY c.id LIMIT p_max) s;
    IF p_wish.owner IS NOT NULL THEN
        WITH RECURSIVE named AS (
            (SELECT a.session_id FROM @schema@.activity a WHERE a.session_id IS NOT NULL ORDER BY a.session_id LIMIT 1)
            UNION ALL
            SELECT (SELECT a.session_id FROM @schema@.activity a WHERE a.session_id > named.session_id
                     ORDER BY a.session_id LIMIT 1)
              FROM named WHERE named.session_id IS NOT NULL
        )
        SELECT coalesce(array_agg(s.id), '{}') INTO candidates FROM (
            SELECT c.id FROM unnest(candidates) AS c(id)
            UNION ALL
            SELECT c.id FROM named
              LEFT JOIN @schema@.session s ON s.session_id = named.session_id
             CROSS JOIN LATERAL (SELECT a.id FROM @schema@.activity a
                                  WHERE a.session_id = named.session_id AND a.ready
                                    AND (p_wish.lanes IS NULL OR a.lane = ANY (p_wish.lanes)) ORDER BY a.id LIMIT p_max) c
             WHERE CASE WHEN s.until_ms > p_now THEN s.owner = p_wish.owner ELSE p_wish.claims END
             ORDER BY 1 LIMIT p_max) s;
    END IF;
    SELECT coalesce(array_agg(s.id ORDER BY s.id) FILTER (WHERE s.ready), '{}'),
           array_agg(DISTINCT s.session_id) FILTER (WHERE s.ready AND s.session_id IS NOT NULL)
      INTO o_activity, held FROM (
        SELECT a.id, a.session_id, a.ready FROM unnest(candidates) AS k(id)
          JOIN @schema@.activity a ON a.id = k.id FOR UPDATE OF a SKIP LOCKED) s;
    o_retry := cardinality(o_activity) < cardinality(candidates);
    IF o_activity = '{}' THEN RETURN; END IF;

    -- Sessions: one process at a time claims new ones, and a row that another transaction holds is not waited for.
    IF held IS NOT NULL THEN
        SELECT array_agg(k.session_id) INTO free FROM unnest(held) AS k(session_id)
         WHERE NOT EXISTS (SELECT 1 FROM @schema@.session s
                            WHERE s.session_id = k.session_id AND s.until_ms > p_now AND s.owner = p_wish.owner);
        IF free IS NOT NULL AND pg_try_advisory_xact_lock(hashtext('segno claims in @schema@')) THEN
            WITH mine AS (
                SELECT s.session_id FROM unnest(free) AS k(session_id)
                  JOIN @schema@.session s ON s.session_id = k.session_id
                 WHERE s.until_ms <= p_now FOR UPDATE OF s SKIP LOCKED)
            UPDATE @schema@.session s SET owner = p_wish.owner, until_ms = p_now + p_wish.session_ms FROM mine
             WHERE s.session_id = mine.session_id;
            INSERT INTO @schema@.session (session_id, owner, until_ms, last_activity_ms)
            SELECT k.session_id, p_wish.owner, p_now + p_wish.session_ms, p_now FROM unnest(free) AS k(session_id)
            ON CONFLICT (session_id) DO NOTHING;
        END IF;
        WITH mine AS (
            SELECT s.session_id FROM unnest(held) AS k(session_id)
              JOIN @schema@.session s ON s.session_id = k.session_id
             WHERE s.owner = p_wish.owner AND s.until_ms > p_now AND s.last_activity_ms < p_now FOR UPDATE OF s SKIP LOCKED)
        UPDATE @schema@.session s SET last_activity_ms = p_now FROM mine WHERE s.session_id = mine.session_id;
        SELECT coalesce(array_agg(a.id ORDER BY a.id), '{}') INTO o_activity
          FROM unnest(o_activity) AS k(id) JOIN @schema@.activity a ON a.id = k.id
          LEFT JOIN @schema@.session s ON s.session_id = a.session_id
         WHERE a.session_id IS NULL OR (s.owner = p_wish.owner AND s.until_ms > p_now);
        o_retry := o_retry OR cardinality(o_activity) < cardinality(candidates);
        IF o_activity = '{}' THEN RETURN; END IF;
    END IF;

    WITH taken AS (
        UPDATE @schema@.activity a
           SET ready = false, lock_token = nextval('@schema@.lock_token'), next_at_ms = p_now + p_wish.activity_ms,
               attempts = a.attempts + 1
          FROM unnest(o_activity) AS k(id) WHERE a.id = k.id RETURNING a.lock_token
    )
    SELECT array_agg(t.lock_token) INTO o_token FROM taken t;
END $$;

-- Takes back locks whose answer never arrived, as if they had not been taken.
CREATE FUNCTION @schema@.give_back(p_now bigint, p_turns bigint[], p_activities bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    n integer := cardinality(p_turns) + cardinality(p_activities);
BEGIN
    IF n = 0 THEN RETURN; END IF;
    PERFORM @schema@.commit_items(p_now,
        ROW(array_fill(6::smallint, ARRAY[cardinality(p_turns)])
                || array_fill(7::smallint, ARRAY[cardinality(p_activities)]),
            p_turns || p_activities, array_fill(NULL::text, ARRAY[n]), array_fill(NULL::bigint, ARRAY[n]),
            array_fill(0::bigint, ARRAY[n]), array_fill(0::bigint, ARRAY[n]), array_fill(true, ARRAY[n])
           )::@schema@.item_list,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
END $$;

-- One call of a process: commits, then fetches, then answers watches. Rows have a section and reuse columns:
-- 0 the time, whether this was a repetition, the next times of both queues, and which fetch should be tried again
-- 1 outcomes and record versions; 3 a locked instance; 4 one of its messages; 5 a locked activity; 6 an instance
CREATE FUNCTION @schema@.exchange(
    p_writer bigint, p_exchange bigint, p_items @schema@.item_list, p_turns @schema@.turn_list,
    p_labels @schema@.label_list, p_events @schema@.event_list, p_messages @schema@.message_list,
    p_activities @schema@.activity_list, p_cancels @schema@.cancel_list, p_timers @schema@.timer_list,
    p_records @schema@.record_list, p_wish @schema@.wish, p_watched text[]
) RETURNS TABLE (section smallint, k bigint, a bigint, b bigint, c bigint, e bigint, s text, t text, u text, v text,
                 w text, d bytea, f bytea, l bigint[], x text[]) LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off SET random_page_cost = 1.1 SET jit = off AS $$
#variable_conflict use_column
<<here>>
DECLARE
    now_at bigint := @schema@.now_ms();
    last record;
    done record;
    fetched record;
    outcomes smallint[] := '{}';
    versions bigint[] := '{}';
    turn_tokens bigint[] := '{}';
    turn_instances text[] := '{}';
    activities bigint[] := '{}';
    activity_tokens bigint[] := '{}';
    leaves_turns boolean := true;
    leaves_activities boolean := true;
    has_items boolean := p_items.kind <> '{}';
    repeated bigint := 0;
    retry bigint := 0;
    next_turn bigint;
    next_activity bigint;
BEGIN
    IF has_items THEN
        SELECT r.exchange_no, r.outcomes, r.versions, r.turn_tokens, r.activity_tokens INTO last
          FROM @schema@.writer r WHERE r.writer_id = p_writer FOR UPDATE;
    ELSE
        SELECT r.exchange_no, r.outcomes, r.versions, r.turn_tokens, r.activity_tokens INTO last
          FROM @schema@.writer r WHERE r.writer_id = p_writer;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the writer % is not known', p_writer USING ERRCODE = 'SG001';
    END IF;
    -- A number is that of the exchange times 65536 plus that of the try. An older one is a call that was given up and
    -- arrives after the one that took its place.
    IF last.exchange_no >= p_exchange THEN
        RAISE EXCEPTION 'exchange % of writer % comes after %', p_exchange, p_writer, last.exchange_no
            USING ERRCODE = 'SG002';
    END IF;
    IF last.exchange_no / 65536 = p_exchange / 65536 THEN
        repeated := 1;
        outcomes := last.outcomes;
        versions := last.versions;
        PERFORM @schema@.give_back(now_at, last.turn_tokens, last.activity_tokens);
        UPDATE @schema@.writer r SET exchange_no = p_exchange, turn_tokens = '{}', activity_tokens = '{}'
         WHERE r.writer_id = p_writer;
        retry := 3;
    ELSE
        IF has_items THEN
            SELECT * INTO done FROM @schema@.commit_items(now_at, p_items, p_turns, p_labels, p_events, p_messages,
                p_activities, p_cancels, p_timers, p_records, p_wish);
            outcomes := done.o_outcome;
            versions := done.o_version;
            turn_tokens := done.o_turn_token;
            turn_instances := done.o_turn_instance;
            activities := done.o_activity;
            activity_tokens := done.o_activity_token;
            leaves_turns := done.o_leaves_turns;
            leaves_activities := done.o_leaves_activities;
        END IF;
        IF leaves_turns AND p_wish.turns > cardinality(turn_tokens) THEN
            SELECT * INTO fetched FROM @schema@.fetch_turns(now_at, p_wish.turns - cardinality(turn_tokens), p_wish);
            turn_tokens := turn_tokens || fetched.o_token;
            turn_instances := turn_instances || fetched.o_instance;
            IF fetched.o_retry THEN retry := retry + 1; END IF;
        END IF;
        IF leaves_activities AND p_wish.activities > cardinality(activities) THEN
            SELECT * INTO fetched
              FROM @schema@.fetch_activities(now_at, p_wish.activities - cardinality(activities), p_wish);
            activities := activities || fetched.o_activity;
            activity_tokens := activity_tokens || fetched.o_token;
            IF fetched.o_retry THEN retry := retry + 2; END IF;
        END IF;
        IF has_items THEN
            UPDATE @schema@.writer r
               SET exchange_no = p_exchange, at_ms = now_at, outcomes = here.outcomes, versions = here.versions,
                   turn_tokens = here.turn_tokens, activity_tokens = here.activity_tokens,
                   executions = r.executions + done.o_executions, events = r.events + done.o_events,
                   instances = ARRAY[r.instances[1] + done.o_instances[1], r.instances[2] + done.o_instances[2],
                       r.instances[3] + done.o_instances[3], r.instances[4] + done.o_instances[4],
                       r.instances[5] + done.o_instances[5], r.instances[6] + done.o_instances[6],
                       r.instances[7] + done.o_instances[7]]
             WHERE r.writer_id = p_writer;
        ELSIF turn_tokens <> '{}' OR activities <> '{}' THEN
            UPDATE @schema@.writer r
               SET exchange_no = p_exchange, at_ms = now_at, outcomes = '{}', versions = '{}',
                   turn_tokens = here.turn_tokens, activity_tokens = here.activity_tokens
             WHERE r.writer_id = p_writer;
        END IF;
    END IF;

    IF p_wish.turns > 0 THEN
        SELECT q.next_at_ms INTO next_turn FROM @schema@.turn q WHERE NOT q.ready ORDER BY q.next_at_ms LIMIT 1;
    END IF;
    IF p_wish.activities > 0 THEN
        SELECT q.next_at_ms INTO next_activity FROM @schema@.activity q WHERE NOT q.ready ORDER BY q.next_at_ms LIMIT 1;
        IF p_wish.owner IS NOT NULL THEN
            next_activity := least(next_activity, (SELECT q.until_ms FROM @schema@.session q WHERE q.until_ms > now_at
                                                    ORDER BY q.until_ms LIMIT 1));
        END IF;
    END IF;
    section := 0; k := now_at; a := repeated; b := next_turn; c := next_activity; e := retry;
    RETURN NEXT;
    section := 1; l := outcomes::bigint[] || versions;
    RETURN NEXT;

    IF turn_tokens <> '{}' THEN
        RETURN QUERY
        SELECT 3::smallint, q.token, coalesce(i.execution_id, 1), coalesce(i.last_event_id, 0), i.incarnation,
               i.status::bigint, q.instance_id, i.name, i.version, NULL::text, NULL::text, NULL::bytea, NULL::bytea,
               NULL::bigint[], NULL::text[]
          FROM unnest(turn_tokens, turn_instances) AS q(token, instance_id)
          LEFT JOIN @schema@.instance i ON i.instance_id = q.instance_id
         ORDER BY q.token;
        RETURN QUERY
        SELECT 4::smallint, q.token, m.id, m.attempts + 1::bigint, NULL::bigint, NULL::bigint, NULL::text, NULL::text,
               NULL::text, NULL::text, NULL::text, m.body, NULL::bytea, NULL::bigint[], NULL::text[]
          FROM unnest(turn_tokens, turn_instances) AS q(token, instance_id)
         CROSS JOIN LATERAL (
               SELECT g.id, g.attempts, g.body FROM @schema@.message g WHERE g.instance_id = q.instance_id AND NOT g.late
               UNION ALL
               SELECT g.id, g.attempts, g.body FROM @schema@.message g
                WHERE g.instance_id = q.instance_id AND g.late AND g.visible_at_ms <= now_at) m
         ORDER BY q.token, m.id;
    END IF;
    IF activities <> '{}' THEN
        RETURN QUERY
        SELECT 5::smallint, n.lock_token, n.execution_id, n.activity_id, n.attempts::bigint, n.visible_at_ms, n.instance_id,
               n.session_id, n.lane, NULL::text, NULL::text, n.body, NULL::bytea, ARRAY[n.id], NULL::text[]
          FROM unnest(activities) AS q(id) JOIN @schema@.activity n ON n.id = q.id
         ORDER BY n.id;
    END IF;
    IF p_watched <> '{}' THEN
        RETURN QUERY SELECT 6::smallint, i.* FROM unnest(p_watched) AS q(instance_id)
         CROSS JOIN LATERAL @schema@.instance_info(q.instance_id) i;
    END IF;
END $$;

-- What is known of an instance, in the columns of an exchange.
CREATE FUNCTION @schema@.instance_info(p_instance text)
RETURNS TABLE (k bigint, a bigint, b bigint, c bigint, e bigint, s text, t text, u text, v text, w text, d bytea,
               f bytea, l bigint[], x text[]) LANGUAGE sql STABLE AS $$
    SELECT i.execution_id, i.status::bigint, i.created_at_ms, i.updated_at_ms, i.completed_at_ms, i.instance_id, i.name,
           i.version, i.parent_id, i.pinned_version, i.output, i.custom_status,
           ARRAY[i.custom_status_version, i.revision], i.labels
      FROM @schema@.instance i WHERE i.instance_id = p_instance
$$;
