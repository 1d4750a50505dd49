import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Preview } from "../../api/recurring";
import { useScope } from "../../api/scope";
import { dayAfter, weekday } from "../../lib/days";
import { count, plural } from "../../lib/format";
import { Unready } from "../../ui/states";

/** Times that one request asks for. */
export const HEAT_PAGE = 1_000;

const DAYS = 30;
const MAX_PAGES = 5;
const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LEVELS = 4;

type Props = {
  /** What the times are of: another one is counted anew. */
  of: unknown;
  timezone: string;
  /** The next times after a moment, a page of them. */
  times: (from: string | undefined) => Promise<Preview>;
};

/** How often a schedule fires on each of the next 30 days, in its own zone. */
export function HeatMap({ of, timezone, times }: Props) {
  const scope = useScope();
  const days = useQuery({ queryKey: ["recurring", "heat", of, timezone, scope], queryFn: () => countDays(timezone, times), staleTime: 60_000, retry: false, placeholderData: keepPreviousData });
  if (!days.data) return <Unready query={days} />;
  const { counts, isCut } = days.data;
  const most = Math.max(1, ...counts.values());
  const total = [...counts.values()].reduce((sum, runs) => sum + runs, 0);
  const first = [...counts.keys()][0] ?? "";
  return (
    <div>
      <div className="grid grid-cols-7 gap-1" role="img" aria-label={`${plural(total, "run")} in the next ${DAYS} days, at most ${count(most)} on one`}>
        {WEEKDAYS.map((day) => <span key={day} className="text-center text-xs text-faint">{day}</span>)}
        {Array.from({ length: weekday(first) }, (_, index) => <span key={index} />)}
        {[...counts].map(([day, runs]) => (
          <span
            key={day}
            title={`${day}: ${plural(runs, "run")}`}
            className="flex h-9 flex-col items-center justify-center rounded border border-line text-xs leading-tight tabular-nums"
            style={{ background: runs === 0 ? undefined : `color-mix(in srgb, var(--accent) ${Math.ceil((runs / most) * LEVELS) * 9}%, transparent)` }}
          >
            <span className={runs > 0 ? "" : "text-dim"}>{Number(day.slice(8))}</span>
            {runs > 0 && <span className="font-medium">{runs}</span>}
          </span>
        ))}
      </div>
      {isCut && <p className="mt-2 text-xs text-faint">Only the first {count(total)} times are counted.</p>}
    </div>
  );
}

/** The day that it is now in a zone. */
function today(timezone: string): string {
  return new Intl.DateTimeFormat("en-CA", { timeZone: timezone, year: "numeric", month: "2-digit", day: "2-digit" }).format(Date.now());
}

async function countDays(timezone: string, times: Props["times"]): Promise<{ counts: Map<string, number>; isCut: boolean }> {
  const first = today(timezone);
  const counts = new Map<string, number>();
  for (let day = 0; day < DAYS; day += 1) counts.set(dayAfter(first, day), 0);
  const last = dayAfter(first, DAYS - 1);
  let from: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const preview = await times(from);
    for (const each of preview.times) {
      const day = each.local.slice(0, 10);
      if (counts.has(day)) counts.set(day, (counts.get(day) ?? 0) + 1);
    }
    const latest = preview.times.at(-1);
    // A page that is not full is the last, unless the server has ended its search.
    from = preview.next_after ?? (preview.times.length === HEAT_PAGE ? latest?.time : undefined);
    if (from === undefined || (latest && latest.local.slice(0, 10) > last)) return { counts, isCut: false };
  }
  return { counts, isCut: true };
}
