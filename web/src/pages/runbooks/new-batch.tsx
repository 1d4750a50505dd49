import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "../../api/client";
import { curl } from "../../lib/command";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

export function NewBatch({ runbook, onClose }: { runbook: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [csv, setCsv] = useState("");
  const [start, setStart] = useState("");
  const [error, setError] = useState<unknown>();
  const body = { runbook, members_csv: csv, batch_start_time: start ? new Date(start).toISOString() : undefined };
  const submit = async () => {
    try {
      const batch = await data(api.POST("/v1/batches", { body }));
      toast(`Batch ${batch.id} created`);
      void navigate({ to: "/batches/$id", params: { id: String(batch.id) }, search: {} });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog open wide onClose={onClose} title={`New batch of ${runbook}`} footer={<><div className="mr-auto"><Copy text={curl("POST", "/v1/batches", body)}>Copy as curl</Copy></div><Button look="primary" disabled={csv.trim() === ""} onClick={() => void submit()}>Create</Button></>}>
      <div className="flex flex-col gap-3">
        <AreaField name="Members, CSV" value={csv} onChange={setCsv} rows={8} placeholder={"Guest,Table\nAda,oak\nGrace,elm"} hint="The first line names the columns." />
        <label className="text-dim">
          or from a file: <input type="file" accept=".csv,text/csv" onChange={(event) => void event.target.files?.[0]?.text().then(setCsv)} />
        </label>
        <TextField name="Start, local time" type="datetime-local" value={start} onChange={setStart} hint="Phases are due relative to it. Left out: people advance the batch." />
        {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
      </div>
    </Dialog>
  );
}
