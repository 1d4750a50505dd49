import { useRef, useState } from "react";
import { type HistoryEvent, type Instance, hasEnded } from "../../../api/instances";
import { duration } from "../../../lib/format";
import { useStored } from "../../../lib/storage";
import { clockTime, fullTime, useNow } from "../../../lib/time";
import { Button } from "../../../ui/button";
import { useRows } from "../../../ui/rows";
import { Empty } from "../../../ui/states";
import { Detail } from "./detail";
import { useAxis, useLanes } from "./lanes";
import { Minimap } from "./minimap";
import { LaneRow } from "./row";
import { Ruler } from "./ruler";
import { clamped, useNameWidth, useView, useWheel } from "./view";

const ROW_PX = 28;
const OVERSCAN = 10;

type Props = { events: HistoryEvent[]; instance: Instance; isPast: boolean };

/** What an instance did, lane by lane, on one axis. */
export function Timeline({ events, instance, isPast }: Props) {
  const now = useNow();
  const isOver = isPast || hasEnded(instance.status);
  const lastAt = events.at(-1) ? Date.parse(events.at(-1)?.at ?? "") : now;
  const until = isOver ? lastAt : Math.max(now, lastAt);
  const [open, setOpen] = useState<Set<string>>(new Set());
  const [compress, setCompress] = useStored("timeline.compress", true);
  const lanes = useLanes(events, open);
  const axis = useAxis(lanes, events, until, compress);
  const nameWidth = useNameWidth();
  const { view, setView, zoom, pan, reset, onKeyDown } = useView();
  const [selected, setSelected] = useState<string>();
  const [cursor, setCursor] = useState<number>();
  const scroller = useRef<HTMLDivElement>(null);
  useWheel(scroller, nameWidth, zoom);
  const visible = useRows(scroller, { count: lanes.length, rowPx: ROW_PX, overscan: OVERSCAN });
  const drag = useRef<number | undefined>(undefined);
  /** A drag pans; the click that ends it selects nothing. */
  const hasPanned = useRef(false);
  const chosen = lanes.find((lane) => lane.id === selected);
  const place = (at: number) => (axis.place(at) - view.start) / (view.end - view.start);

  const toggle = (child: string) => {
    const next = new Set(open);
    if (!next.delete(child)) next.add(child);
    setOpen(next);
  };
  const shareOf = (event: React.PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return (event.clientX - box.left - nameWidth) / Math.max(box.width - nameWidth, 1);
  };
  const onPointerMove = (event: React.PointerEvent) => {
    const share = shareOf(event);
    setCursor(share >= 0 && share <= 1 ? share : undefined);
    if (drag.current === undefined) return;
    const step = (drag.current - share) * (view.end - view.start);
    setView(clamped(view.start + step, view.end + step));
    if (Math.abs(drag.current - share) > 0.001) hasPanned.current = true;
    drag.current = share;
  };
  const choose = (step: number) => {
    const index = lanes.findIndex((lane) => lane.id === selected);
    const next = Math.min(Math.max(index + step, 0), lanes.length - 1);
    setSelected(lanes[next]?.id);
    visible.show(next);
  };

  if (lanes.length === 0) return <Empty icon="clock" title="Nothing has been scheduled yet">Activities, timers, signals and children appear here as they begin.</Empty>;
  return (
    <div className="relative flex h-full min-h-0">
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="flex items-center gap-1 px-5 py-1.5 max-md:px-3">
          <Minimap lanes={lanes} axis={axis} view={view} onView={setView} until={until} />
          <Button look="ghost" onClick={() => zoom(0.6)} aria-label="Zoom in" title="Zoom in (+, or Ctrl and the wheel)">+</Button>
          <Button look="ghost" onClick={() => zoom(1 / 0.6)} aria-label="Zoom out" title="Zoom out (−)">−</Button>
          <Button look="ghost" onClick={reset} title="Show all (0)">All</Button>
          <Button look="ghost" aria-pressed={compress} onClick={() => setCompress(!compress)} title="Shorten stretches in which nothing worked">
            <span className="max-md:hidden">{compress ? "Idle compressed" : "Idle to scale"}</span><span className="md:hidden">Idle</span>
          </Button>
        </div>
        <div
          ref={scroller}
          role="grid"
          aria-label="Timeline"
          aria-rowcount={lanes.length}
          tabIndex={0}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
            if (step) {
              event.preventDefault();
              choose(step);
            } else if (event.key === "Enter" && chosen?.child) toggle(chosen.child);
            else if (event.key === "Escape") setSelected(undefined);
            else onKeyDown(event);
          }}
          onPointerDown={(event) => {
            hasPanned.current = false;
            if (shareOf(event) >= 0 && event.button === 0) drag.current = shareOf(event);
          }}
          onPointerUp={() => { drag.current = undefined; }}
          onPointerMove={onPointerMove}
          onPointerLeave={() => { setCursor(undefined); drag.current = undefined; }}
          onWheel={(event) => event.shiftKey && pan(event.deltaY > 0 ? 0.1 : -0.1)}
          className="relative min-h-0 flex-1 overflow-x-hidden overflow-y-auto border-t border-line select-none"
        >
          <Ruler axis={axis} view={view} nameWidth={nameWidth} />
          <div className="relative" style={{ height: visible.totalPx }}>
            {lanes.slice(visible.first, visible.last).map((lane, offset) => {
              const index = visible.first + offset;
              return (
                <LaneRow
                  key={lane.id}
                  lane={lane}
                  top={index * ROW_PX}
                  height={ROW_PX}
                  nameWidth={nameWidth}
                  place={place}
                  until={until}
                  isSelected={lane.id === selected}
                  isOpen={lane.child !== undefined && open.has(lane.child)}
                  onSelect={() => hasPanned.current || setSelected(lane.id === selected ? undefined : lane.id)}
                  onToggle={lane.child === undefined ? undefined : () => toggle(lane.child as string)}
                />
              );
            })}
          </div>
          {cursor !== undefined && <Cursor share={cursor} nameWidth={nameWidth} at={axis.moment(view.start + cursor * (view.end - view.start))} from={axis.from} />}
        </div>
      </div>
      {chosen && <Detail lane={chosen} until={until} onClose={() => setSelected(undefined)} />}
    </div>
  );
}

function Cursor({ share, nameWidth, at, from }: { share: number; nameWidth: number; at: number; from: number }) {
  return (
    <div className="pointer-events-none absolute inset-y-0 z-20" style={{ left: `calc(${nameWidth}px + (100% - ${nameWidth}px) * ${share})` }}>
      <div className="h-full w-px bg-accent/60" />
      <div className={`sticky bottom-1 w-max rounded bg-accent px-1.5 text-xs text-on-accent tabular-nums ${share > 0.8 ? "-translate-x-full" : ""}`} title={fullTime(at)}>
        {clockTime(at)} · +{duration(at - from)}
      </div>
    </div>
  );
}
