import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import type { Hook } from "../../api/hooks";
import { useScope } from "../../api/scope";
import { curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

const EXAMPLE = { function: "echo", input: "{{payload}}", verification: "none" };

/** Creates a route, or replaces the version that was shown. */
export function HookDialog({ hook, onClose }: { hook?: Hook; onClose: () => void }) {
  const client = useQueryClient();
  const { namespace } = useScope();
  const [name, setName] = useState(hook?.name ?? "");
  const [text, setText] = useState(JSON.stringify(hook?.declaration ?? EXAMPLE, null, 2));
  const [error, setError] = useState<unknown>();
  const parsed = parseJson(text);
  const submit = async () => {
    try {
      const headers: Record<string, string> = hook ? { "If-Match": `"${hook.version}"` } : { "If-None-Match": "*" };
      await data(api.PUT("/v1/hooks/{namespace}/{route}", { params: { path: { namespace, route: name } }, headers, body: parsed.value as never }));
      toast(`Route ${name} saved`);
      onClose();
      void client.invalidateQueries({ queryKey: ["hooks"] });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={hook ? `Change ${hook.name}` : "New route"}
      footer={
        <>
          <div className="mr-auto"><Copy text={curl("PUT", `/v1/hooks/${namespace}/${name}`, parsed.value)}>Copy as curl</Copy></div>
          <Button look="primary" disabled={name === "" || parsed.problem !== undefined} onClick={() => void submit()}>Save</Button>
        </>
      }
    >
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        {!hook && <TextField name="Name" value={name} onChange={setName} autoFocus />}
        <AreaField name="Declaration, JSON" value={text} onChange={setText} rows={12} error={parsed.problem} hint="Fields: function or orchestration, input (a template), verification, headers, deduplication." />
        {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
      </form>
    </Dialog>
  );
}
