-- Lanes that are left out by how they begin: in the lanes of a wish, `~` stands before the beginning
-- of lanes that are left out of those that `*` names.

-- Whether a wish that names lanes takes one.
CREATE OR REPLACE FUNCTION @schema@.is_lane_wanted(p_lane text, p_lanes text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_lane = ANY (p_lanes)
        OR (EXISTS (SELECT 1 FROM unnest(p_lanes) AS k(lane)
                     WHERE starts_with(k.lane, '*') AND starts_with(p_lane, substr(k.lane, 2)))
            AND NOT '!' || p_lane = ANY (p_lanes)
            AND NOT EXISTS (SELECT 1 FROM unnest(p_lanes) AS k(lane)
                             WHERE starts_with(k.lane, '~') AND starts_with(p_lane, substr(k.lane, 2))))
$$;

-- Locks the oldest ready activities.
CREATE OR REPLACE FUNCTION @schema@.fetch_activities(
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
    ELSIF EXISTS (SELECT 1 FROM unnest(lanes) AS k(lane) WHERE starts_with(k.lane, '*')) THEN
        -- One step per lane in use, from each prefix to the first lane that does not begin with it.
        WITH RECURSIVE wanted AS (
            SELECT substr(k.lane, 2) COLLATE "C" AS prefix FROM unnest(p_wish.lanes) AS k(lane) WHERE starts_with(k.lane, '*')
        ), found AS (
            SELECT w.prefix, (SELECT a.lane FROM @schema@.activity a
                               WHERE a.ready AND a.session_id IS NULL AND a.lane >= w.prefix ORDER BY a.lane LIMIT 1) AS lane
              FROM wanted w
            UNION ALL
            SELECT found.prefix, (SELECT a.lane FROM @schema@.activity a
                                   WHERE a.ready AND a.session_id IS NULL AND a.lane > found.lane ORDER BY a.lane LIMIT 1)
              FROM found WHERE starts_with(found.lane, found.prefix)
        )
        SELECT array_agg(DISTINCT found.lane) INTO lanes FROM found
         WHERE starts_with(found.lane, found.prefix) AND @schema@.is_lane_wanted(found.lane, p_wish.lanes);
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
                                    AND (p_wish.lanes IS NULL OR @schema@.is_lane_wanted(a.lane, p_wish.lanes)) ORDER BY a.id LIMIT p_max) c
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

    -- Sessions: one process at a time claims new ones, and a row that another transaction holds is
    -- not waited for.
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
