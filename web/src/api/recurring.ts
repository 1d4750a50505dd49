import { useQuery } from "@tanstack/react-query";
import { type Schemas, api, data } from "./client";
import { usePages } from "./pages";
import { useScope } from "./scope";

export type Summary = Schemas["RecurringSummary"];
export type Recurring = Schemas["RecurringAction"];
export type Fields = Schemas["RecurringFields"];
export type Preview = Schemas["RecurringPreview"];

/** Last occurrences of each schedule that its row shows. */
const OUTCOMES = 8;

export function useRecurringList() {
  return usePages(
    ["recurring"],
    (cursor) => data(api.GET("/v1/recurring", { params: { query: { cursor, limit: 100, outcomes: OUTCOMES } } })),
    (page) => page.recurring_actions,
  );
}

export function useRecurring(id: string) {
  const scope = useScope();
  return useQuery({ queryKey: ["recurring", id, scope], queryFn: () => data(api.GET("/v1/recurring/{id}", { params: { path: { id } } })) });
}

export function useRecurringHistory(id: string) {
  return usePages(
    ["recurring", id, "history"],
    (cursor) => data(api.GET("/v1/recurring/{id}/history", { params: { path: { id }, query: { cursor, limit: 50 } } })),
    (page) => page.entries,
  );
}

export function useNextTimes(id: string, count: number) {
  const scope = useScope();
  return useQuery({
    queryKey: ["recurring", id, "next", count, scope],
    queryFn: () => data(api.GET("/v1/recurring/{id}/preview", { params: { path: { id }, query: { count } } })),
  });
}

/** A schedule in words, without where its intervals are counted from if that is where they are counted from anyway. */
export function inWords(schedule: string): string {
  return schedule.replace(", counted from 1970-01-01T00:00:00Z", "");
}

/** What a schedule runs, for people. */
export function targetOf(row: { provider: string; action_type: string; orchestration?: string | null }): string {
  return row.orchestration ?? (row.action_type ? `${row.provider} ${row.action_type}` : row.provider);
}
