import { Link, useNavigate } from "@tanstack/react-router";
import { type Batch, type Runbook, useBatches, useRunbooks } from "../../api/runbooks";
import { useMay } from "../../api/me";
import { useAddress } from "../../lib/address";
import { count } from "../../lib/format";
import { millis } from "../../lib/time";
import { Button } from "../../ui/button";
import { ListPage } from "../../ui/list-page";
import { Status } from "../../ui/status";
import type { Column } from "../../ui/table";
import { Time } from "../../ui/time";

const RUNBOOKS: Column<Runbook>[] = [
  { id: "name", name: "Runbook", width: "minmax(160px,1fr)", cell: (row) => <Link to="/runbooks/$name" params={{ name: row.name }} search={{}} className="font-medium hover:underline">{row.name}</Link>, sort: (row) => row.name },
  { id: "description", name: "Description", width: "minmax(200px,2fr)", cell: (row) => <span className="text-dim" title={row.description ?? undefined}>{row.description}</span> },
  { id: "version", name: "Version", width: "80px", right: true, cell: (row) => row.active_version, sort: (row) => row.active_version },
  { id: "automation", name: "Query", width: "150px", cell: (row) => (row.automation?.enabled ? <span>on, next <Time at={row.automation.next_run_at} /></span> : <span className="text-faint">off</span>) },
  { id: "updated", name: "Updated", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.updated_at} /></span>, sort: (row) => Date.parse(row.updated_at) },
];

export const BATCHES: Column<Batch>[] = [
  { id: "status", name: "Status", width: "130px", cell: (row) => <Status status={row.paused_at ? "paused" : row.status} />, sort: (row) => row.status },
  { id: "id", name: "Batch", width: "minmax(160px,1fr)", cell: (row) => <Link to="/batches/$id" params={{ id: String(row.id) }} search={{}} className="font-medium hover:underline">{row.runbook_name} #{row.id}</Link>, sort: (row) => row.id },
  { id: "version", name: "Version", width: "80px", right: true, cell: (row) => row.runbook_version },
  { id: "members", name: "Members", width: "90px", right: true, cell: (row) => count(row.member_counts.active), sort: (row) => row.member_counts.active },
  { id: "failed", name: "Failed", width: "80px", right: true, cell: (row) => <span className={row.member_counts.failed > 0 ? "text-bad" : "text-faint"}>{count(row.member_counts.failed)}</span>, sort: (row) => row.member_counts.failed },
  { id: "start", name: "Start", width: "130px", cell: (row) => <Time at={row.batch_start_time} />, sort: (row) => millis(row.batch_start_time) },
  { id: "detected", name: "Created", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.detected_at} /></span>, sort: (row) => Date.parse(row.detected_at) },
  { id: "why", name: "What happened", width: "minmax(160px,1.5fr)", cell: (row) => <span className="text-dim">{row.error_message ?? row.pause_reason}</span> },
];

/** Runbooks, and the batches that they take through their phases. */
export function RunbooksPage() {
  const [{ view }, setAddress] = useAddress();
  const runbooks = useRunbooks();
  const batches = useBatches();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const actions = (
    <>
      <Button look={view === "runbooks" ? "ghost" : "plain"} aria-pressed={view !== "runbooks"} onClick={() => setAddress({ view: undefined })}>Batches</Button>
      <Button look={view === "runbooks" ? "plain" : "ghost"} aria-pressed={view === "runbooks"} onClick={() => setAddress({ view: "runbooks" })}>Runbooks</Button>
      {mayChange && <Button look="primary" icon="plus" onClick={() => void navigate({ to: "/runbooks/$name", params: { name: "new" }, search: { tab: "edit" } })}>New runbook</Button>}
    </>
  );
  return view === "runbooks" ? (
    <ListPage title="Runbooks" actions={actions} same={{ command: ["runbook", "list"], path: "/v1/runbooks" }} query={runbooks} rows={runbooks.rows} columns={RUNBOOKS} rowId={(row) => row.name} textOf={(row) => [row.name, row.description]} onOpen={(row) => void navigate({ to: "/runbooks/$name", params: { name: row.name }, search: {} })} empty={{ icon: "book", title: "No runbooks", text: "A runbook takes the members of a batch through phases, at times relative to its start." }} />
  ) : (
    <ListPage title="Runbooks" actions={actions} same={{ command: ["batch", "list"], path: "/v1/batches" }} query={batches} rows={batches.rows} columns={BATCHES} rowId={(row) => String(row.id)} textOf={(row) => [row.runbook_name, String(row.id), row.status]} onOpen={(row) => void navigate({ to: "/batches/$id", params: { id: String(row.id) }, search: {} })} empty={{ icon: "book", title: "No batches", text: "A batch is a list of members that a runbook takes through its phases. Make one on the page of a runbook." }} />
  );
}
