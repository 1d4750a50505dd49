import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, data } from "../../api/client";
import { type Instance, nameOf, useCounts, useInstances } from "../../api/instances";
import { onChanges } from "../../api/live";
import { useMay } from "../../api/me";
import { useOrchestrations } from "../../api/server";
import { useAddress } from "../../lib/address";
import { type InstanceQuery, countable, flagsOf, parseFilter } from "../../lib/filter";
import { count, plural } from "../../lib/format";
import { type Order, nextOrder, ordered, parseOrder } from "../../lib/order";
import { useStored } from "../../lib/storage";
import { Button } from "../../ui/button";
import { ListMenu } from "../../ui/list-menu";
import { Menu } from "../../ui/menu";
import { Page } from "../../ui/page";
import { Prose } from "../../ui/prose";
import { Empty, Unready } from "../../ui/states";
import { Table } from "../../ui/table";
import { type BulkAction, BulkDialog } from "./bulk";
import { COLUMNS, SHOWN_AT_FIRST } from "./columns";
import { Counts } from "./counts";
import { FilterBar } from "./filter-bar";
import { useSelection } from "./selection";
import { Views } from "./views";

const ACTIONS: BulkAction[] = ["cancel", "pause", "resume", "retry", "restart", "delete"];

export function InstancesPage() {
  const [{ q = "", view, sort }, setAddress] = useAddress();
  const setText = useCallback((text: string) => setAddress({ q: text || undefined }), [setAddress]);
  const opened = useRef(Date.now());
  const filter = useMemo(() => parseFilter(q, opened.current), [q]);
  const list = useInstances(filter.query);
  const fresh = useFreshRows(q);
  const order = parseOrder(sort);
  const rows = useOrdered(list.rows, order, fresh.isPointerInside);
  const selection = useSelection(rows);
  const [shown, setShown] = useStored("instances.columns", SHOWN_AT_FIRST);
  const [bulk, setBulk] = useState<{ action: BulkAction; all: boolean }>();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const names = useNames();
  const states = useStateCounts(filter.query);

  return (
    <Page
      title="Instances"
      actions={
        <>
          <Views text={q} onOpen={setText} />
          <Menu
            label="Columns"
            trigger={<Button>Columns</Button>}
            items={COLUMNS.map((column) => ({
              name: column.name,
              checked: shown.includes(column.id),
              onSelect: () => setShown(shown.includes(column.id) ? shown.filter((id) => id !== column.id) : [...shown, column.id]),
            }))}
          />
          <ListMenu
            name="instances"
            rows={() => rows.map(exported)}
            command={["list", ...flagsOf(filter.query)]}
            path={pathOf(filter.query)}
            more={mayChange ? ["line", ...ACTIONS.map((action) => ({ name: `${action[0]?.toUpperCase()}${action.slice(1)} all that match…`, danger: action === "delete", onSelect: () => setBulk({ action, all: true }) }))] : []}
          />
          {mayChange && <Button look="primary" icon="plus" onClick={() => void navigate({ to: "/start", search: {} })}>Start</Button>}
        </>
      }
    >
      <div className="flex h-full flex-col">
        <FilterBar text={q} onChange={setText} problems={filter.problems} counts={states} {...names}>
          <Button aria-pressed={view === "counts"} className={view === "counts" ? "border-accent! bg-selected!" : ""} onClick={() => setAddress({ view: view === "counts" ? undefined : "counts" })}>Counts</Button>
        </FilterBar>
        {order && list.hasNextPage && <p role="status" className="border-b border-line px-5 py-1 text-xs text-warn">Of the loaded rows only: scroll down to load more. Without a sorted column, the newest come first.</p>}
        {view === "counts" && <Counts text={q} query={filter.query} onChange={setText} />}
        <div className="relative min-h-0 flex-1">
          {fresh.count > 0 && (
            <button
              type="button"
              onClick={fresh.show}
              className="absolute top-10 left-1/2 z-20 h-7 -translate-x-1/2 animate-appear rounded-full bg-accent px-3 text-xs font-medium text-on-accent shadow-pop"
            >
              {plural(fresh.count, "new instance")}: show
            </button>
          )}
          {list.data === undefined ? (
            <Unready query={list} />
          ) : rows.length === 0 && !list.hasNextPage ? (
            <Empty title={q ? "No instance matches this filter" : "Nothing has run yet"}>
              {q ? <Button onClick={() => setText("")}>Clear the filter</Button> : <Prose text="Start one from the page, with `segno start`, or over the API." />}
            </Empty>
          ) : (
            <Table<Instance>
              label="Instances"
              columns={COLUMNS.filter((column) => shown.includes(column.id))}
              rows={rows}
              rowId={(row) => row.id}
              order={order}
              onOrder={(id) => setAddress({ sort: nextOrder(order, id) })}
              onOpen={(row) => void navigate({ to: "/instances/$id", params: { id: row.id }, search: {} })}
              selected={selection.ids}
              onSelect={mayChange ? selection.toggle : undefined}
              onSelectAll={mayChange ? selection.selectAll : undefined}
              onEnd={list.hasNextPage && !list.isFetchingNextPage && !list.isError ? () => void list.fetchNextPage() : undefined}
              isLoadingMore={list.isFetchingNextPage}
              onPointerInside={fresh.setPointerInside}
            />
          )}
        </div>
        {selection.ids.size > 0 && (
          <div role="toolbar" aria-label="Selected instances" className="flex items-center gap-2 border-t border-line bg-raised px-5 py-2">
            <span className="mr-auto font-medium">{plural(selection.ids.size, "instance")} selected</span>
            {ACTIONS.map((action) => (
              <Button key={action} look={action === "delete" ? "danger" : "plain"} onClick={() => setBulk({ action, all: false })} className="capitalize">{action}</Button>
            ))}
            <Button look="ghost" onClick={selection.clear}>Clear</Button>
          </div>
        )}
      </div>
      {bulk && (
        <BulkDialog
          action={bulk.action}
          target={bulk.all ? { filter: filter.query } : { rows: rows.filter((row) => selection.ids.has(row.id)) }}
          onClose={() => {
            setBulk(undefined);
            selection.clear();
            fresh.show();
          }}
        />
      )}
    </Page>
  );
}

