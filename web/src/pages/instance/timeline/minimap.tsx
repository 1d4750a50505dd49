import { useEffect, useRef } from "react";
import type { Axis } from "../../../lib/axis";
import type { Lane } from "../../../lib/timeline";
import { type View, clamped } from "./view";

const HEIGHT = 26;

type Props = { lanes: Lane[]; axis: Axis; view: View; onView: (view: View) => void; until: number };

/** All lanes, small; the visible part is marked, and a click or a drag moves it. A canvas: there may be 50,000. */
export function Minimap({ lanes, axis, view, onView, until }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const target = canvas.current;
    const context = target?.getContext("2d");
    if (!target || !context) return;
    const width = target.clientWidth;
    const scale = window.devicePixelRatio;
    target.width = width * scale;
    target.height = HEIGHT * scale;
    context.scale(scale, scale);
    const style = getComputedStyle(target);
    const good = style.getPropertyValue("--good");
    const bad = style.getPropertyValue("--bad");
    const wait = style.getPropertyValue("--line-strong");
    const row = HEIGHT / Math.max(lanes.length, 1);
    lanes.forEach((lane, index) => {
      for (const stretch of lane.stretches) {
        context.fillStyle = stretch.isWait ? wait : stretch.isFailed ? bad : good;
        const left = axis.place(stretch.from) * width;
        const right = axis.place(Math.min(stretch.until ?? until, lane.until ?? until)) * width;
        context.fillRect(left, index * row, Math.max(right - left, 1), Math.max(row - 0.5, 0.6));
      }
    });
  }, [lanes, axis, until]);
  const move = (event: React.PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    const middle = (event.clientX - box.left) / box.width;
    const half = (view.end - view.start) / 2;
    onView(clamped(middle - half, middle + half));
  };
  return (
    <div
      className="relative mr-2 h-[26px] min-w-24 flex-1 overflow-hidden rounded border border-line"
      onPointerDown={(event) => { event.currentTarget.setPointerCapture(event.pointerId); move(event); }}
      onPointerMove={(event) => event.buttons === 1 && move(event)}
      aria-hidden="true"
    >
      <canvas ref={canvas} className="h-full w-full" />
      <div className="absolute inset-y-0 rounded border border-accent bg-accent/10" style={{ left: `${view.start * 100}%`, width: `${(view.end - view.start) * 100}%` }} />
    </div>
  );
}
