-- For an archive: trees that have ended, and their deletion if they are still as they were listed.

-- The next ended roots behind a place, each with its descendants, the root first. `o_ended` is false for an instance that has
-- not ended.
CREATE FUNCTION @schema@.ended_trees(p_before_ms bigint, p_after_ms bigint, p_after_id text, p_limit bigint)
RETURNS TABLE (root_id text, root_ended_ms bigint, instance_id text, created_at_ms bigint, revision bigint, ended boolean)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE root AS (
        SELECT i.instance_id, i.completed_at_ms FROM @schema@.instance i
         WHERE i.status IN (3, 4, 5) AND i.parent_id IS NULL
           AND i.completed_at_ms >= coalesce(p_after_ms, -9223372036854775808)
           AND i.completed_at_ms < coalesce(p_before_ms, 9223372036854775807)
           AND (p_after_ms IS NULL OR i.completed_at_ms > p_after_ms OR i.instance_id > p_after_id)
         ORDER BY i.completed_at_ms, i.instance_id LIMIT p_limit
    ), family AS (
        SELECT r.instance_id AS root_id, r.completed_at_ms AS ended_ms, r.instance_id AS id, 0 AS depth FROM root r
        UNION ALL
        SELECT f.root_id, f.ended_ms, i.instance_id, f.depth + 1 FROM family f
          JOIN @schema@.instance i ON i.parent_id = f.id
    )
    SELECT f.root_id, f.ended_ms, i.instance_id, i.created_at_ms, i.revision, i.status IN (3, 4, 5) FROM family f
      JOIN @schema@.instance i ON i.instance_id = f.id
     ORDER BY f.ended_ms, f.root_id, f.depth, i.instance_id
$$;

-- Removes trees of ended instances. A tree in which an instance is gone, has not ended, has changed, or has a child outside
-- the list is passed over. `p_trees` has the number of the tree of each instance.
CREATE FUNCTION @schema@.delete_unchanged(
    p_ids text[], p_created bigint[], p_revisions bigint[], p_trees bigint[],
    OUT o_instances bigint, OUT o_executions bigint, OUT o_events bigint, OUT o_messages bigint
) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    changed bigint[];
    doomed text[];
BEGIN
    PERFORM @schema@.lock_instances(p_ids);
    SELECT coalesce(array_agg(DISTINCT k.tree), '{}') INTO changed
      FROM unnest(p_ids, p_created, p_revisions, p_trees) AS k(id, created, revision, tree)
      LEFT JOIN @schema@.instance i ON i.instance_id = k.id
     WHERE i.instance_id IS NULL OR i.status NOT IN (3, 4, 5) OR i.created_at_ms <> k.created OR i.revision <> k.revision
        OR EXISTS (SELECT 1 FROM @schema@.instance c WHERE c.parent_id = k.id AND c.instance_id <> ALL (p_ids));
    SELECT coalesce(array_agg(DISTINCT k.id), '{}') INTO doomed
      FROM unnest(p_ids, p_trees) AS k(id, tree) WHERE k.tree <> ALL (changed);
    SELECT r.* INTO o_instances, o_executions, o_events, o_messages FROM @schema@.remove_instances(doomed) r;
END $$;
