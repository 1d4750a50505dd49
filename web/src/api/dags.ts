import { useQuery } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";
import { usePages } from "./pages";
import { useScope } from "./scope";

export type Dag = Schemas["Dag"];
export type Run = Schemas["Run"];
export type RunTask = Schemas["RunTask"];

const FOLLOW_MS = 1_500;

export function useDags() {
  return usePages(["dags"], (cursor) => data(api.GET("/v1/dags", { params: { query: { cursor } } })), (page) => page.dags);
}

export function useDag(name: string) {
  const scope = useScope();
  return useQuery({ queryKey: ["dags", name, scope], queryFn: () => data(api.GET("/v1/dags/{name}", { params: { path: { name } } })) });
}

export function useRuns(dag?: string) {
  return usePages(["runs", dag], (cursor) => data(api.GET("/v1/runs", { params: { query: { dag, cursor, limit: 100 } } })), (page) => page.runs, { refetchInterval: FOLLOW_MS * 4 });
}

export function isOver(status: string): boolean {
  return ["succeeded", "failed", "cancelled"].includes(status);
}

export function useRun(id: string) {
  const scope = useScope();
  return useQuery({
    queryKey: ["runs", "one", id, scope],
    queryFn: () => data(api.GET("/v1/runs/{id}", { params: { path: { id } } })),
    refetchInterval: (query) => (query.state.data && isOver(query.state.data.status) ? false : FOLLOW_MS),
  });
}

export function useTasks(id: string, isRunning: boolean) {
  return usePages(
    ["runs", "tasks", id],
    (cursor) => data(api.GET("/v1/runs/{id}/tasks", { params: { path: { id }, query: { cursor, limit: 1_000 } } })),
    (page) => page.tasks,
    isRunning ? { refetchInterval: FOLLOW_MS } : {},
  );
}

export function useBackfills() {
  return usePages(["backfills"], (cursor) => data(api.GET("/v1/backfills", { params: { query: { cursor } } })), (page) => page.backfills, { refetchInterval: FOLLOW_MS * 4 });
}

/** The longest chain of tasks by time: what a run took so long for. */
export function criticalPath(tasks: RunTask[]): Set<string> {
  const byKey = new Map(tasks.map((task) => [task.key, task]));
  const ends = (task: RunTask) => Date.parse(task.completed_at ?? "");
  let current = tasks.filter((task) => task.completed_at).sort((a, b) => ends(b) - ends(a))[0];
  const path = new Set<string>();
  while (current && !path.has(current.key)) {
    path.add(current.key);
    current = (current.depends_on ?? [])
      .flatMap((key) => byKey.get(key) ?? [])
      .filter((task) => task.completed_at)
      .sort((a, b) => ends(b) - ends(a))[0];
  }
  return path;
}
