import { csv, download } from "./download";

/** Rows of any list as CSV: one column for each field that one of them has; nested values as JSON. */
export function exportRows(name: string, rows: object[]) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  download(`${name}.csv`, "text/csv", csv(columns, rows.map((row) => columns.map((column) => (row as Record<string, unknown>)[column]))));
}
