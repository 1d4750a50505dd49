-- What is not due yet, for each queue by itself, behind the columns that were there.
CREATE OR REPLACE VIEW @schema@.queue_depths AS
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
               + (SELECT count(*) FROM worker WHERE place = 'locked') AS locked,
           (SELECT count(*) FROM orchestrator WHERE place = 'delayed') AS orchestrator_delayed,
           (SELECT count(*) FROM worker WHERE place = 'delayed') AS worker_delayed;
