import { useQuery } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";
import { usePages } from "./pages";
import { useScope } from "./scope";

export type Hook = Schemas["Hook"];
export type HookEvent = Schemas["HookEvent"];
export type Declaration = {
  function?: string;
  orchestration?: string;
  verification?: string | { type?: string; method?: string; header?: string };
  enabled?: boolean;
  store_only?: boolean;
  description?: string;
};

export function useHooks() {
  return usePages(["hooks"], (cursor) => data(api.GET("/v1/hooks", { params: { query: { cursor } } })), (page) => page.hooks);
}

/** The last deliveries, of all routes or of one; read again every few seconds, since the event stream has none. */
export function useDeliveries(route: string | undefined) {
  const { namespace } = useScope();
  return usePages(
    ["hooks", "events", route],
    (cursor) =>
      route === undefined
        ? data(api.GET("/v1/hooks/events", { params: { query: { cursor, limit: 100 } } }))
        : data(api.GET("/v1/hooks/{namespace}/{route}/events", { params: { path: { namespace, route }, query: { cursor, limit: 100 } } })),
    (page) => page.events,
    { refetchInterval: 3_000 },
  );
}

export function usePayload(route: string, id: string | undefined) {
  const { namespace } = useScope();
  return useQuery({
    queryKey: ["hooks", "payload", namespace, route, id],
    enabled: id !== undefined,
    queryFn: () => data(api.GET("/v1/hooks/{namespace}/{route}/payloads/{id}", { params: { path: { namespace, route, id: id ?? "" } } })),
  });
}

export function verificationOf(hook: Hook): string {
  const { verification } = hook.declaration as Declaration;
  if (typeof verification === "string") return verification;
  return verification?.type ?? verification?.method ?? Object.keys(verification ?? {})[0] ?? "none";
}

export function hookTarget(hook: Hook): string {
  const declaration = hook.declaration as Declaration;
  return declaration.orchestration ?? declaration.function ?? "stored only";
}
