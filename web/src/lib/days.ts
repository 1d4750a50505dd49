/** Days as text, `2026-11-19`: the partitions of most assets. Pure. */
const DAY_MS = 86_400_000;

export function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(`${text}T00:00:00Z`));
}

export function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

/** How many days there are from one to another, both counted. */
export function daysBetween(first: string, last: string): number {
  return Math.round((Date.parse(last) - Date.parse(first)) / DAY_MS) + 1;
}

/** Monday is 0. */
export function weekday(day: string): number {
  return (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;
}

/** A month, `2026-11`, and its weeks from Monday to Sunday; `undefined` is a day of another month. */
export type Month = { name: string; weeks: (string | undefined)[][] };

/** All months from one day to another, the newest first. */
export function monthsBetween(first: string, last: string, most: number): Month[] {
  const months: Month[] = [];
  for (let month = last.slice(0, 7); month >= first.slice(0, 7) && months.length < most; month = dayAfter(`${month}-01`, -1).slice(0, 7)) {
    months.push({ name: month, weeks: weeksOf(month) });
  }
  return months;
}

function weeksOf(month: string): (string | undefined)[][] {
  const weeks: (string | undefined)[][] = [];
  for (let day = `${month}-01`; day.startsWith(month); day = dayAfter(day, 1)) {
    const at = weekday(day);
    if (weeks.length === 0 || at === 0) weeks.push(Array.from({ length: 7 }, () => undefined));
    (weeks.at(-1) as (string | undefined)[])[at] = day;
  }
  return weeks;
}
