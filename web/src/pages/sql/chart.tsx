import type { Schemas } from "../../api/client";
import { count } from "../../lib/format";
import { Empty } from "../../ui/states";

const MOST = 60;

/** The first column that is text or time against the first that is a number, as bars. */
export function Chart({ answer }: { answer: Schemas["SqlAnswer"] }) {
  const isNumber = (index: number) => answer.rows.some((row) => typeof row[index] === "number") && answer.rows.every((row) => row[index] === null || typeof row[index] === "number");
  const value = answer.columns.findIndex((_, index) => isNumber(index));
  const label = answer.columns.findIndex((_, index) => index !== value && !isNumber(index));
  if (value < 0 || answer.rows.length === 0) return <Empty icon="table" title="Nothing to draw">A chart needs a column of numbers.</Empty>;
  const rows = answer.rows.slice(0, MOST).map((row, index) => ({ name: label < 0 ? String(index + 1) : String(row[label] ?? "NULL"), value: Number(row[value] ?? 0) }));
  const most = Math.max(...rows.map((row) => Math.abs(row.value)), 1);
  return (
    <figure className="p-5">
      <figcaption className="mb-3 text-xs text-faint">{answer.columns[value]}{label >= 0 && ` by ${answer.columns[label]}`}{answer.rows.length > MOST && `, the first ${MOST} rows`}</figcaption>
      <div className="flex flex-col gap-1.5">
        {rows.map((row, index) => (
          <div key={index} className="grid grid-cols-[180px_minmax(0,1fr)_90px] items-center gap-3">
            <span className="truncate text-right text-dim" title={row.name}>{row.name}</span>
            <span className="h-4 rounded-sm bg-accent" style={{ width: `${Math.max((Math.abs(row.value) / most) * 100, 0.5)}%` }} />
            <span className="tabular-nums">{count(row.value)}</span>
          </div>
        ))}
      </div>
    </figure>
  );
}
