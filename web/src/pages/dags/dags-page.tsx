import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { type Dag, type Run, isOver, useBackfills, useDags, useRuns } from "../../api/dags";
import { useMay } from "../../api/me";
import { useAddress } from "../../lib/address";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { ListPage } from "../../ui/list-page";
import { Status } from "../../ui/status";
import type { Column } from "../../ui/table";
import { Span, Time } from "../../ui/time";
import { PublishDialog } from "./publish-dialog";

export const RUNS: Column<Run>[] = [
  { id: "status", name: "Status", width: "120px", cell: (row) => <Status status={row.is_paused ? "paused" : row.status} />, sort: (row) => row.status },
  { id: "dag", name: "DAG", width: "minmax(130px,1fr)", cell: (row) => <Link to="/dags/$name" params={{ name: row.dag }} search={{}} className="font-medium hover:underline">{row.dag}</Link>, sort: (row) => row.dag },
  { id: "id", name: "Run", width: "minmax(160px,1.4fr)", cell: (row) => <Link to="/runs/$id" params={{ id: row.id }} search={{}} className="hover:underline" title={row.id}>{row.run_key ?? row.id}</Link> },
  { id: "tasks", name: "Tasks", width: "150px", cell: (row) => <Tasks run={row} /> },
  { id: "trigger", name: "Trigger", width: "110px", cell: (row) => <span className="text-dim">{row.trigger?.kind}</span> },
  { id: "at", name: "Triggered", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.triggered_at} /></span>, sort: (row) => Date.parse(row.triggered_at) },
  { id: "took", name: "Duration", width: "90px", right: true, cell: (row) => <Span from={row.triggered_at} until={row.completed_at} ended={isOver(row.status)} /> },
  { id: "why", name: "What happened", width: "minmax(140px,1.4fr)", cell: (row) => <span className="text-bad" title={row.reason ?? undefined}>{row.status === "succeeded" ? "" : row.reason}</span> },
];

function Tasks({ run }: { run: Run }) {
  const parts: [number, string][] = [[run.tasks_succeeded, "var(--good)"], [run.tasks_failed, "var(--bad)"], [run.tasks_skipped + run.tasks_cancelled, "var(--line-strong)"]];
  return (
    <span className="flex items-center gap-2" title={`${run.tasks_succeeded} of ${run.tasks_total} succeeded, ${run.tasks_failed} failed`}>
      <span className="flex h-1.5 w-16 overflow-hidden rounded-full bg-mute-bg">
        {parts.map(([value, colour]) => <span key={colour} style={{ width: `${(value / Math.max(run.tasks_total, 1)) * 100}%`, background: colour }} />)}
      </span>
      <span className="text-dim tabular-nums">{run.tasks_completed}/{run.tasks_total}</span>
    </span>
  );
}

const DAGS: Column<Dag>[] = [
  { id: "status", name: "Status", width: "110px", cell: (row) => <Status status={row.is_paused ? "paused" : "active"} /> },
  { id: "name", name: "DAG", width: "minmax(150px,1fr)", cell: (row) => <Link to="/dags/$name" params={{ name: row.name }} search={{}} className="font-medium hover:underline">{row.name}</Link>, sort: (row) => row.name },
  { id: "description", name: "Description", width: "minmax(200px,2fr)", cell: (row) => <span className="text-dim" title={row.description ?? undefined}>{row.description}</span> },
  { id: "version", name: "Version", width: "80px", right: true, cell: (row) => row.active_version },
  { id: "updated", name: "Updated", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.updated_at} /></span>, sort: (row) => Date.parse(row.updated_at) },
];

type View = "runs" | "dags" | "backfills";

