//! Queries by name.

/// A query with a name.
pub struct Shipped {
    /// The name.
    pub name: &'static str,
    /// What it shows.
    pub doc: &'static str,
    /// The query.
    pub text: &'static str,
}

/// All of them, by name.
pub static SHIPPED: &[Shipped] = &[
    Shipped {
        name: "busiest-tenants",
        doc: "Tenants that the key may enter, by instances of the last 24 hours.",
        text: "SELECT namespace, tenant, count(*) AS instances,
       sum(status IN ('pending', 'running', 'paused')) AS open,
       sum(status = 'failed') AS failed
FROM all_instances
WHERE created_at >= ago('24h')
GROUP BY namespace, tenant
ORDER BY instances DESC, namespace, tenant
LIMIT 50",
    },
    Shipped {
        name: "failure-rate",
        doc: "Functions and orchestrations of the last 24 hours that failed, with the share of each failure code among \
              all that ended.",
        text: "SELECT name, code, count(*) AS failures, max(total) AS ended,
       round(100.0 * count(*) / max(total), 1) AS percent
FROM (SELECT coalesce(function, orchestration) AS name, status,
             coalesce(failure_code, failure_category) AS code,
             count(*) OVER (PARTITION BY coalesce(function, orchestration)) AS total
      FROM instances
      WHERE created_at >= ago('24h') AND completed_at IS NOT NULL)
WHERE status = 'failed'
GROUP BY name, code
ORDER BY percent DESC, failures DESC, name, code
LIMIT 50",
    },
    Shipped {
        name: "slowest-functions",
        doc: "Functions called in the last 24 hours, the slowest first: mean, 95th percentile and maximum from creation \
              to end.",
        text: "SELECT function, count(*) AS calls, CAST(avg(duration_ms) AS INTEGER) AS mean_ms,
       min(duration_ms) FILTER (WHERE rank >= 0.95) AS p95_ms, max(duration_ms) AS max_ms
FROM (SELECT function, duration_ms,
             cume_dist() OVER (PARTITION BY function ORDER BY duration_ms) AS rank
      FROM instances
      WHERE created_at >= ago('24h') AND function IS NOT NULL AND duration_ms IS NOT NULL)
GROUP BY function
ORDER BY p95_ms DESC, function
LIMIT 50",
    },
    Shipped {
        name: "time-spent",
        doc: "Where instances that were created in the last hour and have ended spent their time: in the queue until \
              their first turn, running functions, waiting for timers and retries, and the rest.",
        // `events` is named once, so that each history is read once; everything else is grouped before it is joined.
        text: "WITH ended AS (
  SELECT id, execution, coalesce(function, orchestration) AS name, created_at, duration_ms
  FROM instances
  WHERE created_at >= ago('1h') AND completed_at IS NOT NULL
), told AS (
  SELECT instance, execution, id, kind, source, 1000.0 * unixepoch(at, 'subsec') AS ms,
         CASE WHEN kind = 'ActivityAttemptFailed' THEN json_extract(data, '$.retry_at_ms') END AS retry_at_ms
  FROM events
  WHERE instance IN (SELECT id FROM instances WHERE created_at >= ago('1h') AND completed_at IS NOT NULL)
), spans AS (
  SELECT e.instance, e.execution,
         sum(CASE WHEN e.kind = 'TimerFired' THEN 0 ELSE e.ms - b.ms END) AS activities,
         sum(CASE WHEN e.kind = 'TimerFired' THEN e.ms - b.ms ELSE 0 END) AS timers
  FROM told e
  JOIN told b ON b.instance = e.instance AND b.execution = e.execution AND b.id = e.source
  WHERE e.kind IN ('ActivityCompleted', 'ActivityFailed', 'TimerFired')
  GROUP BY e.instance, e.execution
), pauses AS (
  SELECT instance, execution, sum(retry_at_ms - ms) AS paused,
         min(CASE WHEN kind = 'OrchestrationStarted' THEN ms END) AS started
  FROM told
  WHERE retry_at_ms IS NOT NULL OR kind = 'OrchestrationStarted'
  GROUP BY instance, execution
), one AS (
  SELECT n.name, n.duration_ms AS total,
         -- Clocks of two nodes, or roundings, may put the start before the creation.
         max(0.0, p.started - 1000.0 * unixepoch(n.created_at, 'subsec')) AS queue,
         coalesce(s.activities, 0) AS activities, coalesce(s.timers, 0) AS timers,
         coalesce(p.paused, 0) AS paused
  FROM ended n
  LEFT JOIN spans s ON s.instance = n.id AND s.execution = n.execution
  LEFT JOIN pauses p ON p.instance = n.id AND p.execution = n.execution
)
SELECT name, count(*) AS instances, CAST(avg(total) AS INTEGER) AS total_ms,
       CAST(round(avg(queue)) AS INTEGER) AS queue_ms,
       CAST(round(avg(activities - paused)) AS INTEGER) AS run_ms,
       CAST(round(avg(timers + paused)) AS INTEGER) AS wait_ms
FROM one
GROUP BY name
ORDER BY total_ms DESC, name
LIMIT 50",
    },
];
