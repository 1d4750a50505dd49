import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type Hook, type Declaration, hookTarget, useDeliveries, useHooks, verificationOf } from "../../api/hooks";
import { useMay } from "../../api/me";
import { useAddress } from "../../lib/address";
import { basePath } from "../../lib/base";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { ListPage } from "../../ui/list-page";
import { Page } from "../../ui/page";
import { Badge, Status } from "../../ui/status";
import type { Column } from "../../ui/table";
import { Deliveries } from "./deliveries";
import { HookDialog } from "./hook-dialog";

export function urlOf(hook: Hook): string {
  return window.location.origin + basePath.replace(/\/$/, "") + hook.path;
}

const COLUMNS: Column<Hook>[] = [
  { id: "status", name: "Status", width: "100px", cell: (row) => <Status status={(row.declaration as Declaration).enabled === false ? "paused" : "active"} /> },
  { id: "name", name: "Route", width: "minmax(140px,1fr)", cell: (row) => <Link to="/webhooks/$name" params={{ name: row.name }} search={{}} className="font-medium hover:underline">{row.name}</Link> },
  { id: "runs", name: "Runs", width: "minmax(120px,1fr)", cell: hookTarget },
  { id: "verify", name: "Verification", width: "150px", cell: (row) => <Badge tone={verificationOf(row) === "none" ? "warn" : "mute"}>{verificationOf(row)}</Badge> },
  { id: "url", name: "Address", width: "minmax(240px,2fr)", cell: (row) => <span className="flex items-center gap-1"><code className="truncate font-mono text-xs text-dim">{urlOf(row)}</code><Copy text={urlOf(row)} label={`Copy the address of ${row.name}`} /></span> },
];

/** Webhook routes, and what came in lately. */
export function WebhooksPage() {
  const [{ view }, setAddress] = useAddress();
  const hooks = useHooks();
  const deliveries = useDeliveries(undefined);
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const [isNew, setIsNew] = useState(false);
  const tabs = (
    <>
      <Button look={view === "deliveries" ? "ghost" : "plain"} aria-pressed={view !== "deliveries"} onClick={() => setAddress({ view: undefined })}>Routes</Button>
      <Button look={view === "deliveries" ? "plain" : "ghost"} aria-pressed={view === "deliveries"} onClick={() => setAddress({ view: "deliveries" })}>Live deliveries</Button>
      {mayChange && <Button look="primary" icon="plus" onClick={() => setIsNew(true)}>New route</Button>}
    </>
  );
  return (
    <>
      {view === "deliveries" ? (
        <Page title="Webhooks" actions={tabs}><Deliveries query={deliveries} /></Page>
      ) : (
        <ListPage
          title="Webhooks"
          actions={tabs}
          same={{ command: ["hook", "list"], path: "/v1/hooks" }}
          query={hooks}
          rows={hooks.rows}
          columns={COLUMNS}
          rowId={(row) => row.name}
          textOf={(row) => [row.name, hookTarget(row)]}
          onOpen={(row) => void navigate({ to: "/webhooks/$name", params: { name: row.name }, search: {} })}
          empty={{ icon: "hook", title: "No webhook routes", text: "A route takes what a sender posts, and calls a function with it." }}
        />
      )}
      {isNew && <HookDialog onClose={() => setIsNew(false)} />}
    </>
  );
}
