import type { Schemas } from "../../api/client";
import { classes } from "../../lib/classes";
import { monthsBetween } from "../../lib/days";
import { lookOf, wordOf } from "./partition-states";

type Partition = Schemas["AssetPartition"];
type Props = {
  partitions: Partition[];
  isChosen: (key: string) => boolean;
  onBegin: (key: string) => void;
  onEnter: (key: string) => void;
  /** From the first that was chosen up to this one: Shift and Enter, or Shift and a click. */
  onExtend: (key: string) => void;
};

const MONTHS_SHOWN = 36;
const WEEKDAYS = ["M", "T", "W", "T", "F", "S", "S"];
const MONTH = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });

/** Partitions that are days, as a calendar: what is missing between them shows as well. */
export function Calendar({ partitions, isChosen, onBegin, onEnter, onExtend }: Props) {
  const byDay = new Map(partitions.map((each) => [each.partition, each]));
  const days = [...byDay.keys()].sort();
  const first = days[0] ?? "";
  const last = days.at(-1) ?? "";
  const months = monthsBetween(first, last, MONTHS_SHOWN).reverse();
  const isCut = months[0]?.name !== first.slice(0, 7);
  return (
    <div className="flex flex-wrap gap-x-6 gap-y-4 select-none">
      {months.map((month) => (
        <div key={month.name} role="group" aria-label={MONTH.format(Date.parse(`${month.name}-01`))}>
          <div className="mb-1 text-xs font-medium text-dim">{MONTH.format(Date.parse(`${month.name}-01`))}</div>
          <div className="grid grid-cols-7 gap-0.5">
            {WEEKDAYS.map((day, index) => <span key={index} aria-hidden="true" className="w-7 text-center text-[10px] text-faint">{day}</span>)}
            {month.weeks.flat().map((day, index) =>
              day === undefined || day < first || day > last ? (
                <span key={day ?? `${month.name} ${index}`} className="grid size-7 place-items-center text-[11px] text-faint tabular-nums" aria-hidden="true">{day && Number(day.slice(8))}</span>
              ) : (
                <button
                  key={day}
                  type="button"
                  aria-pressed={isChosen(day)}
                  title={`${day}: ${wordOf(byDay.get(day))}`}
                  onPointerDown={(event) => (event.shiftKey ? onExtend : onBegin)(day)}
                  onPointerEnter={() => onEnter(day)}
                  onKeyDown={(event) => {
                    if (event.key === "Enter" || event.key === " ") (event.shiftKey ? onExtend : onBegin)(day);
                  }}
                  className={classes("relative size-7 rounded text-[11px] tabular-nums", lookOf(byDay.get(day)), isChosen(day) && "ring-2 ring-accent")}
                >
                  {Number(day.slice(8))}<span className="sr-only"> {`${day}: ${wordOf(byDay.get(day))}`}</span>
                </button>
              ),
            )}
          </div>
        </div>
      ))}
      {isCut && <p className="w-full text-xs text-dim">Months before {months[0]?.name} are left out. Type a range to backfill them.</p>}
    </div>
  );
}
