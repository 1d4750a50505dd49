-- A record that must be absent: the row of one that has expired makes room, and no other. Between the check and the deletion
-- another commit could have made the record; it was deleted with the expired ones, so that both commits had claimed it. That
-- holds for deletions too: one that expects no record deletes none. In the end every expectation of absence is compared with
-- the rows as they are then, also with rows that are not there (any more).
CREATE OR REPLACE FUNCTION @schema@.store_records(
    p_now bigint, p_outcome smallint[], p_records @schema@.record_list
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    versions bigint[];
BEGIN
    SELECT array_agg(CASE WHEN x.gone OR p_outcome[x.item] <> 0 THEN 0 ELSE nextval('@schema@.record_version') END)
      INTO versions FROM unnest(p_records.item, p_records.gone) AS x(item, gone);
    -- An expired record that must be absent is here still. What was found otherwise is locked since it was checked.
    DELETE FROM @schema@.record r
     USING unnest(p_records.item, p_records.kind, p_records.id, p_records.expect, p_records.gone)
           AS x(item, kind, id, expect, gone)
     WHERE CASE x.expect WHEN 1 THEN r.expires_at_ms <= p_now ELSE x.gone END AND p_outcome[x.item] = 0
       AND r.kind = x.kind AND r.id = x.id;
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
    -- Another commit made the record that was absent when it was checked, and may have deleted it again since: the caller
    -- tries the whole call again.
    IF p_records.expect && '{1}'::smallint[] AND EXISTS (
        SELECT 1 FROM unnest(p_records.item, p_records.kind, p_records.id, p_records.expect, p_records.gone, versions)
               AS x(item, kind, id, expect, gone, new_version)
          LEFT JOIN @schema@.record r ON r.kind = x.kind AND r.id = x.id
         WHERE x.expect = 1 AND p_outcome[x.item] = 0
           AND r.version IS DISTINCT FROM CASE WHEN NOT x.gone THEN x.new_version END) THEN
        RAISE EXCEPTION 'a record was written by another commit meanwhile' USING ERRCODE = '40001';
    END IF;
    RETURN versions;
END $$;
