import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, data } from "../../api/client";
import { type Stats, useProblems, useStats } from "../../api/home";
import { useMay } from "../../api/me";
import { count, duration } from "../../lib/format";
import { clockTime } from "../../lib/time";
import { Bars } from "../../ui/bars";
import { Lines, TimeEnds } from "../../ui/lines";
import { Page, Panel } from "../../ui/page";
import { Loading, Unready } from "../../ui/states";
import { ProblemList } from "./problems";

/** Problem first: what is wrong now, then how much happens and how fast. */
export function HomePage() {
  const problems = useProblems();
  const stats = useStats();
  return (
    <Page title="Home">
      <div className="mx-auto flex max-w-6xl flex-col gap-5 p-5">
        {problems.data ? <ProblemList problems={problems.data} /> : <Unready query={problems} />}
        <div className="grid grid-cols-1 gap-5 lg:grid-cols-3">
          <Panel title="Instances started, by the minute" className="lg:col-span-2" aside={<span className="text-xs text-faint">last hour</span>}>
            <div className="p-4">{stats.data ? <Throughput stats={stats.data} /> : <Unready query={stats} />}</div>
          </Panel>
          <Queues />
        </div>
        {stats.data && <Waiting stats={stats.data} />}
        <Panel title="Run time" aside={<span className="text-xs text-faint">last hour, from creation to end</span>}>
          {stats.data ? <Rates stats={stats.data} /> : <Loading rows={3} />}
        </Panel>
      </div>
    </Page>
  );
}

function Throughput({ stats }: { stats: Stats }) {
  const total = (field: "started" | "completed" | "failed") => stats.points.reduce((sum, point) => sum + point[field], 0);
  const bars = stats.points.map((point) => ({
    label: clockTime(Date.parse(point.at)),
    parts: [
      { name: "completed", value: point.completed, colour: "var(--good)" },
      { name: "failed", value: point.failed, colour: "var(--bad)" },
      { name: "open or cancelled", value: Math.max(point.started - point.completed - point.failed, 0), colour: "var(--line-strong)" },
    ],
  }));
  return (
    <>
      <div className="mb-3 flex gap-8">
        <Figure name="started" value={count(total("started"))} />
        <Figure name="completed" value={count(total("completed"))} tone="text-good" />
        <Figure name="failed" value={count(total("failed"))} tone={total("failed") > 0 ? "text-bad" : ""} />
      </div>
      <Bars bars={bars} label={`Instances by the minute: ${total("started")} started, ${total("completed")} completed, ${total("failed")} failed`} />
      <TimeEnds from={Date.parse(stats.points[0]?.at ?? "")} until={Date.parse(stats.points.at(-1)?.at ?? "")} />
      {stats.incomplete && <p className="mt-2 text-xs text-warn">Some counts could not be read: the numbers are lower bounds.</p>}
    </>
  );
}

/** How late timers were, and how much waited: what a person looks at when all seems to be well and is slow. */
function Waiting({ stats: { points, queues } }: { stats: Stats }) {
  const isLate = points.some((point) => typeof point.late_p99_ms === "number");
  const late = (field: "late_p50_ms" | "late_p99_ms") => points.map((point) => point[field] ?? undefined);
  const hasQueues = (queues?.length ?? 0) > 1;
  if (!isLate && !hasQueues) return null;
  return (
    <div className={`grid gap-5 ${isLate && hasQueues ? "lg:grid-cols-2" : ""}`}>
      {isLate && (
        <Panel title="Lateness of timers" aside={<Legend entries={[["p50", "var(--info)"], ["p99", "var(--warn)"]]} />}>
          <div className="p-4">
            <Lines label="Lateness of timers by the minute, p50 and p99" at={points.map((point) => Date.parse(point.at))} format={duration} lines={[{ name: "p50", colour: "var(--info)", values: late("late_p50_ms") }, { name: "p99", colour: "var(--warn)", values: late("late_p99_ms") }]} />
          </div>
        </Panel>
      )}
      {hasQueues && queues && (
        <Panel title="Length of the queues" aside={<Legend entries={[["turns", "var(--accent)"], ["activities", "var(--info)"], ["under way", "var(--good)"]]} />}>
          <div className="p-4">
            <Lines
              label="Length of the queues by the minute"
              at={queues.map((each) => Date.parse(each.at))}
              format={count}
              lines={[
                { name: "turns ready", colour: "var(--accent)", values: queues.map((each) => each.orchestrator) },
                { name: "activities ready", colour: "var(--info)", values: queues.map((each) => each.worker) },
                { name: "under way", colour: "var(--good)", values: queues.map((each) => each.locked) },
              ]}
            />
          </div>
        </Panel>
      )}
    </div>
  );
}

