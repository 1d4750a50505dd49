import { Link } from "@tanstack/react-router";
import { type Instance, hasEnded, nameOf } from "../../api/instances";
import { words } from "../../lib/format";
import { millis } from "../../lib/time";
import { Id } from "../../ui/id";
import { Badge, Status } from "../../ui/status";
import type { Column } from "../../ui/table";
import { Span, Time } from "../../ui/time";

export const COLUMNS: Column<Instance>[] = [
  { id: "status", name: "Status", width: "112px", cell: (row) => <Status status={row.status} />, sort: (row) => row.status },
  {
    id: "id",
    name: "Instance",
    width: "minmax(220px,2fr)",
    cell: (row) => (
      <Link to="/instances/$id" params={{ id: row.id }} search={{}} className="font-medium hover:underline">
        <Id id={row.id} />
      </Link>
    ),
    sort: (row) => row.id,
  },
  { id: "name", name: "Runs", width: "minmax(120px,1fr)", cell: (row) => <span title={nameOf(row)}>{nameOf(row)}</span>, sort: nameOf },
  { id: "kind", name: "Made by", width: "92px", cell: (row) => <span className="text-dim">{madeBy(row)}</span>, sort: madeBy },
  { id: "why", name: "What happened", width: "minmax(160px,1.500fr)", cell: (row) => <What row={row} />, sort: (row) => row.failure && `${row.failure.code ?? row.failure.category}: ${row.failure.message}` },
  { id: "started", name: "Started", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.start_at ?? row.created_at} /></span>, sort: (row) => millis(row.start_at ?? row.created_at) },
  { id: "duration", name: "Duration", width: "88px", right: true, cell: (row) => <Span from={row.start_at ?? row.created_at} until={row.completed_at} ended={hasEnded(row.status)} />, sort: tookMs },
  { id: "updated", name: "Updated", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.updated_at} /></span>, sort: (row) => millis(row.updated_at) },
  { id: "version", name: "Version", width: "80px", cell: (row) => <span className="text-dim">{row.version}</span>, sort: (row) => row.version },
  { id: "execution", name: "Execution", width: "80px", right: true, cell: (row) => row.execution, sort: (row) => row.execution },
  {
    id: "labels",
    name: "Labels",
    width: "minmax(140px,1fr)",
    cell: (row) => (
      <span className="flex gap-1">
        {Object.entries(row.labels ?? {}).map(([key, value]) => <Badge key={key} title={`${key}=${value}`}>{key}={value}</Badge>)}
      </span>
    ),
  },
];

function madeBy(row: Instance): string {
  return row.kind ? words(row.kind) : row.parent ? "parent" : "caller";
}

/** How long it took, or takes by now. */
function tookMs(row: Instance): number {
  const ended = millis(row.completed_at) ?? (hasEnded(row.status) ? millis(row.updated_at) : undefined) ?? Date.now();
  return ended - (millis(row.start_at ?? row.created_at) ?? ended);
}

export const SHOWN_AT_FIRST = ["status", "id", "name", "kind", "why", "started", "duration"];

function What({ row }: { row: Instance }) {
  if (row.failure) {
    return (
      <span className="text-bad" title={row.failure.message}>
        {row.failure.code ?? row.failure.category}: {row.failure.message}
      </span>
    );
  }
  if (row.status === "paused") return <span className="text-warn">{row.pause_reason ?? "paused"}</span>;
  if (hasEnded(row.status)) return null;
  const text = row.call?.waits_for ?? (typeof row.custom_status === "string" ? row.custom_status : undefined);
  return <span className="text-dim" title={text}>{text}</span>;
}
