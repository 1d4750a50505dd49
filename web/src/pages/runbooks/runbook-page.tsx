import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "../../api/client";
import { ApiError } from "../../api/errors";
import { useMay } from "../../api/me";
import { type Runbook, useBatches } from "../../api/runbooks";
import { useScope } from "../../api/scope";
import { useAddress } from "../../lib/address";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Page } from "../../ui/page";
import { Empty, Unready } from "../../ui/states";
import { Table } from "../../ui/table";
import { Tabs } from "../../ui/tabs";
import { Audit } from "../admin/audit-list";
import { NewBatch } from "./new-batch";
import { RunbookEditor } from "./runbook-editor";
import { DataSource } from "./data-source";
import { BATCHES } from "./runbooks-page";

export function RunbookPage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const scope = useScope();
  const [{ tab = "batches" }, setAddress] = useAddress();
  const isAdmin = useMay("admin");
  const [isNew, setIsNew] = useState(false);
  const query = useQuery({ queryKey: ["runbooks", name, scope], queryFn: () => data(api.GET("/v1/runbooks/{name}", { params: { path: { name } } })) });
  const isUnpublished = query.error instanceof ApiError && query.error.status === 404;
  if (!query.data && !isUnpublished) return <Page title={name}><Unready query={query} /></Page>;
  if (!query.data) return <Page title="New runbook"><div className="h-full p-5"><RunbookEditor /></div></Page>;
  return (
    <Page title={name} actions={<Actions runbook={query.data} onNew={() => setIsNew(true)} />}>
      <Tabs
        label="Parts of the runbook"
        value={tab}
        onChange={(next) => setAddress({ tab: next === "batches" ? undefined : next })}
        tabs={[
          { id: "batches", name: "Batches", content: <Batches name={name} /> },
          { id: "edit", name: "Document", content: <div className="h-full p-5"><RunbookEditor runbook={query.data} /></div> },
          { id: "source", name: "Data source", content: <DataSource runbook={query.data} /> },
          ...(isAdmin ? [{ id: "audit", name: "Audit", content: <Audit resource={`/v1/runbooks/${name}`} /> }] : []),
        ]}
      />
      {isNew && <NewBatch runbook={name} onClose={() => setIsNew(false)} />}
    </Page>
  );
}

function Batches({ name }: { name: string }) {
  const batches = useBatches(name);
  const navigate = useNavigate();
  if (!batches.data) return <Unready query={batches} />;
  if (batches.rows.length === 0) return <Empty icon="book" title="No batch yet" />;
  return <Table label="Batches" columns={BATCHES} rows={batches.rows} rowId={(row) => String(row.id)} onOpen={(row) => void navigate({ to: "/batches/$id", params: { id: String(row.id) }, search: {} })} onEnd={batches.hasNextPage && !batches.isFetchingNextPage ? () => void batches.fetchNextPage() : undefined} />;
}

function Actions({ runbook, onNew }: { runbook: Runbook; onNew: () => void }) {
  const change = useChange();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  if (!mayChange) return null;
  const remove = () => change({
    title: `Delete the runbook ${runbook.name}`, verb: "Delete it", isDangerous: true, description: "With all its versions. Refused while it has batches.",
    run: async () => {
      await data(api.DELETE("/v1/runbooks/{name}", { params: { path: { name: runbook.name } } }));
      void navigate({ to: "/runbooks", search: {} });
    },
    cli: () => cli("runbook", "delete", runbook.name), curl: () => curl("DELETE", `/v1/runbooks/${runbook.name}`),
  });
  return <><Button look="primary" icon="plus" onClick={onNew}>New batch</Button><Button look="danger" onClick={remove}>Delete</Button></>;
}
