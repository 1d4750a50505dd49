-- The next execution of an instance that exists: a restart, or a replacement of what runs, in one call.
--
-- Outcomes: 0 done, now or by an earlier call, 1 there is no such instance, 2 another execution is the current one,
-- 3 it has not ended. With 2 and 3, `o_execution` and `o_status` are what was found.
CREATE FUNCTION @schema@.begin_next_execution(
    p_instance text, p_after bigint, p_incarnation bigint, p_end_status smallint, p_end_output bytea, p_name text,
    p_version text, p_keys text[], p_values text[], p_visible bigint, p_body bytea,
    OUT o_outcome smallint, OUT o_execution bigint, OUT o_status smallint
) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    now_at bigint;
    found_row @schema@.instance;
    has_start boolean;
    counts bigint[] := '{0,0,0,0,0,0,0}';
    is_new boolean;
BEGIN
    -- What every commit for the instance takes first; made if it is not there, so that none is under way.
    INSERT INTO @schema@.turn (instance_id, pin_key, ready, head, next_at_ms)
    VALUES (p_instance, '', false, 0, 9223372036854775807) ON CONFLICT (instance_id) DO NOTHING;
    PERFORM @schema@.lock_instances(ARRAY[p_instance]);
    now_at := @schema@.now_ms();
    SELECT t.start_id IS NOT NULL INTO has_start FROM @schema@.turn t WHERE t.instance_id = p_instance;
    SELECT * INTO found_row FROM @schema@.instance i WHERE i.instance_id = p_instance;
    is_new := NOT FOUND;
    o_execution := coalesce(found_row.execution_id, 1);
    o_status := coalesce(found_row.status, 0);
    o_outcome := CASE
        WHEN found_row.name IS NULL AND has_start IS NOT TRUE THEN 1
        WHEN found_row.incarnation = p_incarnation THEN 0
        WHEN o_execution <> p_after THEN 2
        WHEN o_status NOT IN (3, 4, 5) AND p_end_status IS NULL THEN 3 END;
    IF o_outcome IS NOT NULL THEN
        PERFORM @schema@.settle_turns(now_at, NULL, '{}', '{}', ARRAY[p_instance], NULL, NULL);
        RETURN;
    END IF;
    o_outcome := 0;

    DELETE FROM @schema@.message m WHERE m.instance_id = p_instance AND m.timer_id IS NOT NULL;
    DELETE FROM @schema@.activity a WHERE a.instance_id = p_instance;
    UPDATE @schema@.turn t SET lock_token = NULL, fetched = NULL, fetched_late = NULL, ready = false, not_before_ms = 0
     WHERE t.instance_id = p_instance;
    IF is_new THEN
        INSERT INTO @schema@.instance (instance_id, created_at_ms, updated_at_ms, revision, execution_id, status,
                                       started_at_ms, last_event_id)
        VALUES (p_instance, now_at, now_at, 0, 1, 0, now_at, 0) RETURNING * INTO found_row;
    ELSE
        counts[found_row.status + 1] := -1;
    END IF;
    counts[1] := counts[1] + 1;
    -- One that continued as new has ended already.
    INSERT INTO @schema@.past_execution
    VALUES (p_instance, found_row.execution_id,
            CASE WHEN found_row.status >= 3 THEN found_row.status ELSE p_end_status END, found_row.started_at_ms,
            CASE WHEN found_row.status >= 3 THEN found_row.completed_at_ms ELSE now_at END, found_row.incarnation,
            found_row.pinned_version, CASE WHEN found_row.status >= 3 THEN found_row.output ELSE p_end_output END);
    UPDATE @schema@.instance i
       SET updated_at_ms = now_at, revision = i.revision + 1, name = p_name, version = p_version,
           custom_status_version = i.custom_status_version + 1, custom_status = NULL,
           labels = ARRAY(SELECT unnest(ARRAY[y.key, y.value]) FROM unnest(p_keys, p_values) AS y(key, value)),
           execution_id = p_after + 1, status = 0, started_at_ms = now_at, completed_at_ms = NULL, last_event_id = 0,
           incarnation = p_incarnation, pinned_version = NULL, pin_key = '', output = NULL
     WHERE i.instance_id = p_instance;
    DELETE FROM @schema@.label l WHERE l.instance_id = p_instance;
    INSERT INTO @schema@.label (key, value, created_at_ms, instance_id)
    SELECT y.key, y.value, found_row.created_at_ms, p_instance FROM unnest(p_keys, p_values) AS y(key, value);
    UPDATE @schema@.writer w
       SET executions = w.executions + CASE WHEN is_new THEN 2 ELSE 1 END,
           instances = ARRAY[w.instances[1] + counts[1], w.instances[2] + counts[2], w.instances[3] + counts[3],
               w.instances[4] + counts[4], w.instances[5] + counts[5], w.instances[6] + counts[6],
               w.instances[7] + counts[7]]
     WHERE w.writer_id = 0;
    -- The start comes behind everything that waits; this also brings the row of the queue in line.
    PERFORM @schema@.commit_items(now_at,
        ROW('{3}'::smallint[], '{NULL}'::bigint[], '{NULL}'::text[], '{NULL}'::bigint[], '{NULL}'::bigint[],
            '{NULL}'::bigint[], '{f}'::boolean[])::@schema@.item_list,
        NULL, NULL, NULL,
        ROW('{1}'::integer[], ARRAY[p_instance], ARRAY[p_visible], '{NULL}'::bigint[], '{NULL}'::bigint[],
            '{NULL}'::bigint[], '{0}'::smallint[], ARRAY[p_body])::@schema@.message_list,
        NULL, NULL, NULL, NULL, NULL);
END $$;
