import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import type { Instance } from "../../api/instances";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { FormDialog } from "../../shell/form-dialog";
import { AreaField, TextField } from "../../ui/field";
import { Loading, messageOf } from "../../ui/states";

/** Restarts an instance with an input that may be changed before, also under a new id. */
export function RestartDialog({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const { id } = instance;
  const client = useQueryClient();
  const navigate = useNavigate();
  const last = useLastInput(instance);
  const [text, setText] = useState<string>();
  const [newId, setNewId] = useState("");
  const shown = text ?? (last.data === undefined ? "" : JSON.stringify(last.data.input, null, 2));
  const parsed = parseJson(shown);
  const isChanged = last.data !== undefined && JSON.stringify(parsed.value) !== JSON.stringify(last.data.input);
  const under = newId.trim() || undefined;
  const body = (reason: string | undefined): Schemas["Restart"] => ({ ...(isChanged ? { input: parsed.value as Schemas["Json"] } : {}), new_id: under, reason });
  return (
    <FormDialog
      title="Restart with another input"
      description="The next execution begins with this input; earlier ones stay. Under a new id, this instance stays as it is."
      verb="Restart it"
      takesReason
      isReady={last.data !== undefined && parsed.problem === undefined}
      run={async (reason) => {
        await data(api.POST("/v1/instances/{id}/restart", { params: { path: { id } }, body: body(reason) }));
        if (under) void navigate({ to: "/instances/$id", params: { id: under }, search: {} });
      }}
      done={under ? `${under} started` : "Restarted"}
      cli={(reason) => cli("restart", id, ...(isChanged ? ["--input", JSON.stringify(parsed.value)] : []), ...(under ? ["--new-id", under] : []), ...(reason ? ["--reason", reason] : []))}
      curl={(reason) => curl("POST", `/v1/instances/${encodeURIComponent(id)}/restart`, body(reason))}
      onClose={onClose}
      onDone={() => void client.invalidateQueries()}
    >
      {last.error ? <p role="alert" className="text-bad">{messageOf(last.error)}</p> : !last.data ? <Loading rows={3} /> : (
        <>
          <AreaField name="Input, JSON" value={shown} onChange={setText} rows={8} error={parsed.problem} hint={isChanged ? "Changed: differs from the input of the last start." : "The input of the last start."} />
          <TextField name="New id" value={newId} onChange={setNewId} hint="Left out: the same instance begins again." />
        </>
      )}
    </FormDialog>
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
