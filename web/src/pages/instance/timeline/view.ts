import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";

const narrow = window.matchMedia("(max-width: 767px)");
const NAME_PX = 260;
const NARROW_NAME_PX = 124;

/** The width of the names of lanes: less on a phone, where the bars need the room. */
export function useNameWidth(): number {
  const isNarrow = useSyncExternalStore(
    (listener) => {
      narrow.addEventListener("change", listener);
      return () => narrow.removeEventListener("change", listener);
    },
    () => narrow.matches,
  );
  return isNarrow ? NARROW_NAME_PX : NAME_PX;
}

/** The visible part of the axis, as shares of it. */
export type View = { start: number; end: number };

const WHOLE: View = { start: 0, end: 1 };
const SMALLEST = 1e-6;

export function clamped(start: number, end: number): View {
  const width = Math.min(Math.max(end - start, SMALLEST), 1);
  const from = Math.min(Math.max(start, 0), 1 - width);
  return { start: from, end: from + width };
}

/** Zoom and pan: Ctrl and the wheel, dragging, and the keys + − 0 and arrows. */
export function useView() {
  const [view, setView] = useState(WHOLE);
  const current = useRef(view);
  current.current = view;
  const zoom = useCallback((factor: number, around = 0.5) => {
    const { start, end } = current.current;
    const middle = start + (end - start) * around;
    setView(clamped(middle - (middle - start) * factor, middle + (end - middle) * factor));
  }, []);
  const pan = useCallback((share: number) => {
    const { start, end } = current.current;
    const step = (end - start) * share;
    setView(clamped(start + step, end + step));
  }, []);
  const reset = useCallback(() => setView(WHOLE), []);
  const onKeyDown = useCallback(
    (event: React.KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey) return;
      if (event.key === "+" || event.key === "=") zoom(0.6);
      else if (event.key === "-") zoom(1 / 0.6);
      else if (event.key === "0") reset();
      else if (event.key === "ArrowLeft") pan(-0.2);
      else if (event.key === "ArrowRight") pan(0.2);
      else return;
      event.preventDefault();
    },
    [zoom, pan, reset],
  );
  return { view, setView, zoom, pan, reset, onKeyDown };
}

/** A wheel with Ctrl zooms. React's own listener could not stop the browser's zoom. */
export function useWheel(element: React.RefObject<HTMLElement | null>, nameWidth: number, zoom: (factor: number, around: number) => void) {
  useEffect(() => {
    const target = element.current;
    if (!target) return;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = target.getBoundingClientRect();
      const around = (event.clientX - box.left - nameWidth) / Math.max(box.width - nameWidth, 1);
      zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(Math.max(around, 0), 1));
    };
    target.addEventListener("wheel", onWheel, { passive: false });
    return () => target.removeEventListener("wheel", onWheel);
  }, [element, nameWidth, zoom]);
}
