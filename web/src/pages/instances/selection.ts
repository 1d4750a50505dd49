import { useCallback, useRef, useState } from "react";
import type { Instance } from "../../api/instances";

/** Which rows are selected; with Shift, all between the last one and this one. */
export function useSelection(rows: Instance[]) {
  const [ids, setIds] = useState<Set<string>>(new Set());
  const anchor = useRef<string | undefined>(undefined);
  const toggle = useCallback(
    (id: string, isRange: boolean) => {
      setIds((before) => {
        const next = new Set(before);
        const from = isRange ? rows.findIndex((row) => row.id === anchor.current) : -1;
        const to = rows.findIndex((row) => row.id === id);
        if (from >= 0 && to >= 0) {
          for (const row of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(row.id);
        } else if (!next.delete(id)) {
          next.add(id);
        }
        return next;
      });
      anchor.current = id;
    },
    [rows],
  );
  const selectAll = useCallback((isWanted: boolean) => setIds(new Set(isWanted ? rows.map((row) => row.id) : [])), [rows]);
  const clear = useCallback(() => setIds(new Set()), []);
  return { ids, toggle, selectAll, clear };
}
