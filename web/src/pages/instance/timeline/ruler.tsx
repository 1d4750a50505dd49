import { type Axis, ticksBetween } from "../../../lib/axis";
import { duration } from "../../../lib/format";
import type { View } from "./view";

const TICKS = 7;
const TICKS_ON_PHONE = 2;
/** Two ticks are at least this share of the ruler apart. */
const NARROWEST = 0.08;
const NARROWEST_ON_PHONE = 0.3;
/** A compressed stretch that is narrower than this share is not drawn by itself: there may be thousands. */
const DRAWN_GAP = 0.002;
const NAMED_GAP = 0.03;

/** Time since the start along the top, with the compressed stretches named. */
export function Ruler({ axis, view, nameWidth }: { axis: Axis; view: View; nameWidth: number }) {
  const isPhone = nameWidth < 200;
  const width = view.end - view.start;
  const place = (share: number) => (share - view.start) / width;
  const gaps = axis.gaps.filter((gap) => place(gap.end) > 0 && place(gap.start) < 1 && (gap.end - gap.start) / width > DRAWN_GAP);
  const isIdle = (at: number) => axis.gaps.some((gap) => at > gap.from && at < gap.until);
  const edges = [axis.moment(view.start), ...gaps.flatMap((gap) => [gap.from, gap.until]), axis.moment(view.end)];
  const ticks: number[] = [];
  for (let index = 0; index + 1 < edges.length; index += 2) {
    const from = edges[index] ?? 0;
    const until = edges[index + 1] ?? 0;
    const share = place(axis.place(until)) - place(axis.place(from));
    for (const at of ticksBetween(from - axis.from, until - axis.from, Math.max(Math.round((isPhone ? TICKS_ON_PHONE : TICKS) * share), 1))) {
      const last = ticks.at(-1);
      if (last === undefined || Math.abs(axis.place(axis.from + at) - axis.place(axis.from + last)) / width > (isPhone ? NARROWEST_ON_PHONE : NARROWEST)) ticks.push(at);
    }
  }
  return (
    <>
      <div className="sticky top-0 z-10 h-6 border-b border-line bg-panel" aria-hidden="true">
        <div className="absolute inset-y-0 right-0 overflow-hidden" style={{ left: nameWidth }}>
          {ticks.filter((at) => !isIdle(axis.from + at)).map((at) => (
            <span key={at} className="absolute top-0 h-full border-l border-line pl-1 text-xs leading-6 text-faint tabular-nums" style={{ left: `${place(axis.place(axis.from + at)) * 100}%` }}>
              {at === 0 ? "0" : `+${duration(at)}`}
            </span>
          ))}
          {gaps.filter((gap) => (gap.end - gap.start) / width > NAMED_GAP).map((gap) => (
            <span
              key={gap.from}
              className="absolute top-1 h-4 truncate rounded bg-mute-bg px-1 text-center text-xs leading-4 text-mute"
              style={{ left: `${place(gap.start) * 100}%`, width: `${(place(gap.end) - place(gap.start)) * 100}%` }}
              title={`Nothing worked for ${duration(gap.until - gap.from)}`}
            >
              idle {duration(gap.until - gap.from)}
            </span>
          ))}
        </div>
      </div>
      <div className="pointer-events-none absolute inset-y-0 right-0" style={{ left: nameWidth }}>
        {gaps.map((gap) => (
          <div
            key={gap.from}
            className="absolute inset-y-0 border-x border-dashed border-line-strong/60 bg-mute-bg/40"
            style={{ left: `${Math.max(place(gap.start), 0) * 100}%`, width: `${(Math.min(place(gap.end), 1) - Math.max(place(gap.start), 0)) * 100}%` }}
          />
        ))}
      </div>
    </>
  );
}
