import { useQueries } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { type HistoryEvent, historyOf } from "../../../api/instances";
import { useScope } from "../../../api/scope";
import { type Interval, axisOf } from "../../../lib/axis";
import { type Lane, lanesOf } from "../../../lib/timeline";

/** The lanes of an instance with those of its unfolded children below them. */
export function useLanes(events: HistoryEvent[], open: Set<string>): Lane[] {
  const scope = useScope();
  const own = useMemo(() => lanesOf(events), [events]);
  const children = useMemo(() => [...open], [open]);
  // Combined, so that the result stays the same object while no history changes.
  const histories = useQueries({
    queries: children.map((child) => historyOf(child, 1, scope)),
    combine: useCallback((results: { data?: HistoryEvent[] }[]) => results.map((result) => result.data), []),
  });
  return useMemo(() => {
    if (open.size === 0) return own;
    const known = new Map(children.map((child, index) => [child, histories[index]]));
    const unfold = (lanes: Lane[]): Lane[] =>
      lanes.flatMap((lane) => {
        const history = lane.child !== undefined && open.has(lane.child) ? known.get(lane.child) : undefined;
        return history ? [lane, ...unfold(lanesOf(history, lane.depth + 1, `${lane.id}/`))] : [lane];
      });
    return unfold(own);
  }, [own, children, histories, open]);
}

/** Where the axis begins and ends, and when something worked. */
export function useAxis(lanes: Lane[], events: HistoryEvent[], until: number, compress: boolean) {
  return useMemo(() => {
    const from = events[0] ? Date.parse(events[0].at) : until;
    const busy: Interval[] = lanes.flatMap((lane) =>
      lane.stretches
        .filter((stretch) => !stretch.isWait && lane.kind !== "child")
        .map((stretch) => ({ from: stretch.from, until: stretch.until ?? until })),
    );
    const last = lanes.reduce((latest, lane) => Math.max(latest, lane.until ?? until), from);
    return axisOf(from, Math.max(last, events.at(-1) ? Date.parse(events.at(-1)?.at ?? "") : from), busy, compress);
  }, [lanes, events, until, compress]);
}
