/**
 * The time axis of a timeline: a map from moments to 0..1. Stretches in which nothing worked are compressed, so that
 * a night of waiting does not swallow the seconds before and after it. Pure.
 */
export type Interval = { from: number; until: number };
export type Gap = Interval & { start: number; end: number };
export type Axis = {
  from: number;
  until: number;
  gaps: Gap[];
  place: (at: number) => number;
  moment: (place: number) => number;
};

/** An idle stretch is compressed if it is longer than this share of the time at work. */
const IDLE_SHARE = 0.6;
/** What a compressed stretch gets, as a share of the time at work, and what all of them get at most. */
const GAP_SHARE = 0.14;
const GAPS_SHARE = 0.7;

type Piece = Interval & { weight: number; isGap: boolean };

export function axisOf(from: number, until: number, busy: Interval[], compress: boolean): Axis {
  const end = Math.max(until, from + 1);
  const pieces = compress ? compressed(from, end, busy) : [{ from, until: end, weight: 1, isGap: false }];
  const total = pieces.reduce((sum, piece) => sum + piece.weight, 0);
  const starts: number[] = [];
  let place = 0;
  for (const piece of pieces) {
    starts.push(place);
    place += piece.weight / total;
  }
  const startOf = (index: number) => starts[index] ?? 1;
  return {
    from,
    until: end,
    gaps: pieces.flatMap((piece, index) => (piece.isGap ? [{ ...piece, start: startOf(index), end: startOf(index + 1) }] : [])),
    place(at) {
      if (at <= from) return 0;
      if (at >= end) return 1;
      const index = lastIndex(pieces.length, (each) => (pieces[each] as Piece).from <= at);
      const piece = pieces[index] as Piece;
      return startOf(index) + ((at - piece.from) / (piece.until - piece.from)) * (startOf(index + 1) - startOf(index));
    },
    moment(value) {
      const index = lastIndex(pieces.length, (each) => startOf(each) <= value);
      const piece = pieces[index] as Piece;
      const width = startOf(index + 1) - startOf(index);
      return piece.from + (width === 0 ? 0 : (value - startOf(index)) / width) * (piece.until - piece.from);
    },
  };
}

/** The last index that holds, by bisection; `holds` is true up to it. */
function lastIndex(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

function compressed(from: number, until: number, busy: Interval[]): Piece[] {
  const working = merged(from, until, busy);
  const time = working.reduce((sum, each) => sum + each.until - each.from, 0);
  const threshold = Math.max(time * IDLE_SHARE, 1);
  const pieces: Piece[] = [];
  let at = from;
  const add = (next: number, isIdle: boolean) => {
    if (next <= at) return;
    const isGap = isIdle && next - at > threshold;
    pieces.push({ from: at, until: next, weight: next - at, isGap });
    at = next;
  };
  for (const each of working) {
    add(each.from, true);
    add(each.until, false);
  }
  add(until, true);
  const gaps = pieces.filter((piece) => piece.isGap);
  for (const gap of gaps) gap.weight = Math.max(time, 1) * Math.min(GAP_SHARE, GAPS_SHARE / gaps.length);
  return pieces;
}

function merged(from: number, until: number, busy: Interval[]): Interval[] {
  const sorted = busy
    .map((each) => ({ from: Math.max(each.from, from), until: Math.min(each.until, until) }))
    .filter((each) => each.until >= each.from)
    .sort((a, b) => a.from - b.from);
  const result: Interval[] = [];
  for (const each of sorted) {
    const last = result.at(-1);
    if (last && each.from <= last.until) last.until = Math.max(last.until, each.until);
    else result.push(each);
  }
  return result;
}

/** Round moments for ticks between two moments, at most `most` of them. */
export function ticksBetween(from: number, until: number, most: number): number[] {
  const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5, 6048e5];
  const span = Math.max(until - from, 1);
  const step = STEPS.find((each) => span / each <= most) ?? span / most;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= until && ticks.length <= most; at += step) ticks.push(at);
  return ticks;
}
