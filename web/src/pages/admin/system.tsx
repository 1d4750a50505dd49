import { useQuery } from "@tanstack/react-query";
import { api, data } from "../../api/client";
import { count } from "../../lib/format";
import { localZone } from "../../lib/time";
import { Facts, Panel } from "../../ui/page";
import { Badge } from "../../ui/status";
import { Unready } from "../../ui/states";

/** The node that answers, what it runs, and how much is stored. */
export function System() {
  const query = useQuery({ queryKey: ["system", "page"], queryFn: () => data(api.GET("/v1/system")), refetchInterval: 10_000 });
  const zones = useQuery({
    queryKey: ["system", "zones"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => (await data(api.POST("/v1/recurring/preview", { params: { query: { count: 1 } }, body: { every: "1h" } }))).zones,
  });
  const system = query.data;
  if (!system) return <Unready query={query} />;
  return (
    <div className="mx-auto grid max-w-5xl gap-5 p-5 lg:grid-cols-2">
      <Panel title="Node">
        <div className="p-4">
          <Facts facts={[
            ["Version", system.version],
            ["Node", <code key="node" className="font-mono text-xs break-all">{system.node}</code>],
            ["Roles", <span key="roles" className="flex gap-1">{system.roles.map((role) => <Badge key={role}>{role}</Badge>)}</span>],
            ["Store", system.store],
            ["Time zone database", zones.data],
            ["Zone of this browser", localZone],
          ]} />
        </div>
      </Panel>
      <Panel title="Stored">
        <div className="p-4"><Facts facts={Object.entries(system.counts).map(([name, value]): [string, React.ReactNode] => [name, <span key={name} className="tabular-nums">{count(value)}</span>])} /></div>
      </Panel>
      <Panel title="Orchestrations" className="lg:col-span-2">
        <div className="p-4"><Facts facts={Object.entries(system.orchestrations).map(([name, versions]): [string, React.ReactNode] => [name, versions.join(", ")])} /></div>
      </Panel>
    </div>
  );
}
