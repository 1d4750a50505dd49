import { useAddress } from "../lib/address";
import { classes } from "../lib/classes";
import { inputLook } from "./field";
import { ListMenu } from "./list-menu";
import { Page } from "./page";
import { Empty, Unready } from "./states";
import type { IconName } from "./icon";
import { type Column, Table } from "./table";

type Query = { data: unknown; error: unknown; isPending: boolean; refetch: () => unknown; hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };

type Props<T> = {
  title: string;
  actions?: React.ReactNode;
  query: Query;
  rows: T[];
  columns: Column<T>[];
  rowId: (row: T) => string;
  onOpen?: (row: T) => void;
  /** What the filter looks into; without it there is no filter. */
  textOf?: (row: T) => (string | null | undefined)[];
  empty: { icon: IconName; title: string; text: React.ReactNode };
  above?: React.ReactNode;
  /** The same list as a command and as a request; with it the list can be copied and exported. */
  same?: { command: string[]; path: string };
};

/** A page that is one list with a filter in the address. */
export function ListPage<T>({ title, actions, query, rows, columns, rowId, onOpen, textOf, empty, above, same }: Props<T>) {
  const [{ q = "" }, setAddress] = useAddress();
  const wanted = q.toLowerCase();
  const shown = textOf && wanted !== "" ? rows.filter((row) => textOf(row).some((text) => text?.toLowerCase().includes(wanted))) : rows;
  return (
    <Page title={title} actions={<>{same && <ListMenu name={title.toLowerCase().replaceAll(" ", "-")} rows={() => shown as object[]} {...same} />}{actions}</>}>
      <div className="flex h-full flex-col">
        {above}
        {textOf && (
          <div className="border-b border-line px-5 py-2">
            <input data-filter aria-label="Filter" value={q} placeholder="Filter" onChange={(event) => setAddress({ q: event.target.value || undefined })} className={classes(inputLook, "h-7.5 max-w-md")} />
            {query.hasNextPage && q !== "" && <span className="ml-3 text-xs text-warn">Rows that are not loaded yet are not searched: scroll down to load them.</span>}
          </div>
        )}
        <div className="min-h-0 flex-1">
          {query.data === undefined ? (
            <Unready query={query} />
          ) : shown.length === 0 && !query.hasNextPage ? (
            q ? <Empty icon="search" title="Nothing matches the filter" /> : <Empty icon={empty.icon} title={empty.title}>{empty.text}</Empty>
          ) : (
            <Table label={title} columns={columns} rows={shown} rowId={rowId} onOpen={onOpen} isLoadingMore={query.isFetchingNextPage} onEnd={query.hasNextPage && !query.isFetchingNextPage && !query.error ? () => void query.fetchNextPage() : undefined} />
          )}
        </div>
      </div>
    </Page>
  );
}
