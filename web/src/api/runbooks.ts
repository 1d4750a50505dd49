import { useQuery } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";
import { usePages } from "./pages";
import { useScope } from "./scope";
import { quotedSql, sql } from "./sql";

export type Runbook = Schemas["Runbook"];
export type Batch = Schemas["Batch"];
export type BatchDetails = Schemas["BatchDetails"];
export type Phase = Schemas["Phase"];
export type Member = Schemas["Member"];
export type Step = Schemas["Step"];
export type BatchAction = Schemas["BatchAction"];

const MEMBERS_PAGE = 1_000;

export function useRunbooks() {
  return usePages(["runbooks"], (cursor) => data(api.GET("/v1/runbooks", { params: { query: { cursor } } })), (page) => page.runbooks);
}

export function useBatches(runbook?: string) {
  return usePages(["batches", runbook], (cursor) => data(api.GET("/v1/batches", { params: { query: { runbook, cursor, limit: 100 } } })), (page) => page.batches);
}

export function useBatch(id: number) {
  const scope = useScope();
  return useQuery({ queryKey: ["batch", id, scope], queryFn: () => data(api.GET("/v1/batches/{id}", { params: { path: { id } } })) });
}

export const MEMBER_STATES = ["active", "failed", "removed", "cancelled"] as const;
export type MemberState = (typeof MEMBER_STATES)[number];

/** The members in a state, or all. */
export function useMembers(id: number, status: MemberState | undefined) {
  return usePages(
    ["batch", id, "members", status],
    (cursor) => data(api.GET("/v1/batches/{id}/members", { params: { path: { id }, query: { status: status && [status], cursor, limit: MEMBERS_PAGE } as never } })),
    (page) => page.members,
  );
}

/** The member with a key: the server knows it also where the list has not been loaded that far. */
export function useMemberByKey(id: number, key: string, isWanted: boolean) {
  const scope = useScope();
  return useQuery({
    queryKey: ["batch", id, "key", key, scope],
    enabled: isWanted && key !== "",
    queryFn: async () => (await data(api.GET("/v1/batches/{id}/members", { params: { path: { id }, query: { key } } }))).members,
  });
}

/** The steps of one member; asked for by rows that are visible, and by no others. */
export function useMember(batch: number, member: number, isWanted: boolean) {
  const scope = useScope();
  return useQuery({
    queryKey: ["batch", batch, "member", member, scope],
    enabled: isWanted,
    queryFn: () => data(api.GET("/v1/batches/{id}/members/{member}", { params: { path: { id: batch, member } } })),
  });
}

/** How many members are in a state of a step. */
export type StepCell = { phase: number; index: number; name: string; function: string; pool: string; status: string; count: number; retries: number; meanMs: number | undefined };
export type StepMember = { id: number; key: string; status: string; step: number; error: string | undefined; at: string | undefined };

const FOLLOWED_STEPS = 20_000;
const FOLLOW_MS = 3_000;
const SLOW_FOLLOW_MS = 30_000;

/** The steps of a batch with their states added up over all members; read seldom where there are many steps. */
export function useStepCells(batch: BatchDetails) {
  const scope = useScope();
  const steps = batch.phases.flatMap((phase) => Object.values(phase.step_counts)).reduce((sum, value) => sum + value, 0);
  const isOver = ["completed", "failed", "cancelled"].includes(batch.status);
  return useQuery({
    queryKey: ["batch-steps", batch.id, scope],
    refetchInterval: isOver ? false : steps > FOLLOWED_STEPS ? SLOW_FOLLOW_MS : FOLLOW_MS,
    queryFn: async () => {
      const answer = await sql(
        `SELECT phase, step_index, name, function, pool, status, count(*), sum(retry_count), avg((julianday(completed_at) - julianday(dispatched_at)) * 86400000.0)
         FROM steps WHERE batch = ${batch.id} AND phase IS NOT NULL GROUP BY phase, step_index, name, function, pool, status`,
        { timeout_seconds: MOST_SECONDS, max_rows: MOST_CELLS },
      );
      return answer.rows.map(([phase, index, name, fn, pool, status, count, retries, mean]): StepCell => ({
        phase: Number(phase), index: Number(index), name: String(name), function: String(fn), pool: String(pool), status: String(status),
        count: Number(count), retries: Number(retries), meanMs: typeof mean === "number" ? mean : undefined,
      }));
    },
  });
}

const MOST_SECONDS = 30;
const MOST_CELLS = 10_000;
export const MOST_STEP_MEMBERS = 1_000;

/** The members that are in a state of a step, in the order in which they were added. */
export function useStepMembers(batch: number, cell: { phase: number; index: number; status: string } | undefined) {
  const scope = useScope();
  return useQuery({
    queryKey: ["batch-steps", batch, "members", cell, scope],
    enabled: cell !== undefined,
    queryFn: async () => {
      const answer = await sql(
        `SELECT m.id, m.key, m.status, s.id, s.error_message, coalesce(s.completed_at, s.dispatched_at)
         FROM steps s JOIN members m ON m.id = s.member
         WHERE s.batch = ${batch} AND m.batch = ${batch} AND s.phase = ${cell?.phase} AND s.step_index = ${cell?.index} AND s.status = ${quotedSql(cell?.status ?? "")}
         ORDER BY m.id`,
        { timeout_seconds: MOST_SECONDS, max_rows: MOST_STEP_MEMBERS },
      );
      const members = answer.rows.map(([id, key, status, step, error, at]): StepMember => ({
        id: Number(id), key: String(key), status: String(status), step: Number(step), error: error === null ? undefined : String(error), at: at === null ? undefined : String(at),
      }));
      return { members, truncated: answer.truncated };
    },
  });
}

export async function requestOf(batch: number, body: BatchAction): Promise<Schemas["BatchRequest"]> {
  const request = (await data(api.POST("/v1/batches/{id}/requests", { params: { path: { id: batch } }, body: body as never }))) as Schemas["BatchRequest"];
  if (request.state === "refused") throw new Error(request.reason ?? "The request was refused.");
  return request;
}
