import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import type { Schemas } from "../../api/client";
import { type RunTask, isOver } from "../../api/dags";
import { ticksBetween } from "../../lib/axis";
import { classes } from "../../lib/classes";
import { duration } from "../../lib/format";
import { millis, useNow } from "../../lib/time";
import { StatusMark, toneOf } from "../../ui/status";

const ROW_PX = 28;
const NAME_PX = 240;
const FILL = { good: "bg-good", bad: "bg-bad", warn: "bg-warn", info: "bg-info", mute: "bg-mute" };

type Props = { run: Schemas["RunDetails"]; tasks: RunTask[]; critical: Set<string>; onOpen: (key: string) => void };

/** When each task waited and ran. */
export function Gantt({ run, tasks, critical, onOpen }: Props) {
  const now = useNow();
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: tasks.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, overscan: 10 });
  const from = millis(run.triggered_at) ?? now;
  const until = isOver(run.status) ? (millis(run.completed_at) ?? now) : Math.max(now, from + 1);
  const place = (at: number) => `${(Math.min(Math.max(at - from, 0), until - from) / Math.max(until - from, 1)) * 100}%`;
  return (
    <div ref={scroller} role="grid" aria-label="Gantt" tabIndex={0} className="relative h-full overflow-auto">
      <div className="sticky top-0 z-10 h-7 border-b border-line bg-bg" aria-hidden="true">
        <div className="absolute inset-y-0 right-4" style={{ left: NAME_PX }}>
          {ticksBetween(0, until - from, 8).map((at) => <span key={at} className="absolute h-full border-l border-line pl-1 text-xs leading-7 text-faint" style={{ left: place(from + at) }}>{at === 0 ? "0" : `+${duration(at)}`}</span>)}
        </div>
      </div>
      <div className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const task = tasks[item.index] as RunTask;
          const ready = millis(task.ready_at);
          const began = millis(task.dispatched_at);
          const ended = millis(task.completed_at) ?? (began === undefined ? undefined : until);
          return (
            <div key={task.key} role="row" onClick={() => onOpen(task.key)} className="absolute inset-x-0 flex cursor-pointer border-b border-line/50 hover:bg-hover" style={{ height: ROW_PX, transform: `translateY(${item.start}px)` }}>
              <div role="gridcell" className={classes("flex shrink-0 items-center gap-2 border-r border-line pr-2 pl-5", critical.has(task.key) && "font-medium")} style={{ width: NAME_PX }}>
                <StatusMark status={task.status} />
                <button type="button" className="truncate hover:underline" title={task.key}>{task.key}</button>
                {task.attempt > 1 && <span className="ml-auto text-xs text-faint">×{task.attempt}</span>}
              </div>
              <div role="gridcell" aria-label={task.status} className="relative mr-4 flex-1">
                {ready !== undefined && (began ?? until) > ready && <Bar from={place(ready)} until={place(began ?? until)} isWait />}
                {began !== undefined && ended !== undefined && <Bar from={place(began)} until={place(ended)} fill={FILL[toneOf(task.status)]} title={duration(ended - began)} />}
              </div>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Bar({ from, until, isWait, fill = "", title }: { from: string; until: string; isWait?: boolean; fill?: string; title?: string }) {
  return (
    <div
      title={title ?? "waited"}
      className={classes("absolute top-[7px] h-[13px] rounded-[3px]", isWait ? "border border-line-strong" : fill)}
      style={{ left: from, width: `max(3px, calc(${until} - ${from}))`, backgroundImage: isWait ? "repeating-linear-gradient(135deg, var(--line-strong) 0 1px, transparent 1px 5px)" : undefined }}
    />
  );
}
