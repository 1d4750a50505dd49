import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import type { Hook } from "../../api/hooks";
import { useScope } from "../../api/scope";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { FormDialog } from "../../shell/form-dialog";
import { AreaField, TextField } from "../../ui/field";

const EXAMPLE = { function: "echo", input: "{{payload}}", verification: "none" };

/** Creates a route, or replaces the version that was shown. */
export function HookDialog({ hook, onClose }: { hook?: Hook; onClose: () => void }) {
  const client = useQueryClient();
  const { namespace } = useScope();
  const [name, setName] = useState(hook?.name ?? "");
  const [text, setText] = useState(JSON.stringify(hook?.declaration ?? EXAMPLE, null, 2));
  const parsed = parseJson(text);
  const headers: Record<string, string> = hook ? { "If-Match": `"${hook.version}"` } : { "If-None-Match": "*" };
  return (
    <FormDialog
      wide
      title={hook ? `Change ${hook.name}` : "New route"}
      verb="Save"
      isReady={name !== "" && parsed.problem === undefined}
      run={() => data(api.PUT("/v1/hooks/{namespace}/{route}", { params: { path: { namespace, route: name } }, headers, body: parsed.value as never }))}
      done={`Route ${name} saved`}
      cli={() => cli("hook", hook ? "update" : "create", name || "NAME", "--declaration", JSON.stringify(parsed.value ?? null))}
      curl={() => curl("PUT", `/v1/hooks/${namespace}/${name || "NAME"}`, parsed.value)}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ["hooks"] })}
    >
      {!hook && <TextField name="Name" value={name} onChange={setName} autoFocus />}
      <AreaField name="Declaration, JSON" value={text} onChange={setText} rows={12} error={parsed.problem} hint="Fields: function or orchestration, input (a template), verification, headers, deduplication." />
    </FormDialog>
  );
}
