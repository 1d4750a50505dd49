import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { useSaved } from "../../api/saved";
import { useAddress } from "../../lib/address";
import { cli, curl } from "../../lib/command";
import { csv, download } from "../../lib/download";
import { count, plural } from "../../lib/format";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { LazyEditor } from "../../ui/lazy-editor";
import { Menu, type MenuItem } from "../../ui/menu";
import { NameDialog } from "../../ui/name-dialog";
import { Page } from "../../ui/page";
import { Empty, Loading, messageOf } from "../../ui/states";
import { Table } from "../../ui/table";
import { Tabs } from "../../ui/tabs";
import { Chart } from "./chart";
import { Tables } from "./tables";

type Answer = Schemas["SqlAnswer"];
type Row = { index: number; cells: unknown[] };

const FIRST = "SELECT status, count(*) AS instances\nFROM instances\nGROUP BY status\nORDER BY instances DESC";

/** Read-only SQL over live and archived state: a table, a chart, CSV. */
export function SqlPage() {
  const [{ q, view = "table" }, setAddress] = useAddress();
  const [text, setText] = useState(q ?? FIRST);
  const [isNaming, setIsNaming] = useState(false);
  const catalogue = useQuery({ queryKey: ["sql"], staleTime: Number.POSITIVE_INFINITY, queryFn: () => data(api.GET("/v1/sql")) });
  const { saved, save, remove } = useSaved("query", "sql");
  const run = useMutation({
    mutationFn: async (query: string) => {
      setAddress({ q: query });
      return (await data(api.POST("/v1/sql", { body: { query } }))) as Answer;
    },
  });
  const tables = useMemo(() => Object.fromEntries((catalogue.data?.tables ?? []).map((table) => [table.name, table.columns.map((column) => column.name)])), [catalogue.data]);
  const open = saved.find((each) => each.text === text);
  const queries: MenuItem[] = [
    ...(catalogue.data?.shipped ?? []).map((each) => ({ name: each.name, onSelect: () => setText(each.query) })),
    ...(saved.length > 0 ? (["line"] as const) : []),
    ...saved.map((each) => ({ name: each.name, onSelect: () => setText(each.text) })),
    "line",
    { name: "Save this query…", onSelect: () => setIsNaming(true) },
    ...(open ? [{ name: `Remove “${open.name}”`, danger: true, onSelect: () => void remove(open.name) }] : []),
  ];
  const answer = run.data;
  return (
    <Page
      title="SQL"
      actions={
        <>
          <Menu label="Queries" trigger={<Button>Queries</Button>} items={queries} />
          <Copy text={cli("sql", text)}>Copy as CLI</Copy>
          <Copy text={curl("POST", "/v1/sql", { query: text })}>Copy as curl</Copy>
          <Button disabled={!answer} onClick={() => answer && download("answer.csv", "text/csv", csv(answer.columns, answer.rows))}>CSV</Button>
          <Button look="primary" icon="play" disabled={run.isPending} onClick={() => run.mutate(text)} title="Ctrl-Enter">{run.isPending ? "Running…" : "Run"}</Button>
        </>
      }
    >
      <div className="grid h-full grid-cols-[220px_minmax(0,1fr)] max-lg:grid-cols-1">
        <Tables tables={catalogue.data?.tables ?? []} onUse={(name) => setText(`SELECT *\nFROM ${name}\nLIMIT 100`)} />
        <div className="flex min-h-0 flex-col">
          <div className="h-52 shrink-0 p-3">
            {catalogue.isPending ? <Loading rows={3} /> : <LazyEditor label="Query" language="sql" value={text} onChange={setText} tables={tables} onRun={() => run.mutate(text)} />}
          </div>
          {run.error ? (
            <p role="alert" className="mx-3 rounded-md bg-bad-bg px-3 py-2 whitespace-pre-wrap text-bad">{messageOf(run.error)}</p>
          ) : answer ? (
            <Result answer={answer} view={view} onView={(next) => setAddress({ view: next === "table" ? undefined : next })} />
          ) : (
            <Empty icon="table" title="Run the query to see its rows">Ctrl-Enter runs it. A query only reads: it changes nothing.</Empty>
          )}
        </div>
      </div>
      {isNaming && <NameDialog onClose={() => setIsNaming(false)} onName={(name) => { void save(name, text); setIsNaming(false); }} />}
    </Page>
  );
}

function Result({ answer, view, onView }: { answer: Answer; view: string; onView: (view: string) => void }) {
  const rows: Row[] = useMemo(() => answer.rows.map((cells, index) => ({ index, cells })), [answer]);
  const columns = answer.columns.map((name, index) => ({
    id: `${index}`,
    name,
    width: "minmax(120px,1fr)",
    right: answer.rows.length > 0 && answer.rows.every((row) => row[index] === null || typeof row[index] === "number"),
    cell: (row: Row) => <Cell value={row.cells[index]} />,
  }));
  const read = answer.fetched.reduce((sum, each) => sum + each.read_rows, 0);
  return (
    <>
      <p role="status" className="px-4 pb-1 text-xs text-faint">
        {plural(answer.rows.length, "row")}{answer.truncated && " (more were left out)"} · {count(read)} read in {answer.fetch_ms} ms, evaluated in {answer.evaluate_ms} ms
      </p>
      <Tabs
        label="Answer"
        value={view}
        onChange={onView}
        tabs={[
          { id: "table", name: "Table", content: rows.length === 0 ? <Empty title="No rows" /> : <Table<Row> label="Answer" columns={columns} rows={rows} rowId={(row) => String(row.index)} /> },
          { id: "chart", name: "Chart", content: <Chart answer={answer} /> },
        ]}
      />
    </>
  );
}

function Cell({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <span className="text-faint">NULL</span>;
  const text = typeof value === "string" ? value : typeof value === "number" ? count(value) : JSON.stringify(value);
  return <span title={text}>{text}</span>;
}
