import { queryOptions, useQuery } from "@tanstack/react-query";
import { type InstanceQuery, countable } from "../lib/filter";
import { type Schemas, api, data } from "./client";
import { usePages } from "./pages";
import { type Scope, useScope } from "./scope";

export type Instance = Schemas["Instance"];
export type HistoryEvent = Schemas["HistoryEvent"];
export type Explanation = Schemas["InstanceExplanation"];

const PAGE = 100;
const HISTORY_PAGE = 1_000;
/** The stream of the tenant has changes of state only; events of an open instance are read as often as this. */
const FOLLOW_MS = 1_000;
const COUNTS_MS = 10_000;

export function useInstances(query: InstanceQuery) {
  return usePages(
    ["instances", query],
    (cursor) => data(api.GET("/v1/instances", { params: { query: { ...query, limit: PAGE, cursor } as never } })),
    (page) => page.instances,
  );
}

export function useInstance(id: string) {
  const scope = useScope();
  return useQuery({
    queryKey: ["instance", id, "row", scope],
    queryFn: () => data(api.GET("/v1/instances/{id}", { params: { path: { id } } })),
  });
}

/** Why an instance waits. */
export function useExplanation(id: string, isOpen: boolean) {
  const scope = useScope();
  return useQuery({
    queryKey: ["instance", id, "explain", scope],
    enabled: isOpen,
    queryFn: () => data(api.GET("/v1/instances/{id}/explain", { params: { path: { id } } })),
  });
}

/** How many there are by state, name or failure, among those that match a filter; nothing where it has a field that counts cannot take. */
export function useCounts(by: "status" | "orchestration" | "function" | "failure", filter: InstanceQuery, isWanted = true) {
  const scope = useScope();
  const query = countable(filter);
  return useQuery({
    queryKey: ["counts", by, query, scope],
    enabled: isWanted && query !== undefined,
    refetchInterval: COUNTS_MS,
    placeholderData: (previous) => previous,
    queryFn: () => data(api.GET("/v1/counts", { params: { query: { by, ...query } as never } })),
  });
}

/** All events of an execution. Later reads fetch only what is new. */
export function useHistory(id: string, execution: number | undefined, isOpen: boolean) {
  const scope = useScope();
  return useQuery({ ...historyOf(id, execution, scope), refetchInterval: isOpen ? FOLLOW_MS : false });
}

/** Histories that are still being read. */
const parts = new WeakSet<HistoryEvent[]>();

/** Whether more events of this history are on their way. */
export function isPart(events: HistoryEvent[]): boolean {
  return parts.has(events);
}

export function historyOf(id: string, execution: number | undefined, scope: Scope) {
  return queryOptions({
    queryKey: ["instance", id, "history", execution, scope],
    enabled: execution !== undefined,
    structuralSharing: false,
    queryFn: async ({ client, queryKey }) => {
      const known = client.getQueryData<HistoryEvent[]>(queryKey) ?? [];
      const events = [...known];
      let after: number | undefined = events.at(-1)?.id;
      let shown = known.length;
      for (;;) {
        const page = await data(
          api.GET("/v1/instances/{id}/history", { params: { path: { id }, query: { execution, after, limit: HISTORY_PAGE } } }),
        );
        events.push(...page.events);
        if (page.next_after === undefined || page.next_after === null) {
          parts.delete(known);
          return events.length === known.length ? known : events;
        }
        after = page.next_after;
        // A long history is drawn while it is read: after the first page, and then whenever there is twice as much.
        if (events.length >= shown * 2) {
          shown = events.length;
          const part = [...events];
          parts.add(part);
          client.setQueryData(queryKey, part);
        }
      }
    },
  });
}

export function useExecutions(id: string) {
  return usePages(
    ["instance", id, "executions"],
    (cursor) => data(api.GET("/v1/instances/{id}/executions", { params: { path: { id }, query: { cursor } } })),
    (page) => page.executions,
  );
}

export function useTree(id: string) {
  return usePages(
    ["instance", id, "tree"],
    (cursor) => data(api.GET("/v1/instances/{id}/tree", { params: { path: { id }, query: { cursor, limit: 500 } } })),
    (page) => page.nodes,
  );
}

export function hasEnded(status: string): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** What an instance runs, by the name that people know: its function for a call, else its orchestration. */
export function nameOf(row: { function?: string | null; orchestration?: string | null }): string {
  return row.function ?? row.orchestration ?? "";
}
