import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import type { Instance } from "../../api/instances";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, TextField } from "../../ui/field";
import { ReasonField, useReason } from "../../ui/reason";
import { Loading, messageOf } from "../../ui/states";

/** Restarts an instance with an input that may be changed before, also under a new id. */
export function RestartDialog({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const { id } = instance;
  const client = useQueryClient();
  const navigate = useNavigate();
  const last = useLastInput(instance);
  const [text, setText] = useState<string>();
  const [newId, setNewId] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const reason = useReason();
  const shown = text ?? (last.data === undefined ? "" : JSON.stringify(last.data.input, null, 2));
  const parsed = parseJson(shown);
  const isChanged = last.data !== undefined && JSON.stringify(parsed.value) !== JSON.stringify(last.data.input);
  const under = newId.trim() || undefined;
  const body: Schemas["Restart"] = { ...(isChanged ? { input: parsed.value as Schemas["Json"] } : {}), new_id: under, reason: reason.given };

  const submit = async () => {
    if (parsed.problem !== undefined || isBusy) return;
    setError(undefined);
    setIsBusy(true);
    try {
      await data(api.POST("/v1/instances/{id}/restart", { params: { path: { id } }, body }));
      toast(under ? `${under} started` : "Restarted");
      onClose();
      void client.invalidateQueries();
      if (under) void navigate({ to: "/instances/$id", params: { id: under }, search: {} });
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="Restart with another input"
      description="The next execution begins with this input; earlier ones stay. Under a new id, this instance stays as it is."
      footer={
        <>
          <div className="mr-auto flex">
            <Copy text={cli("restart", id, ...(isChanged ? ["--input", JSON.stringify(parsed.value)] : []), ...(under ? ["--new-id", under] : []), ...(reason.given ? ["--reason", reason.given] : []))}>Copy as CLI</Copy>
            <Copy text={curl("POST", `/v1/instances/${encodeURIComponent(id)}/restart`, body)}>Copy as curl</Copy>
          </div>
          <Button look="primary" disabled={!last.data || parsed.problem !== undefined || isBusy} onClick={() => void submit()}>{isBusy ? "Working…" : "Restart it"}</Button>
        </>
      }
    >
      {last.error ? <p role="alert" className="text-bad">{messageOf(last.error)}</p> : !last.data ? <Loading rows={3} /> : (
        <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
          <AreaField name="Input, JSON" value={shown} onChange={setText} rows={8} error={parsed.problem} hint={isChanged ? "Changed: differs from the input of the last start." : "The input of the last start."} />
          <TextField name="New id" value={newId} onChange={setNewId} hint="Left out: the same instance begins again." />
          <ReasonField reason={reason} />
          {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
          <button type="submit" hidden />
        </form>
      )}
    </Dialog>
  );
}

/** The input with which the instance was started last: of the function, for a call. */
function useLastInput(instance: Instance) {
  return useQuery({
    queryKey: ["instance", instance.id, "last-input", instance.execution],
    queryFn: async () => {
      if (instance.call) return { input: (instance.call.input ?? null) as unknown };
      const { events } = await data(api.GET("/v1/instances/{id}/history", { params: { path: { id: instance.id }, query: { limit: 1 } } }));
      return { input: (events[0]?.data as { input?: unknown } | undefined)?.input ?? null };
    },
  });
}
