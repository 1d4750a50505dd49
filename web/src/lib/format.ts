/** Text for people: durations, counts and the like. */
export function duration(ms: number): string {
  const negative = ms < 0;
  const text = positiveDuration(Math.abs(ms));
  return negative ? `−${text}` : text;
}

function positiveDuration(ms: number): string {
  if (ms < 1) return "0 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined(minutes, "m", Math.floor(seconds % 60), "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return joined(hours, "h", minutes % 60, "m");
  return joined(Math.floor(hours / 24), "d", hours % 24, "h");
}

function joined(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit} ${small}${smallUnit}`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** `waits_for_worker` → `waits for worker`. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1024 * 1024) return `${(value / 1024).toFixed(1)} KiB`;
  const units = ["MiB", "GiB", "TiB"];
  let amount = value / 1024 / 1024;
  while (amount >= 1024 && units.length > 1) {
    amount /= 1024;
    units.shift();
  }
  return `${amount.toFixed(1)} ${units[0]}`;
}
