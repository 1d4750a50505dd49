import { fullTime, localZone, millis, relative, useNow } from "../lib/time";
import { duration } from "../lib/format";

/** A moment: relative, with the local and the UTC time on hover. */
export function Time({ at, absolute = false }: { at: string | null | undefined; absolute?: boolean }) {
  const now = useNow();
  const value = millis(at);
  if (value === undefined) return <span className="text-faint">–</span>;
  const local = `${fullTime(value)} (${localZone})`;
  return (
    <time dateTime={at ?? undefined} title={`${local}\n${new Date(value).toISOString()} (UTC)`} className="whitespace-nowrap tabular-nums">
      {absolute ? fullTime(value) : relative(value, now)}
    </time>
  );
}

/** How long something took, or takes by now. */
export function Span({ from, until, ended }: { from?: string | null; until?: string | null; ended: boolean }) {
  const now = useNow();
  const start = millis(from);
  const end = millis(until) ?? (ended ? undefined : Math.max(now, start ?? 0));
  if (start === undefined || end === undefined) return <span className="text-faint">–</span>;
  return <span className="whitespace-nowrap tabular-nums">{duration(end - start)}</span>;
}
