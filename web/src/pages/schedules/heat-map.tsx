import { useQuery } from "@tanstack/react-query";
import { api, data } from "../../api/client";
import { useScope } from "../../api/scope";
import { plural } from "../../lib/format";
import { Loading } from "../../ui/states";

const DAYS = 30;
const DAY_MS = 86_400_000;
const PAGE = 1_000;
const MAX_PAGES = 5;
const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LEVELS = 4;

/** How often a schedule fires on each of the next 30 days, in its own zone. */
export function HeatMap({ id }: { id: string }) {
  const scope = useScope();
  const days = useQuery({ queryKey: ["recurring", id, "heat", scope], queryFn: () => countDays(id), staleTime: 60_000 });
  if (!days.data) return <Loading rows={3} />;
  const { counts, isCut } = days.data;
  const most = Math.max(1, ...counts.values());
  const first = [...counts.keys()][0] ?? "";
  const offset = (new Date(`${first}T00:00:00Z`).getUTCDay() + 6) % 7;
  return (
    <div>
      <div className="grid grid-cols-7 gap-1" role="img" aria-label={`Runs on each of the next ${DAYS} days`}>
        {WEEKDAYS.map((day) => <span key={day} className="text-center text-xs text-faint">{day}</span>)}
        {Array.from({ length: offset }, (_, index) => <span key={index} />)}
        {[...counts].map(([day, runs]) => (
          <span
            key={day}
            title={`${day}: ${plural(runs, "run")}`}
            className="flex h-9 flex-col items-center justify-center rounded border border-line text-xs leading-tight tabular-nums"
            style={{ background: runs === 0 ? undefined : `color-mix(in srgb, var(--accent) ${Math.ceil((runs / most) * LEVELS) * 9}%, transparent)` }}
          >
            <span className="text-dim">{Number(day.slice(8))}</span>
            {runs > 0 && <span className="font-medium">{runs}</span>}
          </span>
        ))}
      </div>
      {isCut && <p className="mt-2 text-xs text-faint">It fires more than {PAGE * MAX_PAGES} times; later days are not counted.</p>}
    </div>
  );
}

async function countDays(id: string): Promise<{ counts: Map<string, number>; isCut: boolean }> {
  const until = Date.now() + DAYS * DAY_MS;
  const counts = new Map<string, number>();
  for (let day = 0; day < DAYS; day += 1) counts.set(new Date(Date.now() + day * DAY_MS).toISOString().slice(0, 10), 0);
  let from: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const preview = await data(api.GET("/v1/recurring/{id}/preview", { params: { path: { id }, query: { count: PAGE, from } } }));
    for (const each of preview.times) {
      const day = each.local.slice(0, 10);
      if (counts.has(day)) counts.set(day, (counts.get(day) ?? 0) + 1);
    }
    const last = preview.times.at(-1)?.time;
    if (!preview.next_after || last === undefined || Date.parse(last) > until) return { counts, isCut: false };
    from = preview.next_after;
  }
  return { counts, isCut: true };
}