function Legend({ entries }: { entries: [string, string][] }) {
  return (
    <span className="flex gap-3 text-xs text-dim">
      {entries.map(([name, colour]) => <span key={name} className="flex items-center gap-1.5"><span className="h-0.5 w-3 rounded-full" style={{ background: colour }} />{name}</span>)}
    </span>
  );
}

function Figure({ name, value, tone = "" }: { name: string; value: string; tone?: string }) {
  return (
    <div>
      <div className={`text-lg font-semibold tabular-nums ${tone}`}>{value}</div>
      <div className="text-xs text-faint">{name}</div>
    </div>
  );
}

function Queues() {
  const isAllowed = useMay("system");
  const queues = useQuery({ queryKey: ["live", "queues"], queryFn: () => data(api.GET("/v1/queues")), refetchInterval: 5_000, enabled: isAllowed });
  if (!isAllowed) return null;
  const rows: [string, number | undefined][] = [
    ["Turns ready", queues.data?.orchestrator],
    ["Activities ready", queues.data?.worker],
    ["Under way", queues.data?.locked],
    ["Delayed: timers and retries", queues.data?.delayed],
  ];
  return (
    <Panel title="Queues" aside={<span className="text-xs text-faint">whole store</span>}>
      <dl className="divide-y divide-line">
        {rows.map(([name, value]) => (
          <div key={name} className="flex items-center justify-between px-4 py-2.5">
            <dt className="text-dim">{name}</dt>
            <dd className="text-base font-semibold tabular-nums">{value === undefined ? "–" : count(value)}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function Rates({ stats }: { stats: Stats }) {
  const rows = [
    ...stats.functions.map((rate) => ({ ...rate, kind: "function" })),
    ...(stats.orchestrations ?? []).map((rate) => ({ ...rate, kind: "orchestration" })),
  ];
  if (rows.length === 0) return <p className="p-4 text-dim">Nothing has ended in the last hour.</p>;
  const slowest = Math.max(...rows.map((row) => row.p99_ms ?? 0), 1);
  return (
    <div className="relative overflow-x-auto px-4 py-2">
      <table className="w-full text-left">
        <thead className="text-xs text-faint">
          <tr>
            <th className="h-8 font-medium">Runs</th>
            <th className="text-right font-medium">Completed</th>
            <th className="text-right font-medium">Failed</th>
            <th className="text-right font-medium">p50</th>
            <th className="text-right font-medium">p99</th>
            <th className="w-1/4 pl-6 font-medium"><span className="sr-only">Run times as bars</span></th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.kind} ${row.name}`} className="h-8 border-t border-line">
              <td><Link to="/instances" search={{ q: `${row.kind}:${row.name} started:<1h` }} className="font-medium hover:underline">{row.name}</Link><span className="ml-2 text-xs text-faint">{row.kind}</span></td>
              <td className="text-right tabular-nums">{count(row.completed)}</td>
              <td className={`text-right tabular-nums ${row.failed > 0 ? "text-bad" : "text-faint"}`}>{count(row.failed)}</td>
              <td className="text-right tabular-nums">{typeof row.p50_ms !== "number" ? "–" : duration(row.p50_ms)}</td>
              <td className="text-right tabular-nums">{typeof row.p99_ms !== "number" ? "–" : duration(row.p99_ms)}</td>
              <td className="pl-6" aria-hidden="true">
                <div className="relative h-2 rounded-full bg-mute-bg">
                  <div className="absolute h-2 rounded-full bg-info/40" style={{ width: `${((row.p99_ms ?? 0) / slowest) * 100}%` }} />
                  <div className="absolute h-2 rounded-full bg-info" style={{ width: `${((row.p50_ms ?? 0) / slowest) * 100}%` }} />
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