/** How many there are in each state, whatever states the filter has. */
function useStateCounts({ status: _, ...query }: InstanceQuery) {
  const { data: counted } = useCounts("status", query);
  if (!counted || countable(query) === undefined) return undefined;
  return { of: new Map(counted.counts.map((each) => [each.name, each.count])), note: counted.truncated ? `of the newest ${count(counted.examined)}` : undefined };
}

/** A row of an export: what the list shows, without inputs and results. */
function exported(row: Instance) {
  const { id, status, kind, created_at, completed_at, labels } = row;
  return { id, status, runs: nameOf(row), made_by: kind ?? "", created_at, completed_at: completed_at ?? "", failure_code: row.failure?.code ?? row.failure?.category ?? "", failure: row.failure?.message ?? "", labels: labels ?? {} };
}

function pathOf(query: InstanceQuery): string {
  const search = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => [value].flat().map((each): [string, string] => [name, String(each)])));
  return `/v1/instances${search.size > 0 ? `?${search}` : ""}`;
}

const QUIET_MS = 500;

/**
 * Rows that are shown change in place. New ones are added at once while the pointer is elsewhere; otherwise they
 * are counted, so that no row moves under the pointer.
 */
function useFreshRows(text: string) {
  const client = useQueryClient();
  const [count, setCount] = useState(0);
  const isInside = useRef(false);
  const show = useCallback(() => {
    setCount(0);
    void client.resetQueries({ queryKey: ["instances"] });
  }, [client]);
  useEffect(() => setCount(0), [text]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onChanges((changes) => {
      const started = changes.filter((change) => change.change === "started").length;
      if (started === 0) return;
      if (isInside.current) {
        setCount((before) => before + started);
        return;
      }
      timer ??= setTimeout(() => {
        timer = undefined;
        void client.invalidateQueries({ queryKey: ["instances"] });
      }, QUIET_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [client]);
  const setPointerInside = useCallback((inside: boolean) => {
    isInside.current = inside;
  }, []);
  const isPointerInside = useCallback(() => isInside.current, []);
  return { count, show, setPointerInside, isPointerInside };
}

/** Rows in an order. While the pointer is among them, those that change keep their places. */
function useOrdered(rows: Instance[], order: Order | undefined, isPointerInside: () => boolean): Instance[] {
  const before = useRef<{ order: string; places: Map<string, number> }>({ order: "", places: new Map() });
  const key = order ? `${order.id} ${order.isDown}` : "";
  return useMemo(() => {
    if (key === "") return rows;
    const isKept = isPointerInside() && before.current.order === key && rows.every((row) => before.current.places.has(row.id));
    const places = before.current.places;
    const next = isKept ? [...rows].sort((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0)) : ordered(rows, COLUMNS, order);
    before.current = { order: key, places: new Map(next.map((row, index) => [row.id, index])) };
    return next;
  }, [rows, key, isPointerInside]);
}

function useNames() {
  const functions = useQuery({ queryKey: ["functions", "names"], queryFn: () => data(api.GET("/v1/functions")) });
  const orchestrations = useOrchestrations();
  return {
    functions: functions.data?.functions.map((each) => each.name) ?? [],
    orchestrations: orchestrations.data?.orchestrations.map((each) => each.name) ?? [],
  };
}
