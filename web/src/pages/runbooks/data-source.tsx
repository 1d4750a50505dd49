import { useMutation, useQuery } from "@tanstack/react-query";
import { api, data } from "../../api/client";
import { useMay } from "../../api/me";
import type { Runbook } from "../../api/runbooks";
import { cli, curl } from "../../lib/command";
import { plural } from "../../lib/format";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Json } from "../../ui/json";
import { Facts, Panel } from "../../ui/page";
import { messageOf } from "../../ui/states";
import { Time } from "../../ui/time";

/** The query that brings members: when it runs, what it found, and what it would find now. */
export function DataSource({ runbook }: { runbook: Runbook }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const params = { path: { name: runbook.name } };
  const automation = useQuery({ queryKey: ["runbooks", runbook.name, "automation"], queryFn: () => data(api.GET("/v1/runbooks/{name}/automation", { params })), retry: false });
  const preview = useMutation({ mutationFn: () => data(api.POST("/v1/runbooks/{name}/preview", { params, body: {} })) });
  const state = automation.data;
  const toggle = (enabled: boolean) => change({
    title: enabled ? "Switch the query on" : "Switch the query off", verb: enabled ? "Switch it on" : "Switch it off",
    description: enabled ? "It runs at once, and then at its interval. It creates batches and adds members." : "Batches go on.",
    run: () => data(api.PUT("/v1/runbooks/{name}/automation", { params, body: { enabled } })),
    cli: () => cli("runbook", enabled ? "enable" : "disable", runbook.name), curl: () => curl("PUT", `/v1/runbooks/${runbook.name}/automation`, { enabled }),
  });
  return (
    <div className="mx-auto flex max-w-4xl flex-col gap-5 p-5">
      <Panel title="Query" aside={mayChange && state && <Button onClick={() => toggle(!state.enabled)}>{state.enabled ? "Switch off" : "Switch on"}</Button>}>
        <div className="p-4">
          {automation.error ? <p className="text-dim">{messageOf(automation.error)}</p> : state && (
            <Facts facts={[
              ["State", state.enabled ? (state.running ? "runs now" : "on") : "off"],
              ["Last run", state.last_run_at && <Time key="last" at={state.last_run_at} />],
              ["Next run", state.next_run_at && <Time key="next" at={state.next_run_at} />],
              ["Found", state.last_result && `${plural(state.last_result.rows, "row")}: ${state.last_result.added} added, ${state.last_result.changed} changed, ${state.last_result.removed} removed`],
              ["Last failure", state.last_error && <span key="error" className="text-bad">{state.last_error.message}</span>],
              ["Waiting for approval", state.pending_removal && `removal of ${plural(state.pending_removal.count, "member")}`],
            ]} />
          )}
        </div>
      </Panel>
      <Panel title="Preview" aside={mayChange && <Button disabled={preview.isPending} onClick={() => preview.mutate()}>{preview.isPending ? "Running…" : "Run the query and show what it finds"}</Button>}>
        <div className="p-4">
          {preview.error ? <p role="alert" className="text-dim">{messageOf(preview.error)}</p> : preview.data ? <Json value={preview.data} label="Preview" /> : <p className="text-dim">Batches are not changed by a preview.</p>}
        </div>
      </Panel>
    </div>
  );
}
