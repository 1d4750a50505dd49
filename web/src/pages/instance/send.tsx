import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import { useHistory, useInstance } from "../../api/instances";
import { useOrchestrations } from "../../api/server";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, TextField } from "../../ui/field";
import { type JsonSchema, SchemaForm, hasForm } from "../../ui/schema-form";
import { messageOf } from "../../ui/states";

/** Raises a signal or puts a message into a mailbox; names that the instance waits for are offered. */
export function SendDialog({ id, channel, onClose }: { id: string; channel: "signal" | "mailbox"; onClose: () => void }) {
  const client = useQueryClient();
  const awaited = useAwaited(id, channel);
  const [name, setName] = useState<string>();
  const [text, setText] = useState("null");
  const [error, setError] = useState<string>();
  const shown = name ?? awaited[0] ?? "";
  const parsed = parseJson(text);
  const schema = useMessageSchema(id, shown);
  const verb = channel === "signal" ? "raise" : "enqueue";
  const body = { name: shown, data: parsed.value };

  const submit = async () => {
    if (parsed.problem !== undefined || shown === "") return;
    try {
      const params = { path: { id } };
      await data(channel === "signal" ? api.POST("/v1/instances/{id}/raise", { params, body }) : api.POST("/v1/instances/{id}/enqueue", { params, body }));
      toast(channel === "signal" ? `Signal ${shown} raised` : `Message put into ${shown}`);
      onClose();
      void client.invalidateQueries({ queryKey: ["instance", id] });
    } catch (failure) {
      setError(messageOf(failure));
    }
  };

  return (
    <Dialog
      open
      onClose={onClose}
      title={channel === "signal" ? "Raise a signal" : "Put a message into a mailbox"}
      footer={
        <>
          <div className="mr-auto flex">
            <Copy text={cli(channel === "signal" ? "signal" : "enqueue", id, shown, "--data", text)}>Copy as CLI</Copy>
            <Copy text={curl("POST", `/v1/instances/${encodeURIComponent(id)}/${verb}`, body)}>Copy as curl</Copy>
          </div>
          <Button look="primary" disabled={shown === "" || parsed.problem !== undefined} onClick={() => void submit()}>Send</Button>
        </>
      }
    >
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <TextField name="Name" value={shown} onChange={setName} list={awaited} autoFocus hint={awaited.length > 0 ? `It waits for: ${awaited.join(", ")}` : undefined} />
        {hasForm(schema) && parsed.problem === undefined && (
          <SchemaForm schema={schema} value={typeof parsed.value === "object" && parsed.value !== null ? (parsed.value as Record<string, unknown>) : {}} onChange={(value) => setText(JSON.stringify(value, null, 2))} />
        )}
        <AreaField name="Data, JSON" value={text} onChange={setText} error={parsed.problem ?? error} />
      </form>
    </Dialog>
  );
}

/** What the orchestration says that a signal or mailbox takes. */
function useMessageSchema(id: string, name: string): JsonSchema | undefined {
  const orchestration = useInstance(id).data?.orchestration;
  const known = useOrchestrations().data?.orchestrations.find((each) => each.name === orchestration);
  return known?.messages?.[name] as JsonSchema | undefined;
}

function useAwaited(id: string, channel: string): string[] {
  const instance = useInstance(id).data;
  const events = useHistory(id, instance?.execution, false).data ?? [];
  const open = new Map<number, string>();
  for (const event of events) {
    const fields = (event.data ?? {}) as { channel?: string; name?: string; source?: number };
    if (event.kind === "MessageSubscribed" && fields.channel === channel && fields.name) open.set(event.id, fields.name);
    if (event.kind === "MessageSubscriptionCancelled" && fields.source !== undefined) open.delete(fields.source);
    if (event.kind === "MessageReceived") {
      const first = [...open].find(([, name]) => name === fields.name);
      if (first) open.delete(first[0]);
    }
  }
  return [...new Set(open.values())];
}
