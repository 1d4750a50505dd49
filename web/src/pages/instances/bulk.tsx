import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import type { InstanceQuery } from "../../lib/filter";
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

type Target = { ids: string[] } | { filter: InstanceQuery };
type Progress = { done: number; failed: { id: string; why: string }[]; total: number | undefined; isOver: boolean };

/** Changes many instances: what it hits is counted before, and how far it is is shown while it runs. */
export function BulkDialog({ action, target, onClose }: { action: BulkAction; target: Target; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [preview, setPreview] = useState<Schemas["BulkResult"]>();
  const [progress, setProgress] = useState<Progress>();
  const [error, setError] = useState<unknown>();
  const isById = "ids" in target;
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
      if (isById) await changeEach(action, target.ids, reason || undefined, setProgress);
      else await changeMatching((cursor) => data(api.POST("/v1/instances/bulk", { body: body(false, cursor) })), setProgress);
    });

  const text = isById ? plural(target.ids.length, "selected instance") : "all instances that match the filter";
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
            {!isById && (
              <div className="mr-auto flex">
                <Copy text={cli("bulk", action, ...filterFlags(target.filter))}>Copy as CLI</Copy>
                <Copy text={curl("POST", "/v1/instances/bulk", body(false))}>Copy as curl</Copy>
              </div>
            )}
            <Button look="ghost" onClick={onClose}>Cancel</Button>
            {isReady ? (
              <Button look={action === "resume" ? "primary" : "danger"} onClick={() => void run()}>{CAPITAL[action]} them</Button>
            ) : (
              <Button look="primary" onClick={() => void look()}>Count what it hits</Button>
            )}
          </>
        )
      }
    >
      <div className="flex flex-col gap-3">
        {!progress && action !== "delete" && action !== "resume" && <TextField name="Reason" value={reason} onChange={setReason} placeholder="Why?" />}
        {preview && !progress && <Preview preview={preview} action={action} />}
        {progress && <Bar progress={progress} />}
        {error !== undefined && <p role="alert" className="text-bad">{messageOf(error)}</p>}
      </div>
    </Dialog>
  );
}

function Preview({ preview, action }: { preview: Schemas["BulkResult"]; action: string }) {
  const left = Object.entries(preview.left ?? {}).filter(([, value]) => (value ?? 0) > 0);
  return (
    <div>
      <p className="text-base">
        {preview.next_cursor ? "At least " : ""}
        <strong>{plural(preview.would_change ?? 0, "instance")}</strong> would be {action === "cancel" ? "cancelled" : `${action}d`.replace("eed", "ed")}; {count(preview.matched)} match.
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

function filterFlags(filter: InstanceQuery): string[] {
  return [
    ...(filter.prefix ? ["--prefix", filter.prefix] : []),
    ...(filter.status ?? []).flatMap((status) => ["--status", status]),
    ...(filter.orchestration ? ["--orchestration", filter.orchestration] : []),
    ...(filter.function ? ["--function", filter.function] : []),
    ...(filter.label ?? []).flatMap((label) => ["--label", label]),
  ];
}