/** Runs of DAGs, the DAGs themselves, and backfills of partitions. */
export function DagsPage() {
  const [{ view = "runs" }, setAddress] = useAddress();
  const runs = useRuns();
  const dags = useDags();
  const backfills = useBackfills();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const columns = useBackfillColumns();
  const [isNew, setIsNew] = useState(false);
  const tab = (id: View, name: string) => <Button key={id} look={view === id ? "plain" : "ghost"} aria-pressed={view === id} onClick={() => setAddress({ view: id === "runs" ? undefined : id })}>{name}</Button>;
  const actions = (
    <>
      {tab("runs", "Runs")}{tab("dags", "DAGs")}{tab("backfills", "Backfills")}
      {mayChange && <Button look="primary" icon="plus" onClick={() => setIsNew(true)}>Publish a DAG</Button>}
    </>
  );
  return (
    <>
      {view === "dags" ? (
        <ListPage title="DAG runs" actions={actions} same={{ command: ["dag", "list"], path: "/v1/dags" }} query={dags} rows={dags.rows} columns={DAGS} rowId={(row) => row.name} textOf={(row) => [row.name, row.description]} onOpen={(row) => void navigate({ to: "/dags/$name", params: { name: row.name }, search: {} })} empty={{ icon: "graph", title: "No DAGs", text: "A DAG is a set of tasks and what they depend on, in one YAML file." }} />
      ) : view === "backfills" ? (
        <ListPage title="DAG runs" actions={actions} same={{ command: ["backfill", "list"], path: "/v1/backfills" }} query={backfills} rows={backfills.rows} columns={columns} rowId={(row) => row.id} textOf={(row) => [row.dag, row.id, row.status]} empty={{ icon: "graph", title: "No backfills", text: "A backfill runs a DAG for a range of partitions. Select partitions on the page of a DAG." }} />
      ) : (
        <ListPage title="DAG runs" actions={actions} same={{ command: ["run", "list"], path: "/v1/runs" }} query={runs} rows={runs.rows} columns={RUNS} rowId={(row) => row.id} textOf={(row) => [row.dag, row.id, row.run_key, row.status]} onOpen={(row) => void navigate({ to: "/runs/$id", params: { id: row.id }, search: {} })} empty={{ icon: "graph", title: "No runs", text: "Start one on the page of a DAG." }} />
      )}
      {isNew && <PublishDialog onClose={() => setIsNew(false)} />}
    </>
  );
}

function useBackfillColumns(): Column<Schemas["Backfill"]>[] {
  const change = useChange();
  const mayChange = useMay("operate");
  const ask = (id: string, verb: "pause" | "resume" | "cancel") =>
    change({
      title: `${verb[0]?.toUpperCase()}${verb.slice(1)} the backfill`, verb: `${verb[0]?.toUpperCase()}${verb.slice(1)} it`, isDangerous: verb === "cancel",
      description: verb === "cancel" ? "Its runs are cancelled too." : undefined,
      run: () => {
        const params = { path: { id } };
        if (verb === "pause") return data(api.POST("/v1/backfills/{id}/pause", { params }));
        if (verb === "resume") return data(api.POST("/v1/backfills/{id}/resume", { params }));
        return data(api.POST("/v1/backfills/{id}/cancel", { params }));
      },
      cli: () => cli("backfill", verb, id), curl: () => curl("POST", `/v1/backfills/${id}/${verb}`),
    });
  return [
    { id: "status", name: "Status", width: "110px", cell: (row) => <Status status={row.status} /> },
    { id: "dag", name: "DAG", width: "minmax(130px,1fr)", cell: (row) => <Link to="/dags/$name" params={{ name: row.dag }} search={{}} className="font-medium hover:underline">{row.dag}</Link> },
    { id: "range", name: "Partitions", width: "minmax(180px,1.5fr)", cell: (row) => `${row.first_partition ?? ""} to ${row.last_partition ?? ""} (${row.total_partitions})` },
    { id: "chunks", name: "Chunks", width: "120px", cell: (row) => `${row.completed_chunks} of ${row.planned_chunks}` },
    { id: "failed", name: "Failed", width: "80px", right: true, cell: (row) => <span className={row.failed_chunks > 0 ? "text-bad" : "text-faint"}>{row.failed_chunks}</span> },
    { id: "created", name: "Created", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.created_at} /></span> },
    {
      id: "actions", name: "", width: "170px", right: true,
      cell: (row) => mayChange && !isOver(row.status) && (
        <span className="inline-flex gap-1">
          {row.status === "paused" ? <Button look="ghost" onClick={() => ask(row.id, "resume")}>Resume</Button> : <Button look="ghost" onClick={() => ask(row.id, "pause")}>Pause</Button>}
          <Button look="ghost" onClick={() => ask(row.id, "cancel")}>Cancel</Button>
        </span>
      ),
    },
  ];
}
