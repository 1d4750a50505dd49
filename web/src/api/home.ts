import { useQuery } from "@tanstack/react-query";
import { type Schemas, api, data, request } from "./client";
import { ApiError } from "./errors";
import { useScope } from "./scope";

export type Problem = {
  kind: string;
  severity: "error" | "warning";
  count: number;
  more?: boolean;
  text: string;
  oldest?: string;
  link: { page: string; filter: Record<string, string> };
  items?: { name: string; count: number }[];
};
export type Problems = { at: string; problems: Problem[]; checked: string[]; unknown: { kind: string; reason: string }[] };
export type Point = { at: string; started: number; completed: number; failed: number; cancelled: number; late_p50_ms?: number | null; late_p99_ms?: number | null };
export type Depth = { at: string; orchestrator: number; worker: number; delayed: number; locked: number };
export type Rate = { name: string; completed: number; failed: number; p50_ms?: number; p99_ms?: number };
export type Stats = { points: Point[]; functions: Rate[]; orchestrations?: Rate[]; queues?: Depth[]; failures?: { code: string; count: number }[]; incomplete?: boolean };

const REFRESH_MS = 10_000;

/** What is wrong now: as the server has it, or gathered from listings of a server that does not. */
export function useProblems() {
  const scope = useScope();
  return useQuery({
    queryKey: ["live", "problems", scope],
    refetchInterval: REFRESH_MS,
    staleTime: 2_000,
    queryFn: async () => {
      try {
        return await request<Problems>("/v1/problems");
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return gathered();
        throw error;
      }
    },
  });
}

export function useStats() {
  const scope = useScope();
  return useQuery({
    queryKey: ["live", "stats", scope],
    refetchInterval: REFRESH_MS,
    staleTime: 2_000,
    queryFn: async () => {
      try {
        return await request<Stats>("/v1/stats", { query: { step: 60 } });
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return statsBySql();
        throw error;
      }
    },
  });
}

async function sql(query: string): Promise<Schemas["SqlAnswer"]> {
  return (await data(api.POST("/v1/sql", { body: { query } }))) as Schemas["SqlAnswer"];
}

async function gathered(): Promise<Problems> {
  const [failed, paused, dead, pools, functions, waiting] = await Promise.all([
    sql("SELECT coalesce(failure_code, failure_category) AS code, count(*), min(completed_at) FROM instances WHERE status = 'failed' AND created_at >= ago('1h') GROUP BY 1 ORDER BY 2 DESC"),
    sql("SELECT count(*), min(updated_at) FROM instances WHERE status = 'paused'"),
    data(api.GET("/v1/dead-letters", { params: { query: { limit: 100 } } })),
    data(api.GET("/v1/workers", { params: { query: { limit: 1000 } } })),
    data(api.GET("/v1/functions", { params: { query: { limit: 1000 } } })),
    sql("SELECT function, count(*), min(created_at) FROM instances WHERE status = 'running' AND function IS NOT NULL GROUP BY 1"),
  ]);
  const problems: Problem[] = [];
  const items = failed.rows.map(([name, count]) => ({ name: String(name), count: Number(count) }));
  if (items.length > 0) {
    problems.push({
      kind: "failed_recently", severity: "error", count: items.reduce((sum, item) => sum + item.count, 0), text: "failed in the last hour",
      link: { page: "instances", filter: { status: "failed", started: "<1h" } }, items,
    });
  }
  const served = new Set(pools.workers.flatMap((worker) => worker.functions));
  const remote = new Set(functions.functions.filter((each) => (each.declaration as { executor?: string }).executor === "remote").map((each) => each.name));
  const orphans = waiting.rows.filter(([name]) => remote.has(String(name)) && !served.has(String(name)));
  if (orphans.length > 0) {
    problems.push({
      kind: "functions_without_worker", severity: "error", count: orphans.reduce((sum, [, count]) => sum + Number(count), 0), text: "calls wait for a function that no worker serves",
      link: { page: "workers", filter: {} }, items: orphans.map(([name, count]) => ({ name: String(name), count: Number(count) })),
    });
  }
  if (dead.dead_letters.length > 0) {
    problems.push({ kind: "dead_letters", severity: "error", count: dead.dead_letters.length, more: Boolean(dead.next_cursor), text: "dead letters", link: { page: "dead-letters", filter: {} } });
  }
  const held = Number(paused.rows[0]?.[0] ?? 0);
  if (held > 0) {
    problems.push({ kind: "paused", severity: "warning", count: held, text: "instances are paused", oldest: String(paused.rows[0]?.[1] ?? ""), link: { page: "instances", filter: { status: "paused" } } });
  }
  return { at: new Date().toISOString(), problems, checked: ["failed_recently", "functions_without_worker", "dead_letters", "paused"], unknown: [] };
}

async function statsBySql(): Promise<Stats> {
  const [points, rates] = await Promise.all([
    sql("SELECT substr(created_at, 1, 16) AS minute, count(*), sum(status = 'completed'), sum(status = 'failed'), sum(status = 'cancelled') FROM instances WHERE created_at >= ago('1h') GROUP BY 1 ORDER BY 1"),
    sql(
      `SELECT name, sum(status = 'completed'), sum(status = 'failed'), min(duration_ms) FILTER (WHERE rank >= 0.5), min(duration_ms) FILTER (WHERE rank >= 0.99)
       FROM (SELECT coalesce(function, orchestration) AS name, status, duration_ms,
                    cume_dist() OVER (PARTITION BY coalesce(function, orchestration) ORDER BY duration_ms) AS rank
             FROM instances WHERE created_at >= ago('1h') AND completed_at IS NOT NULL)
       GROUP BY name ORDER BY 2 DESC LIMIT 20`,
    ),
  ]);
  const byMinute = new Map(points.rows.map((row) => [String(row[0]), row]));
  const now = Math.floor(Date.now() / 60_000) * 60_000;
  return {
    points: Array.from({ length: 60 }, (_, index) => {
      const at = new Date(now - (59 - index) * 60_000).toISOString();
      const row = byMinute.get(at.slice(0, 16));
      return { at, started: Number(row?.[1] ?? 0), completed: Number(row?.[2] ?? 0), failed: Number(row?.[3] ?? 0), cancelled: Number(row?.[4] ?? 0) };
    }),
    functions: rates.rows.map((row) => ({
      name: String(row[0]), completed: Number(row[1]), failed: Number(row[2]),
      p50_ms: row[3] === null ? undefined : Number(row[3]), p99_ms: row[4] === null ? undefined : Number(row[4]),
    })),
  };
}
