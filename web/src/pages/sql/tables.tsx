import type { Schemas } from "../../api/client";

/** The tables with their columns, to read and to begin a query from. */
export function Tables({ tables, onUse }: { tables: Schemas["SqlTable"][]; onUse: (name: string) => void }) {
  return (
    <nav aria-label="Tables" className="overflow-auto border-r border-line p-3 max-lg:hidden">
      <h2 className="mb-1 text-xs font-medium text-faint">Tables</h2>
      {tables.map((table) => (
        <details key={table.name} className="mb-0.5">
          <summary className="cursor-pointer truncate rounded marker:text-faint px-1 py-0.5 font-mono text-xs hover:bg-hover" title={table.description}>{table.name}</summary>
          <ul className="mb-1 border-l border-line pl-3">
            <li><button type="button" className="text-xs text-accent-text hover:underline" onClick={() => onUse(table.name)}>Select from it</button></li>
            {table.columns.map((column) => (
              <li key={column.name} className="flex justify-between gap-2 font-mono text-xs" title={column.description}>
                <span className="truncate">{column.name}</span>
                <span className="text-faint">{column.type}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </nav>
  );
}
