import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { FormDialog } from "../../shell/form-dialog";
import { toast } from "../../shell/toasts";
import { AreaField, TextField } from "../../ui/field";

export function StartRun({ dag, onClose }: { dag: Schemas["DagDetails"]; onClose: () => void }) {
  const navigate = useNavigate();
  const [partition, setPartition] = useState("");
  const [key, setKey] = useState("");
  const [text, setText] = useState(JSON.stringify(Object.fromEntries((dag.params ?? []).map((param) => [param.name, param.default ?? null])), null, 2));
  const parsed = parseJson(text);
  const params = (parsed.value as Record<string, unknown> | null) ?? {};
  const hasParams = Object.keys(params).length > 0;
  const body = { dag: dag.name, params, partition: partition || undefined, run_key: key || undefined } as Schemas["StartRun"];
  return (
    <FormDialog
      title={`Start a run of ${dag.name}`}
      verb="Start"
      isReady={parsed.problem === undefined && (!dag.partitioned_by || partition !== "")}
      run={async () => {
        const run = await data(api.POST("/v1/runs", { body }));
        if (!run.created) toast("A run with this key existed already: it is shown");
        void navigate({ to: "/runs/$id", params: { id: run.id }, search: {} });
      }}
      done="Run started"
      cli={() => cli("run", "start", dag.name, ...(hasParams ? ["--params", JSON.stringify(params)] : []), ...(partition ? ["--partition", partition] : []), ...(key ? ["--run-key", key] : []))}
      curl={() => curl("POST", "/v1/runs", body)}
      onClose={onClose}
    >
      {dag.partitioned_by && <TextField name={`Partition (${dag.partitioned_by})`} value={partition} onChange={setPartition} autoFocus placeholder="2026-01-05" />}
      <AreaField name="Parameters, JSON" value={text} onChange={setText} rows={5} error={parsed.problem} />
      <TextField name="Run key" value={key} onChange={setKey} hint="The same key is the same run." />
    </FormDialog>
  );
}
