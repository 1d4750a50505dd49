import { useQuery, useQueryClient } from "@tanstack/react-query";
import { toast } from "../shell/toasts";
import { messageOf } from "../ui/states";
import { type Schemas, api, data } from "./client";
import { useScope } from "./scope";

export type Saved = Schemas["Saved"];

/** Views and queries with a name, shared by the tenant. */
export function useSaved(kind: Saved["kind"], page: string) {
  const scope = useScope();
  const client = useQueryClient();
  const key = ["saved", scope];
  const query = useQuery({
    queryKey: key,
    queryFn: async () => (await data(api.GET("/v1/saved", { params: { query: { limit: 1000 } } }))).saved,
  });
  const change = async (request: () => Promise<unknown>) => {
    try {
      await request();
      await client.invalidateQueries({ queryKey: key });
    } catch (error) {
      toast(messageOf(error), true);
    }
  };
  return {
    saved: (query.data ?? []).filter((each) => each.kind === kind && (each.page ?? page) === page),
    save: (name: string, text: string) => change(() => data(api.PUT("/v1/saved/{name}", { params: { path: { name } }, body: { kind, page, text } }))),
    remove: (name: string) => change(() => data(api.DELETE("/v1/saved/{name}", { params: { path: { name } } }))),
  };
}
