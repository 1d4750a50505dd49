import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { useDag, useRuns } from "../../api/dags";
import { useMay } from "../../api/me";
import { useAddress } from "../../lib/address";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Menu } from "../../ui/menu";
import { Page } from "../../ui/page";
import { Prose } from "../../ui/prose";
import { Status } from "../../ui/status";
import { Empty, Loading, Unready } from "../../ui/states";
import { Table } from "../../ui/table";
import { Tabs } from "../../ui/tabs";
import { Audit } from "../admin/audit-list";
import { RUNS } from "./dags-page";
import { Partitions } from "./partitions";
import { PublishDialog } from "./publish-dialog";
import { StartRun } from "./start-run";

const Graph = lazy(() => import("../../ui/graph"));

export function DagPage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const [{ tab = "runs" }, setAddress] = useAddress();
  const isAdmin = useMay("admin");
  const query = useDag(name);
  const dag = query.data;
  if (!dag) return <Page title={name}><Unready query={query} /></Page>;
  const assets = [...new Set(dag.tasks.flatMap((task) => task.asset ?? []))];
  return (
    <Page
      title={name}
      heading={<span className="flex items-center gap-3"><span className="truncate">{name}</span><Status status={dag.is_paused ? "paused" : "active"} className="font-normal" />{dag.schedule && <span className="truncate font-normal text-dim">{dag.schedule}</span>}</span>}
      actions={<Actions dag={dag} />}
    >
      <div className="flex h-full flex-col">
        {dag.description && <p className="border-b border-line px-5 py-2 text-dim"><Prose text={dag.description} /></p>}
        <Tabs
          label="Parts of the DAG"
          value={tab}
          onChange={(next) => setAddress({ tab: next === "runs" ? undefined : next })}
          tabs={[
            { id: "runs", name: "Runs", content: <Runs name={name} /> },
            { id: "graph", name: "Graph", count: dag.tasks_total, content: <Shape dag={dag} /> },
            ...(assets.length > 0 ? [{ id: "partitions", name: "Partitions", content: <Partitions dag={name} assets={assets} /> }] : []),
            ...(isAdmin ? [{ id: "audit", name: "Audit", content: <Audit resource={`/v1/dags/${name}`} /> }] : []),
          ]}
        />
      </div>
    </Page>
  );
}

function Runs({ name }: { name: string }) {
  const runs = useRuns(name);
  const navigate = useNavigate();
  if (!runs.data) return <Unready query={runs} />;
  if (runs.rows.length === 0) return <Empty icon="graph" title="It has not run yet" />;
  return <Table label="Runs" columns={RUNS} rows={runs.rows} rowId={(row) => row.id} onOpen={(row) => void navigate({ to: "/runs/$id", params: { id: row.id }, search: {} })} onEnd={runs.hasNextPage && !runs.isFetchingNextPage ? () => void runs.fetchNextPage() : undefined} />;
}

function Shape({ dag }: { dag: Schemas["DagDetails"] }) {
  const nodes = dag.tasks.map((task) => ({ id: task.key, name: task.key, detail: task.function ?? task.orchestration ?? undefined, ended: true }));
  const edges = dag.tasks.flatMap((task) => (task.depends_on ?? []).map((from) => ({ from, to: task.key })));
  return <Suspense fallback={<Loading />}><Graph label="Tasks" nodes={nodes} edges={edges} /></Suspense>;
}

function Actions({ dag }: { dag: Schemas["DagDetails"] }) {
  const change = useChange();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const [open, setOpen] = useState<"start" | "edit">();
  const text = useQuery({
    queryKey: ["dags", dag.name, "document", dag.active_version],
    enabled: open === "edit",
    queryFn: () => data(api.GET("/v1/dags/{name}/versions/{version}", { params: { path: { name: dag.name, version: dag.active_version } } })),
  });
  const params = { path: { name: dag.name } };
  const toggle = () => {
    const verb = dag.is_paused ? "resume" : "pause";
    change({
      title: dag.is_paused ? "Resume this DAG" : "Pause this DAG", verb: dag.is_paused ? "Resume it" : "Pause it",
      description: dag.is_paused ? undefined : "Its schedule, sensors and backfills start no runs. Callers still may.",
      run: () => (dag.is_paused ? data(api.POST("/v1/dags/{name}/resume", { params })) : data(api.POST("/v1/dags/{name}/pause", { params }))),
      cli: () => cli("dag", verb, dag.name), curl: () => curl("POST", `/v1/dags/${dag.name}/${verb}`),
    });
  };
  const remove = () => change({
    title: `Delete the DAG ${dag.name}`, verb: "Delete it", isDangerous: true, description: "With all its versions. Its runs stay.",
    run: async () => {
      await data(api.DELETE("/v1/dags/{name}", { params }));
      void navigate({ to: "/dags", search: {} });
    },
    cli: () => cli("dag", "delete", dag.name), curl: () => curl("DELETE", `/v1/dags/${dag.name}`),
  });
  if (!mayChange) return null;
  return (
    <>
      <Button look="primary" icon="play" onClick={() => setOpen("start")}>Start a run</Button>
      <Button onClick={toggle}>{dag.is_paused ? "Resume" : "Pause"}</Button>
      <Button onClick={() => setOpen("edit")}>Edit</Button>
      <Menu label="More" trigger={<Button icon="more" aria-label="More" />} items={[{ name: "Delete…", danger: true, onSelect: remove }]} />
      {open === "start" && <StartRun dag={dag} onClose={() => setOpen(undefined)} />}
      {open === "edit" && !text.data && <Dialog open onClose={() => setOpen(undefined)} title="Publish a DAG"><Unready query={text} /></Dialog>}
      {open === "edit" && text.data?.document && <PublishDialog document={text.data.document} onClose={() => setOpen(undefined)} />}
    </>
  );
}
