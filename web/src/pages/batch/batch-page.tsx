import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../api/me";
import { type BatchDetails, MEMBER_STATES, useBatch, useMembers } from "../../api/runbooks";
import { useAddress } from "../../lib/address";
import { count, plural } from "../../lib/format";
import { Icon } from "../../ui/icon";
import { Page } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Tabs } from "../../ui/tabs";
import { Time } from "../../ui/time";
import { BatchActions } from "./batch-actions";
import { Audit } from "../admin/audit-list";
import { Matrix } from "./matrix";
import { MemberPanel, type OpenMember } from "./member-panel";
import { Notices } from "./notices";
import { Phases } from "./phases";
import { Steps } from "./steps";

/** A batch: its phases, why it waits, and what each member did in each step. */
export function BatchPage() {
  const { id: text } = useParams({ strict: false }) as { id: string };
  const id = Number(text);
  const query = useBatch(id);
  const [{ view, tab = "members" }, setAddress] = useAddress();
  const isAdmin = useMay("admin");
  const members = useMembers(id, MEMBER_STATES.find((state) => state === view));
  const [open, setOpen] = useState<{ member: OpenMember; step?: number }>();
  const batch = query.data;
  if (!batch) return <Page title={`Batch ${text}`}><Unready query={query} /></Page>;
  const notices = batch.notices ?? [];
  return (
    <Page
      title={`${batch.runbook_name} #${batch.id}`}
      heading={
        <span className="flex items-center gap-3">
          <span className="truncate">
            <Link to="/runbooks/$name" params={{ name: batch.runbook_name }} search={{}} className="hover:underline">{batch.runbook_name}</Link> #{batch.id}
          </span>
          <Status status={batch.paused_at ? "paused" : batch.status} className="font-normal" />
        </span>
      }
      actions={<BatchActions batch={batch} />}
    >
      <div className="flex h-full min-h-0 flex-col">
        <Summary batch={batch} />
        <Phases batch={batch} />
        <div className="flex min-h-0 flex-1">
          <div className="flex min-w-0 flex-1">
            <Tabs
              label="Parts of the batch"
              value={tab}
              onChange={(next) => setAddress({ tab: next === "members" ? undefined : next, step: undefined })}
              tabs={[
                { id: "members", name: "Members", content: <Matrix batch={batch} members={members} onOpen={(member, step) => setOpen({ member, step: step?.id })} /> },
                { id: "steps", name: "Steps", content: <Steps batch={batch} onOpen={(member, step) => setOpen({ member, step })} /> },
                ...(notices.length > 0 ? [{ id: "notices", name: "Notices", count: notices.length, content: <Notices notices={notices} /> }] : []),
                ...(isAdmin ? [{ id: "audit", name: "Audit", content: <Audit resource={`/v1/batches/${id}`} /> }] : []),
              ]}
            />
          </div>
          {open && <MemberPanel batch={batch.id} member={open.member} step={open.step} onClose={() => setOpen(undefined)} />}
        </div>
      </div>
    </Page>
  );
}

function Summary({ batch }: { batch: BatchDetails }) {
  const { active, failed, removed, cancelled } = batch.member_counts;
  const isOver = ["completed", "failed", "cancelled"].includes(batch.status);
  return (
    <div className="shrink-0 border-b border-line px-5 py-3">
      <div className="flex flex-wrap gap-x-6 gap-y-1 text-dim">
        <span>{plural(active + failed + removed + cancelled, "member")}</span>
        {failed > 0 && <span className="text-bad">{count(failed)} failed</span>}
        {removed > 0 && <span>{count(removed)} removed</span>}
        {cancelled > 0 && <span>{count(cancelled)} cancelled</span>}
        <span>version {batch.runbook_version}</span>
        <span>created <Time at={batch.detected_at} /></span>
        {batch.batch_start_time && <span>starts <Time at={batch.batch_start_time} absolute /></span>}
      </div>
      {!isOver && (
        <p role="note" className="mt-2 flex items-start gap-2">
          <Icon name={batch.paused_at ? "pause" : "clock"} size={15} className="mt-0.5 text-info" />
          <span>
            It waits: {batch.pause_reason ?? batch.explanation.why}
            {batch.explanation.released_by && <span className="text-dim">; released {batch.explanation.released_by}</span>}
            {batch.explanation.wakes_at && <span className="text-dim">, <Time at={batch.explanation.wakes_at} /></span>}
          </span>
        </p>
      )}
      {batch.error_message && <p className="mt-2 text-bad">{batch.error_message}</p>}
    </div>
  );
}
