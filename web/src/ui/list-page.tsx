import { useAddress } from "../lib/address";
import { nextOrder, ordered, parseOrder } from "../lib/order";
import { FilterInput } from "./filter-input";
import { ListMenu } from "./list-menu";
import { Page } from "./page";
import { Empty, Unready } from "./states";
import type { IconName } from "./icon";
import { type Column, Table } from "./table";

type Query = { data: unknown; error: unknown; isPending: boolean; refetch: () => unknown; hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };

type OnePage = Omit<Query, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;

/** A listing that comes as one page. */
export function onePage({ data, error, isPending, refetch }: OnePage): Query {
  return { data, error, isPending, refetch, hasNextPage: false, isFetchingNextPage: false, fetchNextPage: () => undefined };
}

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
  /** Beside the filter. */
  filters?: React.ReactNode;
  /** The same list as a command and as a request; with it the list can be copied and exported. */
  same?: { command: string[]; path: string };
};

/** A page that is one list with a filter in the address. */
export function ListPage<T>({ title, actions, query, rows, columns, rowId, onOpen, textOf, empty, above, filters, same }: Props<T>) {
  const [{ q = "", sort }, setAddress] = useAddress();
  const order = parseOrder(sort);
  const wanted = q.toLowerCase();
  const matching = textOf && wanted !== "" ? rows.filter((row) => textOf(row).some((text) => text?.toLowerCase().includes(wanted))) : rows;
  const shown = ordered(matching, columns, order);
  const isPartial = query.hasNextPage && (q !== "" || order !== undefined);
  return (
    <Page title={title} actions={<>{same && <ListMenu name={title.toLowerCase().replaceAll(" ", "-")} rows={() => shown as object[]} {...same} />}{actions}</>}>
      <div className="flex h-full flex-col">
        {above}
        {textOf && (
          <div className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line px-5 py-2">
            <FilterInput label="Filter" value={q} placeholder="Filter by text" onChange={(text) => setAddress({ q: text || undefined })} />
            {filters}
          </div>
        )}
        {isPartial && <p role="status" className="border-b border-line px-5 py-1 text-xs text-warn">Of the loaded rows only: scroll down to load more.</p>}
        <div className="min-h-0 flex-1">
          {query.data === undefined ? (
            <Unready query={query} />
          ) : shown.length === 0 && !query.hasNextPage ? (
            q ? <Empty icon="search" title="Nothing matches the filter" /> : <Empty icon={empty.icon} title={empty.title}>{empty.text}</Empty>
          ) : (
            <Table label={title} columns={columns} rows={shown} rowId={rowId} order={order} onOrder={(id) => setAddress({ sort: nextOrder(order, id) })} onOpen={onOpen} isLoadingMore={query.isFetchingNextPage} onEnd={query.hasNextPage && !query.isFetchingNextPage && !query.error ? () => void query.fetchNextPage() : undefined} />
          )}
        </div>
      </div>
    </Page>
  );
}
