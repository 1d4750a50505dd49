import { useState } from "react";
import type { HookEvent, useDeliveries } from "../../api/hooks";
import { useMay } from "../../api/me";
import { bytes, words } from "../../lib/format";
import { Badge, type Tone } from "../../ui/status";
import { Empty, Unready } from "../../ui/states";
import { type Column, Table } from "../../ui/table";
import { Time } from "../../ui/time";
import { PayloadDialog } from "./payload-dialog";

const COLUMNS: Column<HookEvent>[] = [
  { id: "at", name: "Received", width: "120px", cell: (row) => <Time at={row.at} /> },
  { id: "route", name: "Route", width: "minmax(120px,1fr)", cell: (row) => <span className="font-medium">{row.route}</span> },
  { id: "outcome", name: "Outcome", width: "150px", cell: (row) => <Badge tone={toneOfOutcome(row.outcome.kind)}>{words(row.outcome.kind)}</Badge> },
  { id: "why", name: "What became of it", width: "minmax(200px,2fr)", cell: (row) => <span className={row.outcome.reason ? "text-bad" : "text-dim"} title={row.outcome.reason ?? undefined}>{row.outcome.reason ?? row.outcome.function ?? row.outcome.orchestration}</span> },
  { id: "type", name: "Type", width: "150px", cell: (row) => <span className="text-dim">{row.content_type}</span> },
  { id: "size", name: "Body", width: "90px", right: true, cell: (row) => bytes(row.body_bytes) },
];

function toneOfOutcome(kind: string): Tone {
  if (/refus|reject|fail/.test(kind)) return "bad";
  if (/duplicate|filter|store/.test(kind)) return "mute";
  return "good";
}

/** What became of requests, newest first, as they come in. */
export function Deliveries({ query }: { query: ReturnType<typeof useDeliveries> }) {
  const [open, setOpen] = useState<HookEvent>();
  const maySeeBodies = useMay("operate");
  if (!query.data) return <Unready query={query} />;
  if (query.rows.length === 0) return <Empty icon="hook" title="Nothing has come in yet" />;
  return (
    <>
      <Table label="Deliveries" columns={COLUMNS} rows={query.rows} rowId={(row) => row.id} onOpen={maySeeBodies ? (row) => row.payload && setOpen(row) : undefined} footer={!maySeeBodies && <p className="px-5 py-3 text-xs text-faint">Bodies and headers may have secrets of the sender in them: they are shown to operators and administrators.</p>} onEnd={query.hasNextPage && !query.isFetchingNextPage ? () => void query.fetchNextPage() : undefined} />
      {open?.payload && <PayloadDialog route={open.route} id={open.payload} onClose={() => setOpen(undefined)} />}
    </>
  );
}
