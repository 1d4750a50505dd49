import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import { curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

export function NewAction({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const functions = useQuery({ queryKey: ["functions", "names"], queryFn: () => data(api.GET("/v1/functions")) });
  const [label, setLabel] = useState("");
  const [name, setName] = useState("");
  const [at, setAt] = useState("");
  const [input, setInput] = useState("null");
  const [error, setError] = useState<unknown>();
  const parsed = parseJson(input);
  const body = { tool_name: name, label: label || undefined, tool_input: parsed.value ?? null, next_tick_at: at ? new Date(at).toISOString() : undefined };
  const submit = async () => {
    try {
      await data(api.POST("/v1/actions", { body }));
      toast("Action created");
      onClose();
      void client.invalidateQueries({ queryKey: ["live", "actions"] });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New action"
      description="Calls a function once, at a time."
      footer={<><div className="mr-auto"><Copy text={curl("POST", "/v1/actions", body)}>Copy as curl</Copy></div><Button look="primary" disabled={name === "" || at === "" || parsed.problem !== undefined} onClick={() => void submit()}>Create</Button></>}
    >
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <TextField name="Label" value={label} onChange={setLabel} autoFocus />
        <TextField name="Function" value={name} onChange={setName} list={functions.data?.functions.map((each) => each.name)} />
        <TextField name="At, local time" type="datetime-local" value={at} onChange={setAt} />
        <AreaField name="Input, JSON" value={input} onChange={setInput} rows={4} error={parsed.problem} />
        {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
