import { useSyncExternalStore } from "react";

/** The namespace and tenant that every request is about. They are in the address of the page. */
export type Scope = { namespace: string; tenant: string };

const DEFAULT = "default";

function fromAddress(): Scope {
  const query = new URLSearchParams(window.location.search);
  return {
    namespace: query.get("namespace") || DEFAULT,
    tenant: query.get("tenant") || DEFAULT,
  };
}

let current = fromAddress();
const listeners = new Set<() => void>();

export function scope(): Scope {
  return current;
}

export function setScope(next: Scope) {
  if (next.namespace === current.namespace && next.tenant === current.tenant) return;
  current = next;
  for (const listener of listeners) listener();
}

export function useScope(): Scope {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}

/** The parameters that a page's address carries; defaults are left out. */
export function scopeSearch({ namespace, tenant }: Scope): { namespace?: string; tenant?: string } {
  return {
    ...(namespace === DEFAULT ? {} : { namespace }),
    ...(tenant === DEFAULT ? {} : { tenant }),
  };
}

const WHOLE_SERVER = /^\/v1\/(keys|system|me|sessions|nodes|settings|store|queues)(\/|$)/;

/** Adds namespace and tenant to the address of a request, where the route takes them. */
export function scopeUrl(url: URL, prefix: string): URL {
  const path = url.pathname.slice(prefix.length - 1);
  if (WHOLE_SERVER.test(path)) return url;
  const isHook = /^\/v1\/hooks\/(?!events$)[^/]+/.test(path);
  if (!isHook && current.namespace !== DEFAULT) url.searchParams.set("namespace", current.namespace);
  if (current.tenant !== DEFAULT) url.searchParams.set("tenant", current.tenant);
  return url;
}
