import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import { useHistory, useInstance } from "../../api/instances";
import { useOrchestrations } from "../../api/server";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { FormDialog } from "../../shell/form-dialog";
import { AreaField, TextField } from "../../ui/field";
import { type JsonSchema, SchemaForm, hasForm } from "../../ui/schema-form";

/** Raises a signal or puts a message into a mailbox; names that the instance waits for are offered. */
export function SendDialog({ id, channel, onClose }: { id: string; channel: "signal" | "mailbox"; onClose: () => void }) {
  const client = useQueryClient();
  const awaited = useAwaited(id, channel);
  const [name, setName] = useState<string>();
  const [text, setText] = useState("null");
  const shown = name ?? awaited[0] ?? "";
  const parsed = parseJson(text);
  const schema = useMessageSchema(id, shown);
  const verb = channel === "signal" ? "raise" : "enqueue";
  const body = { name: shown, data: parsed.value };

  const params = { path: { id } };
  return (
    <FormDialog
      title={channel === "signal" ? "Raise a signal" : "Put a message into a mailbox"}
      verb="Send"
      isReady={shown !== "" && parsed.problem === undefined}
      run={() => data(channel === "signal" ? api.POST("/v1/instances/{id}/raise", { params, body }) : api.POST("/v1/instances/{id}/enqueue", { params, body }))}
      done={channel === "signal" ? `Signal ${shown} raised` : `Message put into ${shown}`}
      cli={() => cli(channel === "signal" ? "signal" : "enqueue", id, shown || "NAME", "--data", JSON.stringify(parsed.value ?? null))}
      curl={() => curl("POST", `/v1/instances/${encodeURIComponent(id)}/${verb}`, body)}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ["instance", id] })}
    >
      <TextField name="Name" value={shown} onChange={setName} list={awaited} autoFocus hint={awaited.length > 0 ? `It waits for: ${awaited.join(", ")}` : undefined} />
      {hasForm(schema) && parsed.problem === undefined && (
        <SchemaForm schema={schema} value={typeof parsed.value === "object" && parsed.value !== null ? (parsed.value as Record<string, unknown>) : {}} onChange={(value) => setText(JSON.stringify(value, null, 2))} />
      )}
      <AreaField name="Data, JSON" value={text} onChange={setText} error={parsed.problem} />
    </FormDialog>
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
