import { useEffect, useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import type { Instance } from "../../api/instances";
import { type InstanceQuery, flagsOf, notForBulk } from "../../lib/filter";
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

/** Changes many instances: what it hits is counted before, and how far it is is shown while it runs. */
export function BulkDialog({ action, target, onClose }: { action: BulkAction; target: Target; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [preview, setPreview] = useState<Schemas["BulkResult"]>();
  const [progress, setProgress] = useState<Progress>();
  const [error, setError] = useState<unknown>();
  const isById = "rows" in target;
  const unknown = isById ? [] : notForBulk(target.filter);
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
  const look = () => guarded(async () => setPreview(await data(api.POST("/v1/instances/bulk", { body: body(true) }))));
  const run = () => guarded(() => change((cursor) => data(api.POST("/v1/instances/bulk", { body: body(false, cursor) })), preview?.would_change ?? 0, setProgress));
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
            {unknown.length === 0 && (
              <div className="mr-auto flex">
                <Copy text={cli("bulk", action, ...(isById ? target.rows.flatMap((row) => ["--id", row.id]) : flagsOf(target.filter)), ...(reason ? ["--reason", reason] : []))}>Copy as CLI</Copy>
                <Copy text={curl("POST", "/v1/instances/bulk", body(false))}>Copy as curl</Copy>
              </div>
            )}
            <Button look="ghost" onClick={onClose}>Cancel</Button>
            {isById || preview ? (
              <Button look={action === "resume" ? "primary" : "danger"} disabled={!preview?.would_change} onClick={() => void run()}>{CAPITAL[action]} them</Button>
            ) : (
              <Button look="primary" disabled={unknown.length > 0} onClick={() => void look()}>Count what it hits</Button>
            )}
          </>
        )
      }
    >
      <div className="flex flex-col gap-3">
        {unknown.length > 0 && (
          <p role="alert" className="text-warn">
            A change of all that match cannot filter by {unknown.join(" or ")}. Remove that from the filter, or select rows: the box in the first line selects all that are loaded.
          </p>
        )}
        {!progress && <TextField name="Reason" value={reason} onChange={setReason} placeholder="Why?" />}
        {preview && !progress && <Preview preview={preview} action={action} />}
        {progress && <Bar progress={progress} />}
        {error !== undefined && <p role="alert" className="text-bad">{messageOf(error)}</p>}
      </div>
    </Dialog>
  );
}

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
  const share = progress.isOver ? 1 : progress.done / Math.max(progress.total, 1);
  return (
    <div role="status">
      <div className="mb-1.5">{plural(progress.done, "instance")} changed.</div>
      <div className="h-1.5 overflow-hidden rounded-full bg-mute-bg">
        <div className="h-full rounded-full bg-accent transition-[width]" style={{ width: `${Math.round(share * 100)}%` }} />
      </div>
      <ul className="mt-2 max-h-40 overflow-auto text-xs text-dim">
        {progress.left.map(({ id, reason }) => <li key={id}>{id}: {reason.replaceAll("_", " ")}</li>)}
      </ul>
    </div>
  );
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
