import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

const EXAMPLE = { executor: "remote", timeout: "1m", retry: { attempts: 3 } };

/** Declares a function, or replaces the version that was shown. */
export function FunctionDialog({ existing, onClose }: { existing?: Schemas["Function"]; onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState(existing?.name ?? "");
  const [text, setText] = useState(JSON.stringify(existing?.declaration ?? EXAMPLE, null, 2));
  const [error, setError] = useState<unknown>();
  const parsed = parseJson(text);
  const submit = async () => {
    try {
      const headers: Record<string, string> = existing ? { "If-Match": `"${existing.version}"` } : { "If-None-Match": "*" };
      await data(api.PUT("/v1/functions/{name}", { params: { path: { name } }, headers, body: parsed.value as never }));
      toast(`Function ${name} saved`);
      onClose();
      void client.invalidateQueries({ queryKey: ["functions"] });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={existing ? `Change ${existing.name}` : "New function"}
      footer={
        <>
          <div className="mr-auto flex">
            <Copy text={cli("functions", "put", name || "NAME", JSON.stringify(parsed.value))}>Copy as CLI</Copy>
            <Copy text={curl("PUT", `/v1/functions/${name}`, parsed.value)}>Copy as curl</Copy>
          </div>
          <Button look="primary" disabled={name === "" || parsed.problem !== undefined} onClick={() => void submit()}>Save</Button>
        </>
      }
    >
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        {!existing && <TextField name="Name" value={name} onChange={setName} autoFocus />}
        <AreaField name="Declaration, JSON" value={text} onChange={setText} rows={12} error={parsed.problem} />
        {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
      </form>
    </Dialog>
  );
}
