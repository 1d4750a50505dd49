import type { HistoryEvent } from "../../api/instances";
import { fullTime } from "../../lib/time";
import { Button } from "../../ui/button";

type Props = { events: HistoryEvent[]; at: number | undefined; onChange: (at: number | undefined) => void };

/** Shows everything as it was after any event. */
export function TimeTravel({ events, at, onChange }: Props) {
  const index = at === undefined ? events.length : Math.max(events.findLastIndex((event) => event.id <= at) + 1, 1);
  const event = events[index - 1];
  const show = (next: number) => onChange(next >= events.length ? undefined : events[next - 1]?.id);
  if (events.length < 2) return null;
  return (
    <div className="flex shrink-0 items-center gap-3 border-b border-line px-5 py-1.5 text-dim">
      <label htmlFor="time-travel" className="text-xs whitespace-nowrap">As of event</label>
      <input
        id="time-travel"
        type="range"
        min={1}
        max={events.length}
        value={index}
        aria-valuetext={event ? `event ${event.id}, ${event.kind}` : undefined}
        onChange={(change) => show(Number(change.target.value))}
        className="h-1 min-w-24 flex-1 accent-(--accent)"
      />
      <span className="truncate text-xs tabular-nums md:w-80" title={event?.at}>
        {`${index} of ${events.length}`}<span className="max-md:hidden">{event && `: ${event.kind}, ${fullTime(Date.parse(event.at))}`}</span>
      </span>
      {at !== undefined && <Button look="ghost" onClick={() => onChange(undefined)}>Back to now</Button>}
    </div>
  );
}
