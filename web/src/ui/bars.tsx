import { count } from "../lib/format";

/** Stacked bars over time, as SVG. What was highest is written at the top. */
export type Bar = { label: string; parts: { value: number; colour: string; name: string }[] };

const HEIGHT = 96;

export function Bars({ bars, label, height = HEIGHT }: { bars: Bar[]; label: string; height?: number }) {
  const most = Math.max(1, ...bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0)));
  const width = 100 / Math.max(bars.length, 1);
  return (
    <figure className="relative">
      <span className="absolute top-0 left-0 bg-panel pr-1 text-xs text-faint tabular-nums">{count(most)}</span>
      <svg role="img" aria-label={label} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" className="w-full" style={{ height }}>
        {[0.25, 0.5, 0.75].map((share) => <line key={share} x1="0" x2="100" y1={height * share} y2={height * share} stroke="var(--line)" strokeWidth="1" vectorEffect="non-scaling-stroke" />)}
        {bars.map((bar, index) => {
          let top = height;
          return (
            <g key={bar.label}>
              <title>{`${bar.label}: ${bar.parts.map((part) => `${part.value} ${part.name}`).join(", ")}`}</title>
              <rect x={index * width} y={0} width={width} height={height} fill="transparent" />
              {bar.parts.map((part) => {
                const size = (part.value / most) * (height - 4);
                top -= size;
                return <rect key={part.name} x={index * width + width * 0.12} y={top} width={width * 0.76} height={size} fill={part.colour} rx="0.2" />;
              })}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
