/** The order of a list as it is in the address: `name`, or `-name` for descending. Pure. */
export type Order = { id: string; isDown: boolean };
type Sortable<T> = { id: string; sort?: (row: T) => string | number | null | undefined };

export function parseOrder(text: string | undefined): Order | undefined {
  if (!text) return undefined;
  return text.startsWith("-") ? { id: text.slice(1), isDown: true } : { id: text, isDown: false };
}

/** What the head of a column does: ascending, then descending, then the order of the server. */
export function nextOrder(order: Order | undefined, id: string): string | undefined {
  if (order?.id !== id) return id;
  return order.isDown ? undefined : `-${id}`;
}

/** Rows in an order; those without a value are last in both directions, and equal ones stay as they were. */
export function ordered<T>(rows: T[], columns: Sortable<T>[], order: Order | undefined): T[] {
  const of = columns.find((column) => column.id === order?.id)?.sort;
  if (!of || !order) return rows;
  const sign = order.isDown ? -1 : 1;
  return rows
    .map((row): [T, string | number | null | undefined] => [row, of(row)])
    .sort(([, a], [, b]) => {
      if (isAbsent(a) || isAbsent(b)) return Number(isAbsent(a)) - Number(isAbsent(b));
      return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    })
    .map(([row]) => row);
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
