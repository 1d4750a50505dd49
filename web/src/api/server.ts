import { useQuery } from "@tanstack/react-query";
import { type Schemas, api, data } from "./client";
import { useScope } from "./scope";
import { sql } from "./sql";

export type Node = Schemas["Node"];
export type Setting = Schemas["Setting"];
export type TenantRow = { namespace: string; tenant: string; instances: number; open: number; failed: number; last: string };
export type VersionRow = { name: string; version: string; status: string; count: number };

const REFRESH_MS = 10_000;

export function useNodes() {
  return useQuery({ queryKey: ["nodes"], queryFn: () => data(api.GET("/v1/nodes")), refetchInterval: REFRESH_MS });
}

export function useSystem() {
  return useQuery({ queryKey: ["system", "page"], queryFn: () => data(api.GET("/v1/system")), refetchInterval: REFRESH_MS });
}

export function useStoreFigures() {
  return useQuery({ queryKey: ["store"], queryFn: () => data(api.GET("/v1/store")), refetchInterval: REFRESH_MS });
}

export function useArchive() {
  const scope = useScope();
  return useQuery({ queryKey: ["archive", scope], queryFn: () => data(api.GET("/v1/archive")) });
}

export function useSettings() {
  return useQuery({ queryKey: ["settings"], queryFn: () => data(api.GET("/v1/settings")) });
}

/** Tenants that the caller may enter, with what was created in them in the last 24 hours. */
export function useTenants() {
  return useQuery({
    queryKey: ["tenants"],
    queryFn: async () => {
      const answer = await sql(
        `SELECT namespace, tenant, count(*), sum(status IN ('pending', 'running', 'paused')), sum(status = 'failed'), max(created_at)
         FROM all_instances WHERE created_at >= ago('24h') GROUP BY namespace, tenant ORDER BY 3 DESC, namespace, tenant`,
      );
      const rows = answer.rows.map(([namespace, tenant, instances, open, failed, last]): TenantRow => ({
        namespace: String(namespace), tenant: String(tenant), instances: Number(instances), open: Number(open), failed: Number(failed), last: String(last),
      }));
      return { rows, truncated: answer.truncated };
    },
  });
}

/** Open instances of the tenant by the version of their orchestration. */
export function useOpenVersions() {
  const scope = useScope();
  return useQuery({
    queryKey: ["versions", scope],
    queryFn: async () => {
      const answer = await sql(
        `SELECT orchestration, version, status, count(*) FROM instances
         WHERE status IN ('pending', 'running', 'paused') GROUP BY orchestration, version, status ORDER BY orchestration, version, status`,
      );
      return answer.rows.map(([name, version, status, count]): VersionRow => ({ name: String(name), version: String(version ?? ""), status: String(status), count: Number(count) }));
    },
  });
}

export function useOrchestrations() {
  const scope = useScope();
  return useQuery({ queryKey: ["orchestrations", scope], queryFn: () => data(api.GET("/v1/orchestrations", { params: { query: { limit: 200 } } })) });
}

/** What wakes up by itself, soonest first. */
export function useTimers() {
  const scope = useScope();
  return useQuery({ queryKey: ["live", "timers", scope], queryFn: () => data(api.GET("/v1/timers")), refetchInterval: REFRESH_MS });
}
