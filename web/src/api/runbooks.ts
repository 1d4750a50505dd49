import { useQuery } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";
import { usePages } from "./pages";
import { useScope } from "./scope";

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

export async function requestOf(batch: number, body: BatchAction): Promise<Schemas["BatchRequest"]> {
  const request = (await data(api.POST("/v1/batches/{id}/requests", { params: { path: { id: batch } }, body: body as never }))) as Schemas["BatchRequest"];
  if (request.state === "refused") throw new Error(request.reason ?? "The request was refused.");
  return request;
}
