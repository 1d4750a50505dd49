import { useEffect, useRef, useState } from "react";
import { classes } from "../lib/classes";
import type { Order } from "../lib/order";
import { Icon } from "./icon";
import { useRows } from "./rows";

export type Column<T> = {
  id: string;
  name: string;
  /** A track of CSS grid: `120px`, `minmax(200px,1fr)`. */
  width: string;
  right?: boolean;
  cell: (row: T) => React.ReactNode;
  /** What the list is sorted by if a person asks for it; without it the column does not sort. */
  sort?: (row: T) => string | number | null | undefined;
};

type Props<T> = {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowId: (row: T) => string;
  order?: Order;
  /** Sorts by a column: ascending, then descending, then as the server lists. */
  onOrder?: (id: string) => void;
  onOpen?: (row: T) => void;
  selected?: Set<string>;
  onSelect?: (id: string, isRange: boolean) => void;
  /** Selects all rows that are loaded, or none. */
  onSelectAll?: (isWanted: boolean) => void;
  onEnd?: () => void;
  isLoadingMore?: boolean;
  onPointerInside?: (isInside: boolean) => void;
  footer?: React.ReactNode;
};

/** The least width of a table: below it the list scrolls sideways. */
function leastPx<T>(columns: Column<T>[], isSelectable: boolean): number {
  const least = columns.map((column) => Number(/(\d+)px/.exec(column.width)?.[1] ?? 0));
  return least.reduce((sum, px) => sum + px, PADDING_PX + (isSelectable ? SELECT_PX : 0));
}

const PADDING_PX = 24;
const SELECT_PX = 36;
const ROW_PX = 34;
const OVERSCAN = 12;

/** A list of any length: only what is visible is drawn. Arrow keys or j and k move, Enter opens, x selects. */
export function Table<T>(props: Props<T>) {
  const { columns, rows, rowId, onOpen, selected, onSelect, onEnd } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(-1);
  const visible = useRows(scroller, { count: rows.length, rowPx: ROW_PX, overscan: OVERSCAN });
  const { last } = visible;
  useEffect(() => {
    if (last > 0 && last >= rows.length - OVERSCAN * 2) onEnd?.();
  }, [last, rows.length, onEnd]);

  const template = (onSelect ? `${SELECT_PX}px ` : "") + columns.map((column) => column.width).join(" ");
  const move = (index: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    setActive(next);
    visible.show(next);
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (!event.currentTarget.contains(event.target as Node)) return;
    const row = rows[active];
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (step) move(active + step);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(rows.length - 1);
    else if (event.key === "Enter" && row !== undefined && event.target === event.currentTarget) onOpen?.(row);
    else if (event.key === "x" && row !== undefined) onSelect?.(rowId(row), event.shiftKey);
    else return;
    event.preventDefault();
  };

  return (
    <div
      ref={scroller}
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onPointerEnter={() => props.onPointerInside?.(true)}
      onPointerLeave={() => props.onPointerInside?.(false)}
      className="relative h-full overflow-auto focus-visible:outline-offset-[-2px]"
    >
      <div style={{ minWidth: leastPx(columns, onSelect !== undefined) }}>
        <div role="row" className="sticky top-0 z-10 grid items-center border-b border-line bg-bg px-3" style={{ gridTemplateColumns: template, height: 30 }}>
          {onSelect && (
            <span role="columnheader" aria-label="Selected" className="flex px-2">
              {props.onSelectAll && (
                <input
                  type="checkbox"
                  aria-label="Select all loaded rows"
                  checked={rows.length > 0 && (selected?.size ?? 0) >= rows.length && rows.every((row) => selected?.has(rowId(row)))}
                  onChange={(event) => props.onSelectAll?.(event.target.checked)}
                  className="accent-(--accent)"
                />
              )}
            </span>
          )}
          {columns.map((column) => (
            <span
              key={column.id}
              role="columnheader"
              aria-sort={props.order?.id === column.id ? (props.order.isDown ? "descending" : "ascending") : undefined}
              className={classes("truncate px-2 text-xs font-medium text-faint", column.right && "text-right")}
            >
              {column.sort && props.onOrder ? (
                <button type="button" title={`Sort by ${column.name.toLowerCase()}`} onClick={() => props.onOrder?.(column.id)} className={classes("inline-flex items-center gap-0.5 rounded hover:text-text", props.order?.id === column.id && "text-text")}>
                  {column.name}
                  {props.order?.id === column.id && <Icon name={props.order.isDown ? "down" : "up"} size={11} />}
                </button>
              ) : column.name}
            </span>
          ))}
        </div>
        <div className="relative" style={{ height: visible.totalPx }}>
          {rows.slice(visible.first, visible.last).map((row, offset) => {
            const index = visible.first + offset;
            const id = rowId(row);
            return (
              <div
                key={id}
                role="row"
                aria-rowindex={index + 2}
                aria-selected={selected?.has(id)}
                data-row={id}
                onClick={(event) => {
                  // A menu of the row is elsewhere in the document, and its clicks come here.
                  if (!event.currentTarget.contains(event.target as Node)) return;
                  setActive(index);
                  if (!(event.target as HTMLElement).closest("a,button,input")) onOpen?.(row);
                }}
                className={classes(
                  "absolute inset-x-0 grid items-center border-b border-line/60 px-3",
                  onOpen && "cursor-pointer",
                  selected?.has(id) ? "bg-selected" : "hover:bg-hover",
                  index === active && "shadow-[inset_2px_0_0_var(--accent)]",
                )}
                style={{ gridTemplateColumns: template, height: ROW_PX, transform: `translateY(${index * ROW_PX}px)` }}
              >
                {onSelect && (
                  <span role="gridcell" className="flex px-2">
                    <input
                      type="checkbox"
                      aria-label={`Select ${id}`}
                      checked={selected?.has(id) ?? false}
                      onChange={(event) => onSelect(id, (event.nativeEvent as MouseEvent).shiftKey)}
                      className="accent-(--accent)"
                    />
                  </span>
                )}
                {columns.map((column) => (
                  <span key={column.id} role="gridcell" className={classes("truncate px-2", column.right && "text-right tabular-nums")}>
                    {column.cell(row)}
                  </span>
                ))}
              </div>
            );
          })}
        </div>
        {props.isLoadingMore && <div role="status" className="p-3 text-center text-dim">Loading more…</div>}
        {props.footer}
      </div>
    </div>
  );
}
