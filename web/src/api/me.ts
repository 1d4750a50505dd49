import { useQuery } from "@tanstack/react-query";
import { setKeyed } from "../lib/command";
import { request } from "./client";
import { ApiError } from "./errors";
import type { Scope } from "./scope";

export type Permission = "read" | "operate" | "work" | "messages" | "system" | "admin";
export type Me = {
  authentication: "keys" | "none";
  key?: string;
  role: string;
  may: Permission[];
  grants: { namespace: string; tenant: string }[];
  namespace: string;
  tenant: string;
  session?: { id: string; created_at: string; expires_at: string };
};

/** A server without the route has no sessions: it is open, or a key is sent by a proxy. */
const EVERYTHING: Me = {
  authentication: "none",
  role: "admin",
  may: ["read", "operate", "work", "messages", "system", "admin"],
  grants: [{ namespace: "*", tenant: "*" }],
  namespace: "default",
  tenant: "default",
};

const TEN_MINUTES_MS = 600_000;

export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: async () => {
      try {
        const me = await request<Me>("/v1/me");
        setKeyed(me.authentication === "keys");
        return me;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return EVERYTHING;
        throw error;
      }
    },
    // The session is renewed by requests; an open event stream does not count as one.
    refetchInterval: TEN_MINUTES_MS,
    staleTime: TEN_MINUTES_MS,
  });
}

/** Whether a caller may enter a namespace and tenant. */
export function mayEnter({ grants }: Me, { namespace, tenant }: Scope): boolean {
  return grants.some((grant) => ["*", namespace].includes(grant.namespace) && ["*", tenant].includes(grant.tenant));
}

export function useMay(permission: Permission): boolean {
  return useMe().data?.may.includes(permission) ?? false;
}
