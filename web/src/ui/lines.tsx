import { clockTime } from "../lib/time";

export type Line = { name: string; colour: string; values: (number | undefined)[] };

type Props = { label: string; at: number[]; lines: Line[]; format: (value: number) => string; height?: number };

const HEIGHT = 96;

/** Lines over time, as SVG; a point without a value is a gap. What was highest is written at the top. */
export function Lines({ label, at, lines, format, height = HEIGHT }: Props) {
  const most = Math.max(1, ...lines.flatMap((line) => line.values.map((value) => value ?? 0)));
  const x = (index: number) => (at.length < 2 ? 50 : (index / (at.length - 1)) * 100);
  const y = (value: number) => height - 2 - (value / most) * (height - 6);
  const first = at[0];
  const last = at.at(-1);
  return (
    <figure className="relative">
      <span className="absolute top-0 left-0 bg-panel pr-1 text-xs text-faint tabular-nums">{format(most)}</span>
      <svg role="img" aria-label={label} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" className="w-full" style={{ height }}>
        {[0.03, 0.5, 0.98].map((share) => <line key={share} x1="0" x2="100" y1={height * share} y2={height * share} stroke="var(--line)" strokeWidth="1" vectorEffect="non-scaling-stroke" />)}
        {lines.map((line) => pieces(line.values).map((piece) => (
          <polyline
            key={`${line.name} ${piece[0]}`}
            points={shape(piece.map((index): [number, number] => [x(index), y(line.values[index] ?? 0)]))}
            fill="none"
            stroke={line.colour}
            strokeWidth="1.6"
            strokeLinejoin="round"
            vectorEffect="non-scaling-stroke"
          />
        )))}
        {at.map((moment, index) => (
          <rect key={moment} x={x(index) - 50 / Math.max(at.length, 1)} y="0" width={100 / Math.max(at.length, 1)} height={height} fill="transparent">
            <title>{`${clockTime(moment)}: ${lines.map((line) => `${line.name} ${line.values[index] === undefined ? "–" : format(line.values[index])}`).join(", ")}`}</title>
          </rect>
        ))}
      </svg>
      {first !== undefined && last !== undefined && <TimeEnds from={first} until={last} />}
    </figure>
  );
}

/** The points of a line; one alone becomes a dash, which shows. */
function shape(points: [number, number][]): string {
  const [first] = points;
  const drawn = first && points.length === 1 ? [[Math.max(first[0] - 0.8, 0), first[1]], [Math.min(first[0] + 0.8, 100), first[1]]] : points;
  return drawn.map(([x, y]) => `${x},${y}`).join(" ");
}

/** Where the time of a chart begins and ends. */
export function TimeEnds({ from, until }: { from: number; until: number }) {
  return <div className="mt-1 flex justify-between text-xs text-faint tabular-nums" aria-hidden="true"><span>{clockTime(from).slice(0, 5)}</span><span>{clockTime(until).slice(0, 5)}</span></div>;
}

/** Runs of points that have a value. */
function pieces(values: (number | undefined)[]): number[][] {
  const found: number[][] = [];
  values.forEach((value, index) => {
    if (value === undefined) return;
    const last = found.at(-1);
    if (last && last.at(-1) === index - 1) last.push(index);
    else found.push([index]);
  });
  return found;
}
