import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useMemo, useRef, useState } from "react";
import type { HistoryEvent } from "../../api/instances";
import { classes } from "../../lib/classes";
import { clockTime, fullTime } from "../../lib/time";
import { Button } from "../../ui/button";
import { inputLook } from "../../ui/field";
import { Json } from "../../ui/json";
import { Empty } from "../../ui/states";

const ROW_PX = 30;
const FAILED = /Failed$/;

export function Events({ events }: { events: HistoryEvent[] }) {
  const [search, setSearch] = useState("");
  const [failedOnly, setFailedOnly] = useState(false);
  const [open, setOpen] = useState<Set<number>>(new Set());
  const shown = useMemo(() => {
    const wanted = search.toLowerCase();
    return events.filter(
      (event) =>
        (!failedOnly || FAILED.test(event.kind)) &&
        (wanted === "" || event.kind.toLowerCase().includes(wanted) || JSON.stringify(event.data).toLowerCase().includes(wanted)),
    );
  }, [events, search, failedOnly]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 15,
    // The same function while the events are the same: all are measured again for another one.
    getItemKey: useCallback((index: number) => shown[index]?.id ?? index, [shown]),
  });
  const toggle = (id: number) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };

  return (
    <div className="flex h-full flex-col">
      <div className="flex items-center gap-2 border-b border-line px-5 py-2">
        <input data-filter aria-label="Filter events" placeholder="Filter by kind or content" value={search} onChange={(event) => setSearch(event.target.value)} className={classes(inputLook, "h-7.5 max-w-sm")} />
        <Button aria-pressed={failedOnly} className={failedOnly ? "border-accent! bg-selected!" : ""} onClick={() => setFailedOnly(!failedOnly)}>Failed only</Button>
        <span className="ml-auto text-dim">{shown.length} of {events.length}</span>
      </div>
      {shown.length === 0 ? (
        <Empty title={failedOnly ? "Nothing has failed" : "No event matches"} />
      ) : (
        <div ref={scroller} role="list" aria-label="Events" tabIndex={0} className="min-h-0 flex-1 overflow-auto">
          <div className="relative" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map((item) => {
              const event = shown[item.index] as HistoryEvent;
              return (
                <div key={item.key} ref={virtual.measureElement} data-index={item.index} role="listitem" className="absolute inset-x-0 border-b border-line/60" style={{ transform: `translateY(${item.start}px)` }}>
                  <button type="button" aria-expanded={open.has(event.id)} onClick={() => toggle(event.id)} className="grid h-7.5 w-full grid-cols-[56px_92px_230px_minmax(0,1fr)] items-center px-5 text-left hover:bg-hover">
                    <span className="text-faint tabular-nums">{event.id}</span>
                    <span className="text-dim tabular-nums" title={`${fullTime(Date.parse(event.at))}\n${event.at} (UTC)`}>{clockTime(Date.parse(event.at))}</span>
                    <span className={FAILED.test(event.kind) ? "truncate font-medium text-bad" : "truncate font-medium"}>{event.kind}</span>
                    <span className="truncate font-mono text-xs text-dim">{open.has(event.id) ? "" : summary(event.data)}</span>
                  </button>
                  {open.has(event.id) && <div className="px-5 pb-3"><Json value={event.data} label={`Event ${event.id}`} /></div>}
                </div>
              );
            })}
          </div>
        </div>
      )}
    </div>
  );
}

const SUMMARY_LENGTH = 300;

function summary(data: unknown): string {
  return JSON.stringify(data)?.slice(0, SUMMARY_LENGTH) ?? "";
}
