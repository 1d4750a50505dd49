-- Due records by id prefix. The folder of an id is the text up to and including its last slash: what is due in a folder is
-- one range of the index, in the order of the answer.

CREATE FUNCTION @schema@.folder(p_id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(p_id, length(p_id) - position('/' IN reverse(p_id) || '/') + 1)
$$;

CREATE INDEX record_due_folder ON @schema@.record (kind, (@schema@.folder(id) COLLATE "C"), due_at_ms, id)
    WHERE due_at_ms IS NOT NULL;
