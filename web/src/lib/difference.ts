/** One place in which two values differ, by its path; `undefined` is absent. */
export type Difference = { path: string; before: unknown; after: unknown };

const MOST = 100;

/** Where two JSON values differ, at most a hundred places. Pure. */
export function differences(before: unknown, after: unknown, path = "", found: Difference[] = []): Difference[] {
  if (found.length >= MOST || same(before, after)) return found;
  if (isNested(before) && isNested(after) && Array.isArray(before) === Array.isArray(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const inner = Array.isArray(before) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
      differences((before as Record<string, unknown>)[key], (after as Record<string, unknown>)[key], inner, found);
    }
    return found;
  }
  found.push({ path: path === "" ? "value" : path, before, after });
  return found;
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function same(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
