import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { FormDialog } from "../../shell/form-dialog";
import { AreaField, TextField } from "../../ui/field";

const EXAMPLE = { executor: "remote", timeout: "1m", retry: { attempts: 3 } };

/** Declares a function, or replaces the version that was shown. */
export function FunctionDialog({ existing, onClose }: { existing?: Schemas["Function"]; onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState(existing?.name ?? "");
  const [text, setText] = useState(JSON.stringify(existing?.declaration ?? EXAMPLE, null, 2));
  const parsed = parseJson(text);
  const headers: Record<string, string> = existing ? { "If-Match": `"${existing.version}"` } : { "If-None-Match": "*" };
  return (
    <FormDialog
      wide
      title={existing ? `Change ${existing.name}` : "New function"}
      verb="Save"
      isReady={name !== "" && parsed.problem === undefined}
      run={() => data(api.PUT("/v1/functions/{name}", { params: { path: { name } }, headers, body: parsed.value as never }))}
      done={`Function ${name} saved`}
      cli={() => cli("functions", "put", name || "NAME", JSON.stringify(parsed.value ?? null))}
      curl={() => curl("PUT", `/v1/functions/${name || "NAME"}`, parsed.value)}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ["functions"] })}
    >
      {!existing && <TextField name="Name" value={name} onChange={setName} autoFocus />}
      <AreaField name="Declaration, JSON" value={text} onChange={setText} rows={12} error={parsed.problem} />
    </FormDialog>
  );
}
