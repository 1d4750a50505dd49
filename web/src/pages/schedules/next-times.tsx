import { type Preview, inWords } from "../../api/recurring";
import { Time } from "../../ui/time";

/** Local times of the schedule's zone, with what daylight saving does to them. */
export function NextTimes({ preview, onExplain }: { preview: Preview; onExplain?: (time: string) => void }) {
  const hasSeconds = preview.times.some((each) => /T\d\d:\d\d:(?!00)/.test(each.local));
  return (
    <div>
      <p className="mb-2 font-medium">{inWords(preview.schedule)}</p>
      {preview.warnings?.map((warning) => <p key={warning} className="mb-2 text-warn">{warning}</p>)}
      <ol className="flex flex-col">
        {preview.times.map((each, index) => {
          const [local, offset] = parts(each.local, hasSeconds);
          // The offset is written where it begins to hold.
          const before = preview.times[index - 1];
          const zone = before && parts(before.local, hasSeconds)[1] === offset ? "" : offset;
          return (
            <li key={each.time} className="border-b border-line/60 py-1">
              <div className="flex justify-between gap-3 whitespace-nowrap">
                {onExplain ? (
                  <button type="button" onClick={() => onExplain(each.time)} className="rounded text-left tabular-nums hover:underline" title={`Explain ${each.local}\n${each.time} (UTC)`}>{local} <span className="text-xs text-faint">{zone}</span></button>
                ) : (
                  <span className="tabular-nums" title={`${each.local}\n${each.time} (UTC)`}>{local} <span className="text-xs text-faint">{zone}</span></span>
                )}
                <span className="text-dim"><Time at={each.time} /></span>
              </div>
              {each.note && <div className="text-xs text-warn">{each.note}</div>}
            </li>
          );
        })}
      </ol>
      {preview.times.length === 0 && <p className="text-dim">It never comes again.</p>}
      <p className="mt-2 text-xs text-faint">Time zones of {preview.zones}</p>
    </div>
  );
}

const WEEKDAY = new Intl.DateTimeFormat("en", { weekday: "short", timeZone: "UTC" });

/** `2026-11-19T02:30:00+01:00[Europe/Berlin]` → the local time with its weekday, and the offset. */
function parts(local: string, hasSeconds: boolean): [string, string] {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(?:\.\d+)?([+-]\d\d:\d\d|Z)/.exec(local);
  if (!match) return [local, ""];
  const seconds = hasSeconds ? (match[3] ?? "") : "";
  return [`${WEEKDAY.format(Date.parse(`${match[1]}T00:00:00Z`))} ${match[1]} ${match[2]}${seconds}`, match[4] ?? ""];
}
