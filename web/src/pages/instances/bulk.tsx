import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { type Instance, hasEnded } from "../../api/instances";
import { type InstanceQuery, flagsOf, notForBulk } from "../../lib/filter";
import { count, plural } from "../../lib/format";
import { cli, curl } from "../../lib/command";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

export type BulkAction = Schemas["BulkAction"];
const CAPITAL: Record<BulkAction, string> = { cancel: "Cancel", pause: "Pause", resume: "Resume", delete: "Delete" };
const AT_ONCE = 6;

/** Rows that were chosen, or all that a filter has. */
type Target = { rows: Instance[] } | { filter: InstanceQuery };
type Progress = { done: number; failed: { id: string; why: string }[]; total: number | undefined; isOver: boolean };

/** Changes many instances: what it hits is counted before, and how far it is is shown while it runs. */
export function BulkDialog({ action, target, onClose }: { action: BulkAction; target: Target; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [preview, setPreview] = useState<Schemas["BulkResult"]>();
  const [progress, setProgress] = useState<Progress>();
  const [error, setError] = useState<unknown>();
  const isById = "rows" in target;
  const chosen = isById ? split(action, target.rows) : undefined;
  const unknown = isById ? [] : notForBulk(target.filter);
  const body = (dryRun: boolean, cursor?: string): Schemas["Bulk"] => ({
    action,
    filter: isById ? {} : target.filter,
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
  const run = () =>
    guarded(async () => {
      if (isById) await changeEach(action, (chosen?.changes ?? []).map((row) => row.id), reason || undefined, setProgress);
      else await changeMatching((cursor) => data(api.POST("/v1/instances/bulk", { body: body(false, cursor) })), setProgress);
    });

  const text = isById ? plural(target.rows.length, "selected instance") : "all instances that match the filter";
  const isReady = isById || preview !== undefined;
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
            {!isById && unknown.length === 0 && (
              <div className="mr-auto flex">
                <Copy text={cli("bulk", action, ...flagsOf(target.filter), ...(reason ? ["--reason", reason] : []))}>Copy as CLI</Copy>
                <Copy text={curl("POST", "/v1/instances/bulk", body(false))}>Copy as curl</Copy>
              </div>
            )}
            <Button look="ghost" onClick={onClose}>Cancel</Button>
            {isReady ? (
              <Button look={action === "resume" ? "primary" : "danger"} disabled={chosen?.changes.length === 0} onClick={() => void run()}>{CAPITAL[action]} them</Button>
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
        {chosen && !progress && <Chosen action={action} {...chosen} />}
        {!progress && action !== "delete" && action !== "resume" && <TextField name="Reason" value={reason} onChange={setReason} placeholder="Why?" />}
        {preview && !progress && <Preview preview={preview} action={action} />}
        {progress && <Bar progress={progress} />}
        {error !== undefined && <p role="alert" className="text-bad">{messageOf(error)}</p>}
      </div>
    </Dialog>
  );
}

type Split = { changes: Instance[]; left: Instance[] };

/** What a change would do to rows, by the states that the page shows. The server decides again for each. */
function split(action: BulkAction, rows: Instance[]): Split {
  const isHit = (row: Instance) => {
    if (action === "delete") return hasEnded(row.status);
    if (action === "resume") return row.status === "paused";
    return !hasEnded(row.status) && (action !== "pause" || row.status !== "paused");
  };
  return { changes: rows.filter(isHit), left: rows.filter((row) => !isHit(row)) };
}

const DONE: Record<BulkAction, string> = { cancel: "cancelled", pause: "paused", resume: "resumed", delete: "deleted" };
const IDS_SHOWN = 5;

function Chosen({ action, changes, left }: Split & { action: BulkAction }) {
  const states = [...new Set(left.map((row) => row.status))].map((status) => `${left.filter((row) => row.status === status).length} ${status}`);
  return (
    <div>
      <p className="text-base"><strong>{plural(changes.length, "instance")}</strong> would be {DONE[action]}.</p>
      {changes.length > 0 && (
        <p className="mt-1 truncate text-dim" title={changes.map((row) => row.id).join("\n")}>
          {changes.slice(0, IDS_SHOWN).map((row) => row.id).join(", ")}{changes.length > IDS_SHOWN && ` and ${count(changes.length - IDS_SHOWN)} more`}
        </p>
      )}
      {left.length > 0 && <p className="mt-1 text-dim">Left as they are: {states.join(", ")}.</p>}
    </div>
  );
}

function Preview({ preview, action }: { preview: Schemas["BulkResult"]; action: BulkAction }) {
  const left = Object.entries(preview.left ?? {}).filter(([, value]) => (value ?? 0) > 0);
  return (
    <div>
      <p className="text-base">
        {preview.next_cursor ? "At least " : ""}
        <strong>{plural(preview.would_change ?? 0, "instance")}</strong> would be {DONE[action]}; {count(preview.matched)} match.
      </p>
      {left.length > 0 && <p className="mt-1 text-dim">Left as they are: {left.map(([why, value]) => `${count(value ?? 0)} ${why.replaceAll("_", " ")}`).join(", ")}.</p>}
    </div>
  );
}

function Bar({ progress }: { progress: Progress }) {
  const share = progress.total ? (progress.done + progress.failed.length) / progress.total : progress.isOver ? 1 : 0.5;
  return (
    <div role="status">
      <div className="mb-1.5">{plural(progress.done, "instance")} changed{progress.failed.length > 0 && `, ${progress.failed.length} refused`}.</div>
      <div className="h-1.5 overflow-hidden rounded-full bg-mute-bg">
        <div className="h-full rounded-full bg-accent transition-[width]" style={{ width: `${Math.round(share * 100)}%` }} />
      </div>
      <ul className="mt-2 max-h-40 overflow-auto text-xs text-bad">
        {progress.failed.map(({ id, why }) => <li key={id}>{id}: {why}</li>)}
      </ul>
    </div>
  );
}

async function changeEach(action: BulkAction, ids: string[], reason: string | undefined, report: (progress: Progress) => void) {
  const progress: Progress = { done: 0, failed: [], total: ids.length, isOver: false };
  const queue = [...ids];
  const worker = async () => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      try {
        await changeOne(action, id, reason);
        progress.done += 1;
      } catch (error) {
        progress.failed.push({ id, why: messageOf(error) });
      }
      report({ ...progress });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  report({ ...progress, isOver: true });
}

function changeOne(action: BulkAction, id: string, reason: string | undefined): Promise<unknown> {
  const params = { path: { id } };
  switch (action) {
    case "cancel":
      return data(api.POST("/v1/instances/{id}/cancel", { params, body: { reason } }));
    case "pause":
      return data(api.POST("/v1/instances/{id}/pause", { params, body: { reason } }));
    case "resume":
      return data(api.POST("/v1/instances/{id}/resume", { params }));
    case "delete":
      return data(api.DELETE("/v1/instances/{id}", { params }));
  }
}

async function changeMatching(step: (cursor: string | undefined) => Promise<Schemas["BulkResult"]>, report: (progress: Progress) => void) {
  const progress: Progress = { done: 0, failed: [], total: undefined, isOver: false };
  let cursor: string | undefined;
  do {
    const result = await step(cursor);
    progress.done += result.changed;
    cursor = result.next_cursor ?? undefined;
    report({ ...progress, isOver: cursor === undefined });
  } while (cursor !== undefined);
}
