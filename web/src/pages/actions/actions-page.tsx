import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { useMay } from "../../api/me";
import { usePages } from "../../api/pages";
import { useAddress } from "../../lib/address";
import { Button } from "../../ui/button";
import { ListPage } from "../../ui/list-page";
import { Status } from "../../ui/status";
import type { Column } from "../../ui/table";
import { Time } from "../../ui/time";
import { ActionDetail } from "./action-detail";
import { NewAction } from "./new-action";

export type Action = Schemas["Action"];

export function dueOf(action: Action): string {
  return action.trigger.type === "scheduled" ? action.trigger.next_tick_at : action.trigger.received_at;
}

const COLUMNS: Column<Action>[] = [
  { id: "status", name: "Status", width: "110px", cell: (row) => <Status status={row.status.type} />, sort: (row) => row.status.type },
  { id: "label", name: "Action", width: "minmax(180px,1.4fr)", cell: (row) => <span className="font-medium" title={row.id}>{row.label || row.id}</span>, sort: (row) => row.label || row.id },
  { id: "runs", name: "Runs", width: "minmax(120px,1fr)", cell: (row) => row.orchestration ?? row.tool_name, sort: (row) => row.orchestration ?? row.tool_name },
  { id: "trigger", name: "Trigger", width: "110px", cell: (row) => <span className="text-dim">{row.trigger.type === "scheduled" ? "at a time" : "webhook"}</span> },
  { id: "due", name: "Due or received", width: "130px", cell: (row) => <Time at={dueOf(row)} />, sort: (row) => Date.parse(dueOf(row)) },
  { id: "why", name: "What happened", width: "minmax(180px,1.5fr)", cell: (row) => (row.status.type === "failed" ? <span className="text-bad" title={row.status.reason}>{row.status.reason}</span> : <span className="text-dim">{row.note}</span>) },
  { id: "updated", name: "Updated", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.updated_at} /></span>, sort: (row) => Date.parse(row.updated_at) },
];

/** Functions and orchestrations that are called once: at a time, or because a webhook came in. */
export function ActionsPage() {
  const mayChange = useMay("operate");
  const [{ name: open }, setAddress] = useAddress();
  const setOpen = (id: string | undefined) => setAddress({ name: id });
  const [isNew, setIsNew] = useState(false);
  const actions = usePages(
    ["live", "actions"],
    (cursor) => data(api.GET("/v1/actions", { params: { query: { cursor, limit: 100 } } })),
    (page) => page.actions,
  );
  return (
    <>
      <ListPage
        title="Actions"
        actions={mayChange && <Button look="primary" icon="plus" onClick={() => setIsNew(true)}>New action</Button>}
        same={{ command: ["action", "list"], path: "/v1/actions" }}
        query={actions}
        rows={actions.rows}
        columns={COLUMNS}
        rowId={(row) => row.id}
        textOf={(row) => [row.id, row.label, row.tool_name, row.orchestration, row.status.type]}
        onOpen={(row) => setOpen(row.id)}
        empty={{ icon: "bolt", title: "No actions", text: "An action calls a function at a time, or because a webhook came in." }}
      />
      {open && <ActionDetail id={open} onClose={() => setOpen(undefined)} />}
      {isNew && <NewAction onClose={() => setIsNew(false)} />}
    </>
  );
}
