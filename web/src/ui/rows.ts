import { useCallback, useEffect, useState } from "react";

type Range = { first: number; last: number };

/**
 * Which rows of one height are visible. The cost does not depend on how many there are: a list of 100,000 that grows
 * while it is scrolled must not be measured again for each frame.
 */
export function useRows(scroller: React.RefObject<HTMLElement | null>, { count, rowPx, overscan }: { count: number; rowPx: number; overscan: number }) {
  const [range, setRange] = useState<Range>({ first: 0, last: 0 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const look = () => {
      const first = Math.max(Math.floor(element.scrollTop / rowPx) - overscan, 0);
      const last = Math.min(Math.ceil((element.scrollTop + element.clientHeight) / rowPx) + overscan, count);
      setRange((before) => (before.first === first && before.last === last ? before : { first: Math.min(first, Math.max(last - 1, 0)), last }));
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [scroller, count, rowPx, overscan]);
  /** Scrolls as little as shows a row below a head of one row's height. */
  const show = useCallback(
    (index: number) => {
      const element = scroller.current;
      if (!element) return;
      const top = index * rowPx;
      const bottom = top + rowPx * 2 - element.clientHeight;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (bottom > element.scrollTop) element.scrollTop = bottom;
    },
    [scroller, rowPx],
  );
  return { first: range.first, last: Math.min(range.last, count), totalPx: count * rowPx, show };
}
