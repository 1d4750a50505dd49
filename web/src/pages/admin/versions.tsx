import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, data } from "../../api/client";
import { useMay } from "../../api/me";
import { type VersionRow, useOpenVersions, useOrchestrations, useSystem } from "../../api/server";
import { plural } from "../../lib/format";
import { localZone } from "../../lib/time";
import { ListMenu } from "../../ui/list-menu";
import { Facts, Panel } from "../../ui/page";
import { RowsTable } from "../../ui/rows-table";
import { Badge } from "../../ui/status";
import { Unready } from "../../ui/states";

/** Versions: of the server, of its time zones, and of orchestrations with what still runs of each. */
export function Versions() {
  const seesServer = useMay("system");
  const mayOperate = useMay("operate");
  const orchestrations = useOrchestrations();
  const open = useOpenVersions();
  const zones = useQuery({
    queryKey: ["system", "zones"],
    enabled: mayOperate,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => (await data(api.POST("/v1/recurring/preview", { params: { query: { count: 1 } }, body: { every: "1h" } }))).zones,
  });
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-5 p-5">
      <Panel title="Server">
        <div className="p-4">
          <Facts facts={[["Version", seesServer && <ServerVersion key="version" />], ["Time zone database", zones.data], ["Zone of this browser", localZone]]} />
        </div>
      </Panel>
      <Panel title="Orchestrations" aside={<ListMenu name="orchestrations" rows={() => orchestrations.data?.orchestrations ?? []} command={["sql", "SELECT orchestration, version, status, count(*) FROM instances WHERE status IN ('pending', 'running', 'paused') GROUP BY orchestration, version, status"]} path="/v1/orchestrations" />}>
        {!orchestrations.data ? <Unready query={orchestrations} /> : orchestrations.data.orchestrations.length === 0 ? <p className="p-4 text-dim">No node has an orchestration.</p> : (
          <RowsTable label="Orchestrations" names={["Orchestration", "Versions on nodes", "Open instances by version"]}>
            {orchestrations.data.orchestrations.map(({ name, versions }) => (
              <tr key={name} className="border-t border-line align-top">
                <td className="py-2 pr-4 font-medium"><Link to="/instances" search={{ q: `orchestration:${name} status:pending,running,paused` }} className="hover:underline">{name}</Link></td>
                <td className="py-2 pr-4"><span className="flex flex-wrap gap-1">{versions.map((version) => <Badge key={version}>{version}</Badge>)}</span></td>
                <td className="py-2">{open.data ? <Open rows={open.data.filter((row) => row.name === name)} versions={versions} /> : <span className="text-faint">{open.error ? "not known" : "…"}</span>}</td>
              </tr>
            ))}
          </RowsTable>
        )}
      </Panel>
    </div>
  );
}

function ServerVersion() {
  const system = useSystem().data;
  return system ? <>{system.version} <span className="text-dim">on {system.node}</span></> : null;
}

/** What still runs of each version; one that no node has cannot go on. */
function Open({ rows, versions }: { rows: VersionRow[]; versions: string[] }) {
  if (rows.length === 0) return <span className="text-faint">none</span>;
  return (
    <ul className="flex flex-col gap-1">
      {[...new Set(rows.map((row) => row.version))].map((version) => {
        const own = rows.filter((row) => row.version === version);
        return (
          <li key={version} className="flex flex-wrap items-center gap-2">
            {version === "" ? <span className="text-faint">not begun</span> : <Badge tone={versions.includes(version) ? "mute" : "warn"} title={versions.includes(version) ? undefined : "No node has this version"}>{version}</Badge>}
            <span className="text-dim">{own.map((row) => `${plural(row.count, row.status, row.status)}`).join(", ")}</span>
          </li>
        );
      })}
    </ul>
  );
}
