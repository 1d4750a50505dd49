import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { useStats } from "../../api/home";
import { type Instance, hasEnded } from "../../api/instances";
import { useMay } from "../../api/me";
import { useScope } from "../../api/scope";
import { useWorkers } from "../../api/workers";
import { cli, curl } from "../../lib/command";
import { count, duration } from "../../lib/format";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Id } from "../../ui/id";
import { Json } from "../../ui/json";
import { Page, Panel } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Span, Time } from "../../ui/time";
import { Audit } from "../admin/audit-list";
import { FunctionDialog } from "./function-dialog";

export function FunctionPage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const scope = useScope();
  const query = useQuery({ queryKey: ["functions", name, scope], queryFn: () => data(api.GET("/v1/functions/{name}", { params: { path: { name } } })) });
  const isAdmin = useMay("admin");
  const workers = useWorkers().rows.filter((worker) => worker.functions.includes(name));
  const found = query.data;
  if (!found) return <Page title={name}><Unready query={query} /></Page>;
  return (
    <Page title={name} actions={<Actions found={found} />}>
      <div className="mx-auto grid max-w-6xl grid-cols-1 gap-5 p-5 lg:grid-cols-2">
        <Panel title="Declaration"><div className="p-3"><Json value={found.declaration} label="Declaration" /></div></Panel>
        <Panel title="Workers that serve it">
          <ul className="divide-y divide-line">
            {workers.map((worker) => (
              <li key={worker.worker} className="flex items-center gap-3 px-4 py-2">
                <span className="min-w-0 flex-1 truncate font-medium">{worker.worker}</span>
                <span className="text-dim">{worker.in_flight} in flight</span>
                <span className="text-dim"><Time at={worker.last_seen_at} /></span>
              </li>
            ))}
            {workers.length === 0 && <li className="p-4 text-dim">No worker has asked for it in the last two minutes.</li>}
          </ul>
        </Panel>
        <LastHour name={name} />
        <Calls title="Last failures" name={name} status={["failed"]} />
        <Calls title="Last calls" name={name} status={undefined} />
        {isAdmin && <Panel title="Audit" className="lg:col-span-2"><Audit resource={`/v1/functions/${name}`} /></Panel>}
      </div>
    </Page>
  );
}

/** How often it ran, how it ended, and how long it took. */
function LastHour({ name }: { name: string }) {
  const stats = useStats();
  const rate = stats.data?.functions.find((each) => each.name === name);
  const ended = (rate?.completed ?? 0) + (rate?.failed ?? 0);
  const figures: [string, string, string?][] = [
    ["completed", count(rate?.completed ?? 0)],
    ["failed", count(rate?.failed ?? 0), rate?.failed ? "text-bad" : ""],
    ["of those that ended have failed", ended === 0 ? "–" : `${(((rate?.failed ?? 0) / ended) * 100).toFixed(1)}%`, rate?.failed ? "text-bad" : ""],
    ["run time, p50", typeof rate?.p50_ms === "number" ? duration(rate.p50_ms) : "–"],
    ["run time, p99", typeof rate?.p99_ms === "number" ? duration(rate.p99_ms) : "–"],
  ];
  return (
    <Panel title="Calls" className="lg:col-span-2" aside={<span className="text-xs text-faint">last hour</span>}>
      {stats.data ? (
        <dl className="flex flex-wrap gap-x-10 gap-y-3 p-4">
          {figures.map(([label, value, tone = ""]) => (
            <div key={label}>
              <dd className={`text-lg font-semibold tabular-nums ${tone}`}>{value}</dd>
              <dt className="text-xs text-faint">{label}</dt>
            </div>
          ))}
        </dl>
      ) : <Unready query={stats} />}
    </Panel>
  );
}

function Calls({ title, name, status }: { title: string; name: string; status: Schemas["Status"][] | undefined }) {
  const scope = useScope();
  const query = useQuery({
    queryKey: ["live", "calls", name, status, scope],
    queryFn: () => data(api.GET("/v1/instances", { params: { query: { function: name, status: status as never, limit: 10 } } })),
  });
  const rows: Instance[] = query.data?.instances ?? [];
  const filter = `function:${name}${status ? ` status:${status.join(",")}` : ""}`;
  return (
    <Panel title={title} aside={<Link to="/instances" search={{ q: filter }} className="text-accent-text hover:underline">All</Link>}>
      <ul className="divide-y divide-line">
        {rows.map((row) => (
          <li key={row.id} className="px-4 py-1.5">
            <Link to="/instances/$id" params={{ id: row.id }} search={{}} className="flex items-center gap-3 hover:underline">
              <Status status={row.status} className="w-24" />
              <span className="min-w-0 flex-1"><Id id={row.id} /></span>
              <span className="text-dim"><Time at={row.created_at} /></span>
              <span className="w-16 text-right"><Span from={row.created_at} until={row.completed_at} ended={hasEnded(row.status)} /></span>
            </Link>
            {row.failure && <p className="truncate pl-27 text-xs text-bad" title={row.failure.message}>{row.failure.message}</p>}
          </li>
        ))}
        {query.data && rows.length === 0 && <li className="p-4 text-dim">None.</li>}
      </ul>
    </Panel>
  );
}

function Actions({ found }: { found: Schemas["Function"] }) {
  const change = useChange();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const [isEditing, setIsEditing] = useState(false);
  if (!mayChange) return null;
  const remove = () => change({
    title: `Delete the function ${found.name}`, verb: "Delete it", isDangerous: true, description: "Calls that wait to be run will fail.",
    run: async () => {
      await data(api.DELETE("/v1/functions/{name}", { params: { path: { name: found.name } } }));
      void navigate({ to: "/functions", search: {} });
    },
    cli: () => cli("functions", "delete", found.name), curl: () => curl("DELETE", `/v1/functions/${found.name}`),
  });
  return (
    <>
      <Button look="primary" icon="play" onClick={() => void navigate({ to: "/start", search: { view: "function", name: found.name } })}>Try it</Button>
      {found.origin === "stored" && <Button onClick={() => setIsEditing(true)}>Edit</Button>}
      {found.origin === "stored" && <Button look="danger" onClick={remove}>Delete</Button>}
      {isEditing && <FunctionDialog existing={found} onClose={() => setIsEditing(false)} />}
    </>
  );
}
