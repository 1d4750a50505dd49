import { useEffect, useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import type { Instance } from "../../api/instances";
import { type InstanceQuery, flagsOf } from "../../lib/filter";
import { count, plural } from "../../lib/format";
import { cli, curl } from "../../lib/command";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

export type BulkAction = Schemas["BulkAction"];
const CAPITAL: Record<BulkAction, string> = { cancel: "Cancel", pause: "Pause", resume: "Resume", delete: "Delete", restart: "Restart", retry: "Retry" };

/** Rows that were chosen, or all that a filter has. */
type Target = { rows: Instance[] } | { filter: InstanceQuery };
type Progress = { done: number; left: Schemas["LeftInstance"][]; total: number; isOver: boolean };

/** The server takes at most 1,000 bytes; a character has up to three of them. */
const MAX_REASON = 330;

/** Changes many instances: what it hits is counted before, and how far it is is shown while it runs. */
export function BulkDialog({ action, target, onClose }: { action: BulkAction; target: Target; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [preview, setPreview] = useState<Schemas["BulkResult"]>();
  const [progress, setProgress] = useState<Progress>();
  const [isLooking, setIsLooking] = useState(false);
  const [error, setError] = useState<unknown>();
  const isById = "rows" in target;
  const body = (dryRun: boolean, cursor?: string): Schemas["Bulk"] => ({
    action,
    ...(isById ? { ids: target.rows.map((row) => row.id) } : { filter: target.filter }),
    dry_run: dryRun,
    reason: reason || undefined,
    cursor,
  });

  const guarded = async (work: () => Promise<void>) => {
    setError(undefined);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    }
  };
  const look = async () => {
    setIsLooking(true);
    await guarded(async () => setPreview(await counted((cursor) => data(api.POST("/v1/instances/bulk", { body: body(true, cursor) })))));
    setIsLooking(false);
  };
  const run = () => guarded(async () => {
    let latest: Progress = { done: 0, left: [], total: preview?.would_change ?? 0, isOver: false };
    const report = (progress: Progress) => setProgress((latest = progress));
    report(latest);
    try {
      await change((cursor) => data(api.POST("/v1/instances/bulk", { body: body(false, cursor) })), latest.total, report);
    } catch (failure) {
      report({ ...latest, isOver: true });
      throw failure;
    }
  });
  // What a selection hits is known at once; all that match a filter may be many.
  useEffect(() => {
    if (isById) void look();
  }, []);

  const text = isById ? plural(target.rows.length, "selected instance") : "all instances that match the filter";
  return (
    <Dialog
      open
      onClose={onClose}
      title={`${CAPITAL[action]} ${text}`}
      footer={
        progress ? (
          <Button look="primary" disabled={!progress.isOver} onClick={onClose}>{progress.isOver ? "Done" : "Working…"}</Button>
        ) : (
          <>
            <div className="mr-auto flex flex-wrap">
              {(isById || target.filter.parent === undefined) && <Copy text={cli("bulk", action, ...(isById ? target.rows.flatMap((row) => ["--id", row.id]) : flagsOf(target.filter)), ...(reason && TAKES_REASON.includes(action) ? ["--reason", reason] : []))}>Copy as CLI</Copy>}
              <Copy text={curl("POST", "/v1/instances/bulk", body(false))}>Copy as curl</Copy>
            </div>
            <Button look="ghost" onClick={onClose}>Cancel</Button>
            {isById || preview ? (
              <Button look={action === "resume" ? "primary" : "danger"} disabled={!preview?.would_change} onClick={() => void run()}>{CAPITAL[action]} them</Button>
            ) : (
              <Button look="primary" disabled={isLooking} onClick={() => void look()}>{isLooking ? "Counting…" : "Count what it hits"}</Button>
            )}
          </>
        )
      }
    >
      <div className="flex flex-col gap-3">
        {!progress && <TextField name="Reason" value={reason} onChange={setReason} placeholder="Why? Kept in the audit log" maxLength={MAX_REASON} />}
        {preview && !progress && <Preview preview={preview} action={action} />}
        {progress && <Bar progress={progress} />}
        {error !== undefined && <p role="alert" className="text-bad">{progress && "It stopped there: "}{messageOf(error)}</p>}
      </div>
    </Dialog>
  );
}

/** Actions whose command has a reason. */
const TAKES_REASON: BulkAction[] = ["cancel", "pause", "restart", "retry"];

const DONE: Record<BulkAction, string> = { cancel: "cancelled", pause: "paused", resume: "resumed", delete: "deleted", restart: "restarted", retry: "retried now" };
const IDS_SHOWN = 5;

function Preview({ preview, action }: { preview: Schemas["BulkResult"]; action: BulkAction }) {
  const changes = preview.would_change ?? 0;
  const sample = preview.sample ?? [];
  const left = Object.entries(preview.left ?? {}).filter(([, value]) => (value ?? 0) > 0);
  return (
    <div>
      <p className="text-base">
        {preview.next_cursor ? "At least " : ""}
        <strong>{plural(changes, "instance")}</strong> would be {DONE[action]}.
      </p>
      {sample.length > 0 && (
        <p className="mt-1 truncate text-dim" title={sample.join("\n")}>
          {sample.slice(0, IDS_SHOWN).join(", ")}{changes > IDS_SHOWN && ` and ${count(changes - IDS_SHOWN)} more`}
        </p>
      )}
      {left.length > 0 && <p className="mt-1 text-dim">Left as they are: {left.map(([why, value]) => `${count(value ?? 0)} ${why.replaceAll("_", " ")}`).join(", ")}.</p>}
    </div>
  );
}

function Bar({ progress }: { progress: Progress }) {
  const share = progress.isOver && progress.total === 0 ? 1 : progress.done / Math.max(progress.total, 1);
  return (
    <div role="status">
      <div className="mb-1.5">{plural(progress.done, "instance")} changed.</div>
      <div className="h-1.5 overflow-hidden rounded-full bg-mute-bg">
        <div className="h-full rounded-full bg-accent transition-[width]" style={{ width: `${Math.round(Math.min(share, 1) * 100)}%` }} />
      </div>
      <ul className="mt-2 max-h-40 overflow-auto text-xs text-dim">
        {progress.left.map(({ id, reason }) => <li key={id}>{id}: {reason.replaceAll("_", " ")}</li>)}
      </ul>
    </div>
  );
}

/** Requests that a count makes at most: each looks at up to 10,000 instances. */
const MOST_COUNTS = 10;

/** Counts what a change would reach. Where rows have to be looked at, one request does not see them all. */
async function counted(step: (cursor: string | undefined) => Promise<Schemas["BulkResult"]>): Promise<Schemas["BulkResult"]> {
  let total = await step(undefined);
  for (let request = 1; request < MOST_COUNTS && total.next_cursor; request += 1) {
    const more = await step(total.next_cursor);
    const left = { ...total.left };
    for (const [why, value] of Object.entries(more.left ?? {})) left[why as keyof typeof left] = (left[why as keyof typeof left] ?? 0) + (value ?? 0);
    total = { ...more, matched: total.matched + more.matched, would_change: (total.would_change ?? 0) + (more.would_change ?? 0), sample: [...(total.sample ?? []), ...(more.sample ?? [])], left };
  }
  return total;
}

/** Repeats a change until nothing more matches: each request has a bounded time. */
async function change(step: (cursor: string | undefined) => Promise<Schemas["BulkResult"]>, total: number, report: (progress: Progress) => void) {
  const progress: Progress = { done: 0, left: [], total, isOver: false };
  let cursor: string | undefined;
  do {
    const result = await step(cursor);
    progress.done += result.changed;
    progress.left = [...progress.left, ...(result.left_sample ?? [])];
    cursor = result.next_cursor ?? undefined;
    report({ ...progress, isOver: cursor === undefined });
  } while (cursor !== undefined);
}
