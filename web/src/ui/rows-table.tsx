import { Wide } from "./page";

/** A short table inside a panel; its rows are `tr`. An empty name is a column of buttons. */
export function RowsTable({ names, children, label }: { names: string[]; children: React.ReactNode; label?: string }) {
  return (
    <Wide label={label ?? names[0] ?? "Rows"} className="px-4 pb-2">
      <table aria-label={label} className="w-full text-left">
        <thead className="text-xs text-faint"><tr>{names.map((name, index) => <th key={index} className="h-8 pr-4 font-medium whitespace-nowrap">{name || <span className="sr-only">Actions</span>}</th>)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </Wide>
  );
}
