import { useQuery, useQueryClient } from "@tanstack/react-query";
import { toast } from "../shell/toasts";
import { messageOf } from "../ui/states";
import { request } from "./client";
import { ApiError } from "./errors";
import { useScope } from "./scope";

export type Saved = { name: string; kind: "view" | "query"; page?: string; text: string };

/** Views and queries with a name, shared by the tenant. A server that keeps none is told by `isServed`. */
export function useSaved(kind: Saved["kind"], page: string) {
  const scope = useScope();
  const client = useQueryClient();
  const key = ["saved", scope];
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      try {
        return (await request<{ saved: Saved[] }>("/v1/saved", { query: { limit: 1000 } })).saved;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });
  const change = async (name: string, options: { method: string; body?: unknown }) => {
    try {
      await request(`/v1/saved/${encodeURIComponent(name)}`, options);
      await client.invalidateQueries({ queryKey: key });
    } catch (error) {
      toast(messageOf(error), true);
    }
  };
  return {
    isServed: Array.isArray(query.data),
    saved: (query.data ?? []).filter((each) => each.kind === kind && (each.page ?? page) === page),
    save: (name: string, text: string) => change(name, { method: "PUT", body: { kind, page, text } }),
    remove: (name: string) => change(name, { method: "DELETE" }),
  };
}
