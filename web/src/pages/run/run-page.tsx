import { Link, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import type { Schemas } from "../../api/client";
import { type RunTask, criticalPath, isOver, useRun, useTasks } from "../../api/dags";
import { useMay } from "../../api/me";
import { useAddress } from "../../lib/address";
import { words } from "../../lib/format";
import { Icon } from "../../ui/icon";
import { Json } from "../../ui/json";
import { Page } from "../../ui/page";
import { Badge, Status } from "../../ui/status";
import { Loading, Unready } from "../../ui/states";
import { Tabs } from "../../ui/tabs";
import { Span, Time } from "../../ui/time";
import { Audit } from "../admin/audit-list";
import { Gantt } from "./gantt";
import { RunActions } from "./run-actions";
import { TaskPanel } from "./task-panel";

const Graph = lazy(() => import("../../ui/graph"));
const TASK_OVER = ["skipped", "cancelled", "failed", "succeeded"];

/** A run: its graph with the critical path, its Gantt, and each task. */
export function RunPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const [{ tab = "graph" }, setAddress] = useAddress();
  const isAdmin = useMay("admin");
  const query = useRun(id);
  const run = query.data;
  const tasks = useTasks(id, run !== undefined && !isOver(run.status));
  const [open, setOpen] = useState<string>();
  const critical = useMemo(() => criticalPath(tasks.rows), [tasks.rows]);
  const inTime = useMemo(() => byBegin(tasks.rows), [tasks.rows]);
  if (!run) return <Page title={id}><Unready query={query} /></Page>;
  return (
    <Page
      title={run.run_key ?? run.id}
      heading={
        <span className="flex items-center gap-3">
          <span className="truncate"><Link to="/dags/$name" params={{ name: run.dag }} search={{}} className="hover:underline">{run.dag}</Link> · {run.run_key ?? run.id}</span>
          <Status status={run.is_paused ? "paused" : run.status} className="font-normal" />
        </span>
      }
      actions={<RunActions run={run} />}
    >
      <div className="flex h-full min-h-0 flex-col">
        <Summary run={run} />
        <div className="flex min-h-0 flex-1">
          <Tabs
            label="Parts of the run"
            value={tab}
            onChange={(next) => setAddress({ tab: next === "graph" ? undefined : next })}
            tabs={[
              { id: "graph", name: "Graph", content: <RunGraph tasks={tasks.rows} critical={critical} onOpen={setOpen} /> },
              { id: "gantt", name: "Gantt", content: <Gantt run={run} tasks={inTime} critical={critical} onOpen={setOpen} /> },
              { id: "params", name: "Parameters", content: <div className="p-5"><Json value={run.params ?? {}} label="Parameters" /></div> },
              ...(isAdmin ? [{ id: "audit", name: "Audit", content: <Audit resource={`/v1/runs/${id}`} /> }] : []),
            ]}
          />
          {open && <TaskPanel run={run} task={open} onClose={() => setOpen(undefined)} />}
        </div>
      </div>
    </Page>
  );
}

/** Tasks in the order in which they began; those that have not yet are last. */
function byBegin(tasks: RunTask[]): RunTask[] {
  const begin = (task: RunTask) => Date.parse(task.dispatched_at ?? task.ready_at ?? "") || Number.POSITIVE_INFINITY;
  return [...tasks].sort((a, b) => (begin(a) === begin(b) ? 0 : begin(a) - begin(b)));
}

function Summary({ run }: { run: Schemas["RunDetails"] }) {
  return (
    <div className="shrink-0 border-b border-line px-5 py-3">
      <div className="flex flex-wrap items-center gap-x-6 gap-y-1 text-dim">
        {run.partition && <span>partition <span className="text-text">{run.partition}</span></span>}
        <span>{run.tasks_completed} of {run.tasks_total} tasks</span>
        {run.tasks_failed > 0 && <span className="text-bad">{run.tasks_failed} failed</span>}
        <span>triggered <Time at={run.triggered_at} />{run.trigger && `, ${words(run.trigger.kind)}`}</span>
        <span>took <span className="text-text"><Span from={run.triggered_at} until={run.completed_at} ended={isOver(run.status)} /></span></span>
        {run.parent_run && <Link to="/runs/$id" params={{ id: run.parent_run }} search={{}} className="text-accent-text hover:underline">earlier run</Link>}
        {Object.entries(run.labels ?? {}).map(([key, value]) => <Badge key={key}>{key}={value}</Badge>)}
      </div>
      {!isOver(run.status) && (
        <p role="note" className="mt-2 flex items-start gap-2"><Icon name="clock" size={15} className="mt-0.5 text-info" /><span>It waits: {run.waits.why}{run.waits.wakes_at && <span className="text-dim">, <Time at={run.waits.wakes_at} /></span>}</span></p>
      )}
      {run.reason && run.status !== "succeeded" && <p className="mt-2 text-bad">{run.reason}</p>}
    </div>
  );
}

function RunGraph({ tasks, critical, onOpen }: { tasks: RunTask[]; critical: Set<string>; onOpen: (key: string) => void }) {
  const nodes = tasks.map((task) => ({
    id: task.key,
    name: task.key,
    detail: `${task.function ?? task.orchestration ?? ""}${task.attempt > 1 ? ` · attempt ${task.attempt} of ${task.max_attempts}` : ""}`,
    status: task.status,
    from: task.dispatched_at ?? undefined,
    until: task.completed_at ?? undefined,
    ended: TASK_OVER.includes(task.status),
    isMarked: critical.has(task.key),
    onSelect: () => onOpen(task.key),
  }));
  const edges = tasks.flatMap((task) => (task.depends_on ?? []).map((from) => ({ from, to: task.key, isCritical: critical.has(from) && critical.has(task.key) })));
  return <Suspense fallback={<Loading />}><Graph label="Tasks" nodes={nodes} edges={edges} /></Suspense>;
}
