import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

export function StartRun({ dag, onClose }: { dag: Schemas["DagDetails"]; onClose: () => void }) {
  const navigate = useNavigate();
  const [partition, setPartition] = useState("");
  const [key, setKey] = useState("");
  const [text, setText] = useState(JSON.stringify(Object.fromEntries((dag.params ?? []).map((param) => [param.name, param.default ?? null])), null, 2));
  const [error, setError] = useState<unknown>();
  const parsed = parseJson(text);
  const body = { dag: dag.name, params: (parsed.value as Record<string, unknown> | null) ?? {}, partition: partition || undefined, run_key: key || undefined } as Schemas["StartRun"];
  const submit = async () => {
    try {
      const run = await data(api.POST("/v1/runs", { body }));
      toast(run.created ? "Run started" : "This run existed already");
      void navigate({ to: "/runs/$id", params: { id: run.id }, search: {} });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog open onClose={onClose} title={`Start a run of ${dag.name}`} footer={<><div className="mr-auto"><Copy text={curl("POST", "/v1/runs", body)}>Copy as curl</Copy></div><Button look="primary" disabled={parsed.problem !== undefined} onClick={() => void submit()}>Start</Button></>}>
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        {dag.partitioned_by && <TextField name={`Partition (${dag.partitioned_by})`} value={partition} onChange={setPartition} autoFocus placeholder="2026-01-05" />}
        <AreaField name="Parameters, JSON" value={text} onChange={setText} rows={5} error={parsed.problem} />
        <TextField name="Run key" value={key} onChange={setKey} hint="The same key is the same run." />
        {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
