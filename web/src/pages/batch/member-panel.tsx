import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import { useMay } from "../../api/me";
import { type BatchAction, type Member, type Step, requestOf, useMember } from "../../api/runbooks";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Json } from "../../ui/json";
import { Facts } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Time } from "../../ui/time";

const OPEN = ["pending", "dispatched", "polling"];

/** What opens the panel of a member. */
export type OpenMember = Pick<Member, "id" | "member_key">;

/** One member: its data and its steps, each with parameters, result, polls and rollback. */
export function MemberPanel({ batch, member, step, onClose }: { batch: number; member: OpenMember; step?: number; onClose: () => void }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const query = useMember(batch, member.id, true);
  const [shown, setShown] = useState(step);
  const [last, setLast] = useState(step);
  if (step !== last) {
    setLast(step);
    setShown(step);
  }
  const details = query.data;
  const ask = (title: string, verb: string, body: BatchAction, line: string) =>
    change({ title, verb, run: () => requestOf(batch, body), cli: () => line, curl: () => curl("POST", `/v1/batches/${batch}/requests`, body) });
  return (
    <aside aria-label={`Member ${member.member_key}`} className="w-96 shrink-0 overflow-auto border-l border-line bg-panel p-4 max-md:fixed max-md:inset-y-0 max-md:right-0 max-md:z-30 max-md:w-[88vw] max-md:shadow-pop">
      <div className="mb-3 flex items-center gap-2">
        <h2 className="min-w-0 flex-1 truncate text-base font-semibold" title={member.member_key}>{member.member_key}</h2>
        <Button look="ghost" icon="close" aria-label="Close" onClick={onClose} />
      </div>
      {!details ? <Unready query={query} /> : (
        <div className="flex flex-col gap-4">
          <Facts facts={[["Status", <Status key="status" status={details.status} />], ["Added", <Time key="added" at={details.added_at} />], ["Failed", details.failed_at && <Time key="failed" at={details.failed_at} />]]} />
          {mayChange && (
            <div className="flex flex-wrap gap-2">
              {details.status === "failed" && <Button onClick={() => ask("Retry this member", "Retry", { action: "retry_members", batch_member_ids: [member.id], from: "step" }, cli("member", "retry", String(batch), String(member.id)))}>Retry</Button>}
              {details.status === "active" && <Button look="danger" onClick={() => ask("Cancel this member", "Cancel it", { action: "cancel_member", batch_member_id: member.id }, cli("member", "cancel", String(batch), String(member.id)))}>Cancel it</Button>}
            </div>
          )}
          <Json value={{ ...details.data, ...details.worker_data }} label="Data" />
          <ol className="flex flex-col gap-2">
            {details.steps.map((each) => (
              <li key={each.id} className="rounded-lg border border-line">
                <button type="button" aria-expanded={shown === each.id} onClick={() => setShown(shown === each.id ? undefined : each.id)} className="flex w-full items-center gap-3 px-3 py-1.5 text-left hover:bg-hover">
                  <span className="min-w-0 flex-1 truncate font-medium">{each.step_name}</span>
                  <Status status={each.status} />
                </button>
                {shown === each.id && <StepDetail batch={batch} step={each} onAsk={mayChange ? ask : undefined} />}
              </li>
            ))}
          </ol>
        </div>
      )}
    </aside>
  );
}

function StepDetail({ batch, step, onAsk }: { batch: number; step: Step; onAsk?: (title: string, verb: string, body: BatchAction, line: string) => void }) {
  const why = useQuery({
    queryKey: ["batch", batch, "explain", step.id],
    enabled: OPEN.includes(step.status),
    queryFn: () => data(api.GET("/v1/batches/{id}/explain", { params: { path: { id: batch }, query: { row: `step-${step.id}` } } })),
    retry: false,
  });
  return (
    <div className="flex flex-col gap-3 border-t border-line px-3 py-2">
      {why.data && <p role="note">It waits: {why.data.why}{why.data.released_by && <span className="text-dim">; released {why.data.released_by}</span>}</p>}
      {step.error_message && <p className="break-words whitespace-pre-wrap text-bad">{step.error_message}</p>}
      <Facts facts={[
        ["Function", step.function_name],
        ["Pool", step.worker_id],
        ["Dispatched", step.dispatched_at && <Time key="dispatched" at={step.dispatched_at} absolute />],
        ["Completed", step.completed_at && <Time key="completed" at={step.completed_at} absolute />],
        ["Polls", step.poll_count > 0 ? step.poll_count : undefined],
        ["Retries", step.retry_count > 0 ? step.retry_count : undefined],
        ["Rollback", step.rollback_state && `${step.rollback_state}${step.rollback_error ? `: ${step.rollback_error}` : ""}`],
      ]} />
      <Json value={parseJson(step.params_json).value ?? step.params_json} label="Parameters" />
      {step.result_json && <Json value={parseJson(step.result_json).value ?? step.result_json} label="Result" />}
      {onAsk && OPEN.includes(step.status) && (
        <div className="flex gap-2">
          <Button onClick={() => onAsk("Skip this step", "Skip it", { action: "skip_step", step_execution_id: step.id }, cli("batch", "skip-step", String(batch), String(step.id)))}>Skip</Button>
          <Button look="danger" onClick={() => onAsk("Cancel this step", "Cancel it", { action: "cancel_step", step_execution_id: step.id }, cli("batch", "cancel-step", String(batch), String(step.id)))}>Cancel</Button>
        </div>
      )}
    </div>
  );
}
