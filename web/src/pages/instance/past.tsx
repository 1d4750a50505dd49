import { useMemo } from "react";
import type { HistoryEvent } from "../../api/instances";
import { plural } from "../../lib/format";
import { fullTime } from "../../lib/time";
import { lanesOf } from "../../lib/timeline";
import { Icon } from "../../ui/icon";

const NAMES_SHOWN = 6;

/** What was in progress and what was waited for, after an event of the past. */
export function Past({ events }: { events: HistoryEvent[] }) {
  const open = useMemo(() => lanesOf(events).filter((lane) => lane.until === undefined), [events]);
  const last = events.at(-1);
  const names = (wanted: (typeof open)[number]["status"][]) => {
    const found = open.filter((lane) => wanted.includes(lane.status)).map((lane) => lane.name);
    return found.length > NAMES_SHOWN ? `${found.slice(0, NAMES_SHOWN).join(", ")} and ${found.length - NAMES_SHOWN} more` : found.join(", ");
  };
  const running = names(["running"]);
  const retrying = names(["retry_wait"]);
  const waiting = names(["waiting"]);
  return (
    <div className="mt-2 flex items-start gap-2" role="note">
      <Icon name="clock" size={15} className="mt-0.5 shrink-0 text-accent-text" />
      <p>
        <span className="font-medium">As it was{last && ` on ${fullTime(Date.parse(last.at))}`}, after {plural(events.length, "event")}.</span>{" "}
        {running && <span>In progress then: {running}. </span>}
        {retrying && <span>Between two attempts: {retrying}. </span>}
        {waiting && <span>Waited for: {waiting}. </span>}
        {open.length === 0 && <span className="text-dim">Nothing was in progress.</span>}
      </p>
    </div>
  );
}
