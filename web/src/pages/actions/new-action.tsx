import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { FormDialog } from "../../shell/form-dialog";
import { AreaField, TextField } from "../../ui/field";

export function NewAction({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const functions = useQuery({ queryKey: ["functions", "names"], queryFn: () => data(api.GET("/v1/functions")) });
  const [label, setLabel] = useState("");
  const [name, setName] = useState("");
  const [at, setAt] = useState("");
  const [input, setInput] = useState("null");
  const parsed = parseJson(input);
  const due = at ? new Date(at).toISOString() : undefined;
  const body = { tool_name: name, label: label || undefined, tool_input: parsed.value ?? null, next_tick_at: due };
  return (
    <FormDialog
      title="New action"
      description="Calls a function once, at a time."
      verb="Create"
      isReady={name !== "" && at !== "" && parsed.problem === undefined}
      run={() => data(api.POST("/v1/actions", { body }))}
      done="Action created"
      cli={() => cli("action", "add", ...(label ? [label] : []), "--function", name || "NAME", "--input", JSON.stringify(parsed.value ?? null), ...(due ? ["--at", due] : []))}
      curl={() => curl("POST", "/v1/actions", body)}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ["live", "actions"] })}
    >
      <TextField name="Label" value={label} onChange={setLabel} autoFocus />
      <TextField name="Function" value={name} onChange={setName} list={functions.data?.functions.map((each) => each.name)} />
      <TextField name="At, local time" type="datetime-local" value={at} onChange={setAt} />
      <AreaField name="Input, JSON" value={input} onChange={setInput} rows={4} error={parsed.problem} />
    </FormDialog>
  );
}
