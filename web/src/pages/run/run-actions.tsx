import { useNavigate } from "@tanstack/react-router";
import { api, data, type Schemas } from "../../api/client";
import { isOver } from "../../api/dags";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";

export function RunActions({ run }: { run: Schemas["RunDetails"] }) {
  const change = useChange();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const { id } = run;
  const params = { path: { id } };
  if (!mayChange) return null;
  const first = run.tasks.filter((task) => (task.depends_on ?? []).length === 0).map((task) => task.key);
  const again = run.status === "succeeded" ? { from: "subset" as const, tasks: first, downstream: true } : {};
  const rerun = () => change({
    title: "Rerun", verb: "Rerun", description: run.status === "succeeded" ? "It succeeded; all of its tasks run again, as a new run." : "What did not succeed runs again, as a new run.",
    run: async () => {
      const started = await data(api.POST("/v1/runs/{id}/rerun", { params, body: again }));
      void navigate({ to: "/runs/$id", params: { id: started.id }, search: {} });
    },
    done: "New run started", cli: () => cli("run", "rerun", id, ...("tasks" in again ? [...first.flatMap((key) => ["--task", key]), "--downstream"] : [])), curl: () => curl("POST", `/v1/runs/${id}/rerun`, again),
  });
  const toggle = () => {
    const verb = run.is_paused ? "resume" : "pause";
    change({
      title: run.is_paused ? "Resume this run" : "Pause this run", verb: run.is_paused ? "Resume it" : "Pause it", description: run.is_paused ? undefined : "No further attempts are dispatched; running ones go on.",
      run: () => (run.is_paused ? data(api.POST("/v1/runs/{id}/resume", { params })) : data(api.POST("/v1/runs/{id}/pause", { params }))),
      cli: () => cli("run", verb, id), curl: () => curl("POST", `/v1/runs/${id}/${verb}`),
    });
  };
  const cancel = () => change({
    title: "Cancel this run", verb: "Cancel it", isDangerous: true, takesReason: true, description: "Tasks that have not started end at once, running ones are cancelled.",
    run: (reason) => data(api.POST("/v1/runs/{id}/cancel", { params, body: { reason } })),
    cli: (reason) => cli("run", "cancel", id, ...(reason ? ["--reason", reason] : [])), curl: (reason) => curl("POST", `/v1/runs/${id}/cancel`, { reason }),
  });
  return isOver(run.status) ? (
    <Button icon="refresh" onClick={rerun}>Rerun</Button>
  ) : (
    <>
      <Button icon={run.is_paused ? "play" : "pause"} onClick={toggle}>{run.is_paused ? "Resume" : "Pause"}</Button>
      <Button icon="stop" onClick={cancel}>Cancel</Button>
    </>
  );
}
