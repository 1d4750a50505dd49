import { useQuery } from "@tanstack/react-query";
import { api, data, type Schemas } from "../../api/client";
import { useMay } from "../../api/me";
import { usePools, useWorkers } from "../../api/workers";
import { cli, curl } from "../../lib/command";
import { count } from "../../lib/format";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Figures } from "../../ui/figures";
import { ListMenu } from "../../ui/list-menu";
import { Page, Panel } from "../../ui/page";
import { RowsTable } from "../../ui/rows-table";
import { Badge, Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Time } from "../../ui/time";

/** Who takes calls, and what waits for them. */
export function WorkersPage() {
  const workers = useWorkers();
  const pools = usePools();
  return (
    <Page title="Workers and queues">
      <div className="mx-auto flex max-w-6xl flex-col gap-5 p-5">
        <Depths />
        <Panel title="Pools" aside={<ListMenu name="pools" rows={() => pools.rows} command={["pool", "list"]} path="/v1/pools" />}>
          {!pools.data ? <Unready query={pools} /> : (
            <RowsTable names={["Pool", "State", "Workers", "In flight", "Rate", "Functions", "Last seen", ""]}>
              {pools.rows.map((pool) => <PoolRow key={pool.name} pool={pool} />)}
            </RowsTable>
          )}
          {pools.data && pools.rows.length === 0 && <p className="p-4 text-dim">No pool is set, and no worker has announced one.</p>}
        </Panel>
        <Panel title="Workers" aside={<span className="flex items-center gap-3"><span className="text-xs text-faint">heard of in the last two minutes</span><ListMenu name="workers" rows={() => workers.rows} command={["workers"]} path="/v1/workers" /></span>}>
          {!workers.data ? <Unready query={workers} /> : (
            <RowsTable names={["Worker", "Node", "In flight", "Functions", "Tags", "Last seen"]}>
              {workers.rows.map((worker) => (
                <tr key={`${worker.node} ${worker.worker}`} className="h-9 border-t border-line">
                  <td className="pr-4 font-medium">{worker.worker}</td>
                  <td className="max-w-44 truncate pr-4 text-dim" title={worker.node}>{worker.node}</td>
                  <td className="pr-4 tabular-nums">{count(worker.in_flight)}</td>
                  <td className="pr-4"><Names names={worker.functions} /></td>
                  <td className="pr-4"><Names names={worker.tags} /></td>
                  <td className="text-dim"><Time at={worker.last_seen_at} /></td>
                </tr>
              ))}
            </RowsTable>
          )}
          {workers.data && workers.rows.length === 0 && <p className="p-4 text-dim">No remote worker is connected. Functions in the server run without one.</p>}
        </Panel>
      </div>
    </Page>
  );
}

const NAMES_SHOWN = 4;

function Names({ names }: { names: string[] }) {
  return (
    <span className="flex flex-wrap gap-1" title={names.join(", ")}>
      {names.slice(0, NAMES_SHOWN).map((name) => <Badge key={name}>{name}</Badge>)}
      {names.length > NAMES_SHOWN && <span className="text-dim">and {names.length - NAMES_SHOWN} more</span>}
    </span>
  );
}

function PoolRow({ pool }: { pool: Schemas["Pool"] }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const params = { path: { name: pool.name } };
  const state = pool.paused ? "paused" : pool.throttled_until ? "throttled" : "active";
  const pause = () => change({
    title: `Pause the pool ${pool.name}`, verb: "Pause it", takesReason: true, description: "Its calls wait and are not handed out. Calls under way go on.",
    run: (reason) => data(api.POST("/v1/pools/{name}/pause", { params, body: { reason } })),
    cli: (reason) => cli("pool", "pause", pool.name, ...(reason ? ["--reason", reason] : [])), curl: (reason) => curl("POST", `/v1/pools/${pool.name}/pause`, { reason }),
  });
  const resume = () => change({
    title: `Resume the pool ${pool.name}`, verb: "Resume it",
    run: () => data(api.POST("/v1/pools/{name}/resume", { params })), cli: () => cli("pool", "resume", pool.name), curl: () => curl("POST", `/v1/pools/${pool.name}/resume`),
  });
  return (
    <tr className="h-9 border-t border-line">
      <td className="pr-4 font-medium">{pool.name}</td>
      <td className="pr-4"><Status status={state} />{pool.paused?.reason && <span className="ml-2 text-dim">{pool.paused.reason}</span>}</td>
      <td className="pr-4 tabular-nums">{pool.transport === "local" ? <span className="text-dim">the server</span> : count(pool.worker_count)}</td>
      <td className="pr-4 tabular-nums">{count(pool.in_flight)}</td>
      <td className="pr-4 text-dim">{pool.calls_per_second ? `${pool.calls_per_second}/s` : "–"}</td>
      <td className="pr-4"><Names names={pool.functions} /></td>
      <td className="pr-4 text-dim"><Time at={pool.last_seen_at} /></td>
      <td className="text-right">{mayChange && (state === "active" ? <Button look="ghost" onClick={pause}>Pause</Button> : <Button look="ghost" onClick={resume}>Resume</Button>)}</td>
    </tr>
  );
}

function Depths() {
  const isAllowed = useMay("system");
  const queues = useQuery({ queryKey: ["live", "queues"], queryFn: () => data(api.GET("/v1/queues")), refetchInterval: 5_000, enabled: isAllowed });
  if (!isAllowed) return null;
  const figure = (name: string, value: number | undefined): [string, string | undefined] => [name, value === undefined ? undefined : count(value)];
  return (
    <Figures
      figures={[
        figure("Turns ready", queues.data?.orchestrator),
        figure("Turns delayed", queues.data?.orchestrator_delayed),
        figure("Activities ready", queues.data?.worker),
        figure("Activities delayed", queues.data?.worker_delayed),
        figure("Under way", queues.data?.locked),
      ]}
    />
  );
}
