import { useQuery } from "@tanstack/react-query";
import { setKeyed } from "../lib/command";
import { type Schemas, api, data } from "./client";
import type { Scope } from "./scope";

export type Permission = Schemas["Permission"];
export type Me = Schemas["Me"];

const TEN_MINUTES_MS = 600_000;

export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: async () => {
      const me = await data(api.GET("/v1/me"));
      setKeyed(me.authentication === "keys");
      return me;
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
