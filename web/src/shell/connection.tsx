import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { reachability } from "../api/client";
import { basePath } from "../lib/base";
import { Icon } from "../ui/icon";

const PROBE_MS = 1_000;

/** Says that the server is away, and reads everything again once it is back. */
export function ConnectionBanner() {
  const client = useQueryClient();
  const isReachable = useSyncExternalStore(
    (listener) => {
      reachability.listeners.add(listener);
      return () => reachability.listeners.delete(listener);
    },
    () => reachability.isReachable,
  );
  useEffect(() => {
    if (isReachable) return;
    const timer = setInterval(async () => {
      try {
        const answer = await fetch(`${basePath}healthz`, { cache: "no-store" });
        if (!answer.ok) return;
        reachability.report(true);
        void client.invalidateQueries();
      } catch {
        // Still away: the next tick tries again.
      }
    }, PROBE_MS);
    return () => clearInterval(timer);
  }, [isReachable, client]);
  if (isReachable) return null;
  return (
    <div role="alert" className="flex items-center gap-2 bg-warn-bg px-5 py-1.5 text-warn">
      <Icon name="warning" size={14} />
      <span>The connection to the server is lost. What you see is from before; the page catches up by itself.</span>
    </div>
  );
}
