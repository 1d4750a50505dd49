import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { type BatchDetails, MEMBER_STATES, type Member, type MemberState, type Step, useMember, useMemberByKey, type useMembers } from "../../api/runbooks";
import { useAddress } from "../../lib/address";
import { classes } from "../../lib/classes";
import { count, words } from "../../lib/format";
import { FilterInput } from "../../ui/filter-input";
import { Empty, Unready } from "../../ui/states";
import { Status, StatusMark, toneOf } from "../../ui/status";

const ROW_PX = 30;
/** Less on a phone, where the steps need the room. */
const NAME_WIDTH = "min(220px, 34vw)";
const STATUS_PX = 110;
const CELL_PX = 40;
/** A row that only passes by while the list is scrolled requests nothing. */
const SETTLED_MS = 120;

const FILL = { good: "bg-good-bg text-good", bad: "bg-bad-bg text-bad", warn: "bg-warn-bg text-warn", info: "bg-info-bg text-info", mute: "bg-mute-bg text-mute" };

type Props = { batch: BatchDetails; members: ReturnType<typeof useMembers>; onOpen: (member: Member, step?: Step) => void };

/** Members × steps. Rows are drawn, and their steps are read, only while they are visible. */
export function Matrix({ batch, members, onOpen }: Props) {
  const [{ q: search = "", view }, setAddress] = useAddress();
  const wanted = search.toLowerCase();
  const loaded = useMemo(() => (wanted === "" ? members.rows : members.rows.filter((member) => member.member_key.toLowerCase().includes(wanted))), [members.rows, wanted]);
  const byKey = useMemberByKey(batch.id, search.trim(), members.hasNextPage);
  const rows = loaded.length === 0 ? (byKey.data ?? loaded) : loaded;
  const phases = useMemo(() => batch.phases.filter((phase) => phase.status !== "superseded"), [batch.phases]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, overscan: 6 });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = members;
  useEffect(() => {
    if (last >= rows.length - 50 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  const template = `${NAME_WIDTH} ${STATUS_PX}px ${phases.map((phase) => `${Math.max(phase.steps * CELL_PX, 120)}px`).join(" ")}`;

  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 border-b border-line px-5 py-1.5 max-md:px-3">
        <FilterInput label="Filter members" placeholder="Filter by key" value={search} onChange={(text) => setAddress({ q: text || undefined })} className="max-w-xs" />
        <States batch={batch} chosen={view} onChoose={(state) => setAddress({ view: state })} />
        <span className="ml-auto whitespace-nowrap text-dim">
          {count(rows.length)}{members.hasNextPage && (wanted === "" ? "+" : " of those loaded")} {rows.length === 1 ? "member" : "members"}
        </span>
      </div>
      {members.data === undefined ? <Unready query={members} /> : rows.length === 0 && <Empty icon="search" title="No member matches">{members.hasNextPage && "Members that are not loaded are found by their whole key."}</Empty>}
      <div ref={scroller} role="grid" aria-label="Members and steps" aria-rowcount={rows.length + 1} tabIndex={0} className="min-h-0 flex-1 overflow-auto">
        <div className="min-w-max">
          <div role="row" className="sticky top-0 z-10 grid h-8 items-center border-b border-line bg-bg px-5" style={{ gridTemplateColumns: template }}>
            <span role="columnheader" className="text-xs font-medium text-faint">Member</span>
            <span role="columnheader" className="text-xs font-medium text-faint">Status</span>
            {phases.map((phase) => <span key={phase.id} role="columnheader" className="truncate border-l border-line pl-2 text-xs font-medium text-faint" title={phase.phase_name}>{phase.phase_name}</span>)}
          </div>
          <div className="relative" style={{ height: virtual.getTotalSize() }}>
            {items.map((item) => {
              const member = rows[item.index] as Member;
              return (
                <div key={member.id} role="row" className="absolute inset-x-0 grid items-center border-b border-line/50 px-5 hover:bg-hover" style={{ gridTemplateColumns: template, height: ROW_PX, transform: `translateY(${item.start}px)` }}>
                  <span role="gridcell" className="truncate pr-3">
                    <button type="button" className="font-medium hover:underline" title={member.member_key} onClick={() => onOpen(member)}>{member.member_key}</button>
                  </span>
                  <span role="gridcell"><Status status={member.status} /></span>
                  <Cells batch={batch.id} member={member} phases={phases} onOpen={onOpen} />
                </div>
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

/** How many members are in each state; a click shows those alone. */
function States({ batch, chosen, onChoose }: { batch: BatchDetails; chosen: string | undefined; onChoose: (state: MemberState | undefined) => void }) {
  return (
    <div role="group" aria-label="States of members" className="flex flex-wrap gap-1.5">
      {MEMBER_STATES.filter((state) => batch.member_counts[state] > 0 || chosen === state).map((state) => (
        <button
          key={state}
          type="button"
          aria-pressed={chosen === state}
          onClick={() => onChoose(chosen === state ? undefined : state)}
          className={classes("inline-flex h-6 items-center gap-1.5 rounded-full border px-2 text-xs", chosen === state ? "border-accent bg-selected text-text" : "border-line text-dim hover:bg-hover")}
        >
          <StatusMark status={state} />
          {state} <span className="tabular-nums">{count(batch.member_counts[state])}</span>
        </button>
      ))}
    </div>
  );
}

function Cells({ batch, member, phases, onOpen }: { batch: number; member: Member; phases: BatchDetails["phases"]; onOpen: Props["onOpen"] }) {
  const [isSettled, setIsSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsSettled(true), SETTLED_MS);
    return () => clearTimeout(timer);
  }, []);
  const steps = useMember(batch, member.id, isSettled).data?.steps;
  return phases.map((phase) => {
    const own = steps?.filter((step) => step.phase_execution_id === phase.id).sort((a, b) => a.step_index - b.step_index) ?? [];
    return (
      <span key={phase.id} role="gridcell" className="flex gap-1 border-l border-line pl-2">
        {own.map((step) => (
          <button
            key={step.id}
            type="button"
            onClick={() => onOpen(member, step)}
            aria-label={`${step.step_name}: ${words(step.status)}`}
            title={`${step.step_name}: ${words(step.status)}${step.error_message ? `\n${step.error_message}` : ""}`}
            className={classes("flex h-5 w-9 items-center justify-center rounded", FILL[toneOf(step.status)])}
          >
            <StatusMark status={step.status} />
          </button>
        ))}
        {steps && own.length === 0 && <span className="text-xs text-faint">–</span>}
      </span>
    );
  });
}
