import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "../../api/client";
import { cli, curl, piped } from "../../lib/command";
import { FormDialog } from "../../shell/form-dialog";
import { AreaField, TextField } from "../../ui/field";

export function NewBatch({ runbook, onClose }: { runbook: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [csv, setCsv] = useState("");
  const [start, setStart] = useState("");
  const from = start ? new Date(start).toISOString() : undefined;
  const body = { runbook, members_csv: csv, batch_start_time: from };
  return (
    <FormDialog
      wide
      title={`New batch of ${runbook}`}
      verb="Create"
      isReady={csv.trim() !== ""}
      run={async () => {
        const batch = await data(api.POST("/v1/batches", { body }));
        void navigate({ to: "/batches/$id", params: { id: String(batch.id) }, search: {} });
      }}
      done="Batch created"
      cli={() => piped(csv, cli("batch", "create", "--runbook", runbook, "--members", "-", ...(from ? ["--start", from] : [])))}
      curl={() => curl("POST", "/v1/batches", body)}
      onClose={onClose}
    >
      <AreaField name="Members, CSV" value={csv} onChange={setCsv} rows={8} placeholder={"Guest,Table\nAda,oak\nGrace,elm"} hint="The first line names the columns." />
      <label className="text-dim">
        or from a file: <input type="file" accept=".csv,text/csv" onChange={(event) => void event.target.files?.[0]?.text().then(setCsv)} />
      </label>
      <TextField name="Start, local time" type="datetime-local" value={start} onChange={setStart} hint="Phases are due relative to it. Left out: people advance the batch." />
    </FormDialog>
  );
}
