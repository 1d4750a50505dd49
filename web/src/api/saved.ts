import { useQuery, useQueryClient } from "@tanstack/react-query";
import { request } from "./client";
import { ApiError } from "./errors";
import { useScope } from "./scope";

export type Saved = { id: string; kind: "view" | "query"; page?: string; name: string; text: string; updated_at?: string };

/** Views and queries that a tenant shares; `isServed` is false on servers that do not keep them. */
export function useSaved(kind: Saved["kind"]) {
  const scope = useScope();
  const client = useQueryClient();
  const key = ["saved", kind, scope];
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      try {
        return (await request<{ saved: Saved[] }>("/v1/saved", { query: { kind } })).saved;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });
  const refresh = () => client.invalidateQueries({ queryKey: key });
  return {
    isServed: Array.isArray(query.data),
    saved: query.data ?? [],
    save: async (name: string, text: string, page: string) => {
      const id = name.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "view";
      await request(`/v1/saved/${encodeURIComponent(id)}`, { method: "PUT", body: { kind, name, page, text } });
      await refresh();
    },
    remove: async (id: string) => {
      await request(`/v1/saved/${encodeURIComponent(id)}`, { method: "DELETE" });
      await refresh();
    },
  };
}
