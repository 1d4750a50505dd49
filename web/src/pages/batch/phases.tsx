import { type BatchDetails, type Phase, requestOf } from "../../api/runbooks";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { count } from "../../lib/format";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Menu, type MenuItem } from "../../ui/menu";
import { Status, toneOf } from "../../ui/status";
import { Time } from "../../ui/time";

const COLOURS = { good: "var(--good)", bad: "var(--bad)", warn: "var(--warn)", info: "var(--info)", mute: "var(--line-strong)" };

/** All phases with the states of their steps added up: the batch from far away. */
export function Phases({ batch }: { batch: BatchDetails }) {
  return (
    <ol aria-label="Phases" className="flex shrink-0 gap-2 overflow-x-auto border-b border-line bg-bg px-5 py-3">
      {batch.phases.map((phase) => <PhaseCard key={phase.id} batch={batch} phase={phase} />)}
    </ol>
  );
}

function PhaseCard({ batch, phase }: { batch: BatchDetails; phase: Phase }) {
  const isHeld = phase.approval_requested_at && !phase.approved_at && phase.status !== "completed";
  return (
    <li className="min-w-52 flex-1 rounded-lg border border-line bg-panel px-3 py-2">
      <div className="flex h-7 items-center gap-2">
        <span className="min-w-0 flex-1 truncate font-medium" title={phase.phase_name}>{phase.phase_name}</span>
        <PhaseMenu batch={batch} phase={phase} />
      </div>
      <div className="flex items-center justify-between gap-3 text-xs">
        {isHeld ? <span className="text-warn">waits for approval</span> : <Status status={phase.status} />}
        <span className="text-dim">{phase.completed_at ? <Time at={phase.completed_at} /> : phase.due_at ? <>due <Time at={phase.due_at} /></> : "when advanced"}</span>
      </div>
      <Counts counts={phase.step_counts} />
      <div className="text-xs text-dim">{count(phase.members_succeeded)} members done{phase.members_failed > 0 && <span className="text-bad">, {count(phase.members_failed)} failed</span>}</div>
      {phase.reason && <div className="truncate text-xs text-bad" title={phase.reason}>{phase.reason}</div>}
    </li>
  );
}

function Counts({ counts }: { counts: Record<string, number> }) {
  const entries = Object.entries(counts).filter(([, value]) => value > 0);
  const total = entries.reduce((sum, [, value]) => sum + value, 0);
  const text = entries.map(([status, value]) => `${value} ${status.replaceAll("_", " ")}`).join(", ") || "no step yet";
  return (
    <div role="img" aria-label={`Steps: ${text}`} title={text} className="my-1.5 flex h-1.5 gap-px overflow-hidden rounded-full bg-mute-bg">
      {entries.map(([status, value]) => <div key={status} style={{ width: `${(value / total) * 100}%`, background: COLOURS[toneOf(status)] }} />)}
    </div>
  );
}

type PhaseAction = "approve_phase" | "reject_phase" | "resume_phase" | "skip_phase" | "cancel_phase";

/** The verbs of `segno batch`. */
const VERBS: Record<PhaseAction, string> = { approve_phase: "approve", reject_phase: "reject", resume_phase: "resume-phase", skip_phase: "skip-phase", cancel_phase: "cancel-phase" };

function PhaseMenu({ batch, phase }: { batch: BatchDetails; phase: Phase }) {
  const change = useChange();
  const mayChange = useMay("operate");
  if (!mayChange || ["completed", "skipped", "superseded"].includes(phase.status)) return null;
  const ask = (action: PhaseAction, verb: string) => () => {
    const body = { action, phase_execution_id: phase.id };
    change({
      title: `${verb} the phase ${phase.phase_name}`, verb, isDangerous: action !== "approve_phase" && action !== "resume_phase",
      run: () => requestOf(batch.id, body), cli: () => cli("batch", VERBS[action], String(batch.id), phase.phase_name), curl: () => curl("POST", `/v1/batches/${batch.id}/requests`, body),
    });
  };
  const isHeld = phase.approval_requested_at !== undefined && phase.approval_requested_at !== null && !phase.approved_at;
  const items: MenuItem[] = [
    ...(isHeld ? [{ name: "Reject…", danger: true, onSelect: ask("reject_phase", "Reject") }] : []),
    ...(phase.stopped_at ? [{ name: "Resume…", onSelect: ask("resume_phase", "Resume") }] : []),
    { name: "Skip…", onSelect: ask("skip_phase", "Skip") },
    { name: "Cancel…", danger: true, onSelect: ask("cancel_phase", "Cancel") },
  ];
  return (
    <span className="flex items-center gap-1">
      {isHeld && <Button look="primary" onClick={ask("approve_phase", "Approve")}>Approve</Button>}
      <Menu label={`Phase ${phase.phase_name}`} trigger={<Button look="ghost" icon="more" aria-label={`More about the phase ${phase.phase_name}`} />} items={items} />
    </span>
  );
}
