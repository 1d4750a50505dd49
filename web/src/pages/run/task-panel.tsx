import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { api, data, type Schemas } from "../../api/client";
import { isOver } from "../../api/dags";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Json } from "../../ui/json";
import { Facts, Section } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Span, Time } from "../../ui/time";

const OVER = ["skipped", "cancelled", "failed", "succeeded"];

/** One task: what it got, what it returned, why it waits; and running it again from here. */
export function TaskPanel({ run, task: key, onClose }: { run: Schemas["RunDetails"]; task: string; onClose: () => void }) {
  const change = useChange();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const params = { path: { id: run.id, task: key } };
  const query = useQuery({ queryKey: ["runs", "task", run.id, key, run.tasks_completed], queryFn: () => data(api.GET("/v1/runs/{id}/tasks/{task}", { params })) });
  const task = query.data;
  const fromHere = () => {
    const body = { from: "subset" as const, tasks: [key], downstream: true };
    change({
      title: `Rerun from ${key}`, verb: "Rerun", description: "This task and everything downstream of it, as a new run. Outputs of the other tasks are those of this run.",
      run: async () => {
        const started = await data(api.POST("/v1/runs/{id}/rerun", { params: { path: { id: run.id } }, body }));
        void navigate({ to: "/runs/$id", params: { id: started.id }, search: {} });
        onClose();
      },
      done: "New run started", cli: () => cli("run", "rerun", run.id, "--task", key, "--downstream"), curl: () => curl("POST", `/v1/runs/${run.id}/rerun`, body),
    });
  };
  const clear = () => {
    const body = { tasks: [key], downstream: true };
    change({
      title: `Clear ${key}`, verb: "Clear it", description: "It and everything downstream runs again in this run.",
      run: () => data(api.POST("/v1/runs/{id}/clear", { params: { path: { id: run.id } }, body })), cli: () => cli("task", "clear", run.id, key), curl: () => curl("POST", `/v1/runs/${run.id}/clear`, body),
    });
  };
  const mark = (status: "succeeded" | "failed" | "skipped") => () => change({
    title: `Mark ${key} as ${status}`, verb: "Mark it", takesReason: true, isDangerous: true,
    run: (reason) => data(api.POST("/v1/runs/{id}/tasks/{task}/mark", { params, body: { status, reason } })),
    cli: (reason) => cli("task", "mark", run.id, key, status, ...(reason ? ["--reason", reason] : [])), curl: (reason) => curl("POST", `/v1/runs/${run.id}/tasks/${key}/mark`, { status, reason }),
  });
  return (
    <aside aria-label={`Task ${key}`} className="w-96 shrink-0 overflow-auto border-l border-line bg-panel p-4">
      <div className="mb-3 flex items-center gap-2">
        <h2 className="min-w-0 flex-1 truncate text-base font-semibold" title={key}>{key}</h2>
        <Button look="ghost" icon="close" aria-label="Close" onClick={onClose} />
      </div>
      {!task ? <Unready query={query} /> : (
        <div className="flex flex-col gap-4">
          {task.error_message && <p className="break-words whitespace-pre-wrap text-bad">{task.error_message}</p>}
          {task.waits && !OVER.includes(task.status) && <p role="note">It waits: {task.waits.why}{task.waits.wakes_at && <>, <Time at={task.waits.wakes_at} /></>}</p>}
          <Facts facts={[
            ["Status", <Status key="status" status={task.status} />],
            ["Calls", task.function ?? task.orchestration],
            ["Attempt", `${task.attempt} of ${task.max_attempts}`],
            ["Ready", task.ready_at && <Time key="ready" at={task.ready_at} absolute />],
            ["Took", task.dispatched_at && <Span key="took" from={task.dispatched_at} until={task.completed_at} ended={OVER.includes(task.status)} />],
            ["After", task.depends_on?.join(", ")],
            ["Trigger rule", task.trigger_rule],
            ["Asset", task.asset],
            ["Worker", task.worker],
            ["Marked by", task.marked_by],
            ["Instance", task.instance && <Link key="instance" to="/instances/$id" params={{ id: task.instance }} search={{}} className="break-all text-accent-text hover:underline">{task.instance}</Link>],
          ]} />
          {mayChange && (
            <div className="flex flex-wrap gap-2">
              {isOver(run.status) && <Button onClick={fromHere}>Rerun from here</Button>}
              {OVER.includes(task.status) ? !isOver(run.status) && <Button onClick={clear}>Clear</Button> : <><Button onClick={mark("succeeded")}>Mark succeeded</Button><Button onClick={mark("skipped")}>Skip</Button></>}
            </div>
          )}
          {task.input !== undefined && <Section name="Input"><Json value={task.input} label="Input" /></Section>}
          {task.output !== undefined && <Section name="Output"><Json value={task.output} label="Output" /></Section>}
        </div>
      )}
    </aside>
  );
}
