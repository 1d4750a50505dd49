import { classes } from "../../../lib/classes";
import { duration } from "../../../lib/format";
import type { Lane, LaneKind } from "../../../lib/timeline";
import { Icon, type IconName } from "../../../ui/icon";

const ICONS: Record<LaneKind, IconName> = { instance: "list", activity: "code", step: "check", timer: "clock", signal: "bolt", child: "graph" };

type Props = {
  lane: Lane;
  top: number;
  height: number;
  nameWidth: number;
  place: (at: number) => number;
  until: number;
  isSelected: boolean;
  isOpen: boolean;
  onSelect: () => void;
  onToggle?: () => void;
};

export function LaneRow({ lane, top, height, nameWidth, place, until, isSelected, isOpen, onSelect, onToggle }: Props) {
  const retries = lane.attempts.length;
  return (
    <div
      role="row"
      aria-selected={isSelected}
      onClick={onSelect}
      data-lane={lane.name}
      className={classes("absolute inset-x-0 flex cursor-pointer border-b border-line/50", isSelected ? "bg-selected" : "hover:bg-hover")}
      style={{ transform: `translateY(${top}px)`, height }}
    >
      <div role="gridcell" className="flex shrink-0 items-center gap-1.5 overflow-hidden border-r border-line pr-2" style={{ width: nameWidth, paddingLeft: (nameWidth > 200 ? 20 : 12) + lane.depth * 16 }}>
        {onToggle ? (
          <button
            type="button"
            aria-expanded={isOpen}
            aria-label={isOpen ? `Fold ${lane.name}` : `Unfold ${lane.name}`}
            onClick={(event) => { event.stopPropagation(); onToggle(); }}
            className="-ml-4 rounded p-0.5 text-faint hover:text-text"
          >
            <Icon name={isOpen ? "down" : "right"} size={11} />
          </button>
        ) : null}
        <Icon name={ICONS[lane.kind]} size={13} className={lane.status === "failed" ? "shrink-0 text-bad" : "shrink-0 text-faint"} />
        <span className={classes("truncate", lane.status === "failed" && "text-bad")} title={lane.name}>{lane.name}</span>
        {retries > 0 && <span className="ml-auto shrink-0 text-xs text-faint" title="Failed attempts">×{retries + (lane.status === "failed" ? 0 : 1)}</span>}
      </div>
      <div role="gridcell" aria-label={`${lane.status}, ${duration((lane.until ?? until) - lane.from)}`} className="relative min-w-0 flex-1 overflow-hidden">
        <Bars lane={lane} place={place} until={until} />
      </div>
    </div>
  );
}

const BAR = "absolute top-[7px] h-[13px] rounded-[3px]";

function Bars({ lane, place, until }: { lane: Lane; place: (at: number) => number; until: number }) {
  const ends = place(lane.until ?? until);
  return (
    <>
      {lane.stretches.map((stretch, index) => {
        const left = place(stretch.from);
        const right = place(Math.min(stretch.until ?? until, lane.until ?? until));
        if (right < 0 || left > 1 || stretch.from > until) return null;
        const from = Math.max(left, -0.01);
        return (
          <div
            key={index}
            className={classes(BAR, stretch.isWait ? "border border-line-strong" : colour(lane, stretch.isFailed), stretch.until === undefined && lane.until === undefined && "rounded-r-none")}
            style={{
              left: `${from * 100}%`,
              width: `max(3px, ${(Math.min(right, 1.01) - from) * 100}%)`,
              backgroundImage: stretch.isWait ? "repeating-linear-gradient(135deg, var(--line-strong) 0 1px, transparent 1px 5px)" : undefined,
            }}
          />
        );
      })}
      {lane.attempts.map((attempt) => (
        <div key={`${attempt.number} ${attempt.at}`} className="absolute top-[4px] h-[19px] w-[2px] bg-bad" style={{ left: `${place(attempt.at) * 100}%` }} title={`Attempt ${attempt.number}: ${attempt.failure.message ?? ""}`} />
      ))}
      {ends < 0.93 && ends > -0.01 && (
        <span className="absolute top-[5px] pl-1.5 text-xs whitespace-nowrap text-faint tabular-nums" style={{ left: `${Math.max(ends, 0) * 100}%` }}>
          {duration((lane.until ?? until) - lane.from)}
        </span>
      )}
    </>
  );
}

function colour(lane: Lane, isFailed: boolean): string {
  if (isFailed || lane.status === "failed") return "bg-bad";
  if (lane.status === "cancelled") return "bg-mute/50";
  if (lane.until === undefined) return "bg-info";
  return lane.kind === "child" ? "bg-accent/70" : "bg-good";
}
