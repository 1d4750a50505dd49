import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { useStats } from "../../api/home";
import { useMay } from "../../api/me";
import { usePages } from "../../api/pages";
import { useWorkers } from "../../api/workers";
import { count, duration, plural } from "../../lib/format";
import { Button } from "../../ui/button";
import { ListPage } from "../../ui/list-page";
import { Badge } from "../../ui/status";
import type { Column } from "../../ui/table";
import { FunctionDialog } from "./function-dialog";

type Fn = Schemas["Function"];
export type Declaration = { executor?: string; description?: string; timeout?: string; url?: string };

/** Functions: who declared them, who serves them, how often and how fast they run. */
export function FunctionsPage() {
  const functions = usePages(["functions"], (cursor) => data(api.GET("/v1/functions", { params: { query: { cursor, limit: 200 } } })), (page) => page.functions);
  const rates = new Map(useStats().data?.functions.map((rate) => [rate.name, rate]));
  const workers = useWorkers().rows;
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const [isNew, setIsNew] = useState(false);
  const servers = (name: string) => workers.filter((worker) => worker.functions.includes(name)).length;

  const columns: Column<Fn>[] = [
    { id: "name", name: "Function", width: "minmax(140px,1.2fr)", cell: (row) => <Link to="/functions/$name" params={{ name: row.name }} search={{}} className="font-medium hover:underline">{row.name}</Link>, sort: (row) => row.name },
    { id: "executor", name: "Executor", width: "88px", cell: (row) => <Badge>{(row.declaration as Declaration).executor}</Badge>, sort: (row) => (row.declaration as Declaration).executor },
    {
      id: "served", name: "Served by", width: "104px",
      cell: (row) => (row.declaration as Declaration).executor !== "remote" ? <span className="text-dim">the server</span> : servers(row.name) > 0 ? plural(servers(row.name), "worker") : <span className="text-warn">no worker</span>,
    },
    { id: "completed", name: "Completed", width: "90px", right: true, cell: (row) => count(rates.get(row.name)?.completed ?? 0), sort: (row) => rates.get(row.name)?.completed ?? 0 },
    { id: "failed", name: "Failed", width: "66px", right: true, cell: (row) => <span className={(rates.get(row.name)?.failed ?? 0) > 0 ? "text-bad" : "text-faint"}>{count(rates.get(row.name)?.failed ?? 0)}</span>, sort: (row) => rates.get(row.name)?.failed ?? 0 },
    { id: "p50", name: "p50", width: "74px", right: true, cell: (row) => timeOf(rates.get(row.name)?.p50_ms), sort: (row) => rates.get(row.name)?.p50_ms },
    { id: "p99", name: "p99", width: "74px", right: true, cell: (row) => timeOf(rates.get(row.name)?.p99_ms), sort: (row) => rates.get(row.name)?.p99_ms },
    { id: "description", name: "Description", width: "minmax(140px,2fr)", cell: (row) => <span className="text-dim" title={(row.declaration as Declaration).description}>{(row.declaration as Declaration).description}</span> },
    { id: "origin", name: "Declared", width: "110px", cell: (row) => <span className="text-dim">{row.origin === "stored" ? "over the API" : "in the server"}</span>, sort: (row) => row.origin },
  ];
  return (
    <>
      <ListPage
        title="Functions"
        actions={mayChange && <Button look="primary" icon="plus" onClick={() => setIsNew(true)}>New function</Button>}
        same={{ command: ["functions", "list"], path: "/v1/functions" }}
        query={functions}
        rows={functions.rows}
        columns={columns}
        rowId={(row) => row.name}
        textOf={(row) => [row.name, (row.declaration as Declaration).description, (row.declaration as Declaration).executor]}
        onOpen={(row) => void navigate({ to: "/functions/$name", params: { name: row.name }, search: {} })}
        empty={{ icon: "code", title: "No functions", text: "A function is a name with an executor: code, a tool, an HTTP call or a remote worker." }}
      />
      {isNew && <FunctionDialog onClose={() => setIsNew(false)} />}
    </>
  );
}

function timeOf(value: number | null | undefined) {
  return typeof value === "number" ? duration(value) : <span className="text-faint">–</span>;
}
