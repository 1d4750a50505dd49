import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import { basePath } from "../lib/base";
import { type Schemas, reachability } from "./client";
import { scopeUrl } from "./scope";

export type Change = Schemas["Change"];
type Instance = Schemas["Instance"];
type Pages = InfiniteData<Schemas["InstanceList"]>;

const FLUSH_MS = 250;
const RECONNECT_MS = 1_000;
/** A batch at work commits many times a second, and each visible member is read by itself. */
const BATCHES_MS = 800;

type Listener = (changes: Change[]) => void;
const listeners = new Set<Listener>();

/** Calls `listener` with what happened to instances since the last call, at most four times a second. */
export function onChanges(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** One subscription to the event stream for the whole page; it feeds the query cache. */
export function follow(client: QueryClient): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let flush: ReturnType<typeof setTimeout> | undefined;
  let pending: Change[] = [];
  let batches: ReturnType<typeof setTimeout> | undefined;
  let runs: ReturnType<typeof setTimeout> | undefined;
  let wasLost = false;

  const deliver = () => {
    flush = undefined;
    const changes = pending;
    pending = [];
    if (changes.length > 0) {
      apply(client, changes);
      for (const listener of listeners) listener(changes);
    }
  };
  const soon = () => {
    flush ??= setTimeout(deliver, FLUSH_MS);
  };

  const connect = () => {
    const url = scopeUrl(new URL(`${window.location.origin}${basePath}v1/events`), basePath);
    source = new EventSource(url);
    source.addEventListener("listening", () => {
      reachability.report(true);
      show(true);
      // What happened while the stream was away is not in it: read the page again.
      if (wasLost) void client.invalidateQueries();
      wasLost = false;
    });
    source.addEventListener("lagged", () => void client.invalidateQueries());
    source.addEventListener("change", (event) => {
      pending.push(JSON.parse(event.data) as Change);
      soon();
    });
    // The session has ended, or its key may not read here any more.
    source.addEventListener("revoked", () => void client.invalidateQueries({ queryKey: ["me"] }));
    source.addEventListener("batch", () => {
      batches ??= setTimeout(() => {
        batches = undefined;
        void client.invalidateQueries({ queryKey: ["batches"] });
        void client.invalidateQueries({ queryKey: ["batch"] });
      }, BATCHES_MS);
    });
    source.addEventListener("run", () => {
      runs ??= setTimeout(() => {
        runs = undefined;
        void client.invalidateQueries({ queryKey: ["runs"] });
      }, BATCHES_MS);
    });
    source.onerror = () => {
      wasLost = true;
      show(false);
      if (source?.readyState !== EventSource.CLOSED) {
        reachability.report(false);
        return;
      }
      source.close();
      retry = setTimeout(connect, RECONNECT_MS);
      void probe();
    };
  };
  connect();

  return () => {
    source?.close();
    show(false);
    clearTimeout(retry);
    clearTimeout(flush);
    clearTimeout(batches);
    clearTimeout(runs);
  };
}

/** Marks the page while it follows the stream; tests wait for it. */
function show(isLive: boolean) {
  document.documentElement.dataset.live = isLive ? "on" : "off";
}

/** Tells an event stream that was refused from a server that is away. */
async function probe() {
  try {
    const answer = await fetch(`${basePath}healthz`);
    reachability.report(answer.status < 500);
  } catch {
    reachability.report(false);
  }
}

/** Updates rows that are on the page in place; what else may have changed is read again when it is looked at. */
function apply(client: QueryClient, changes: Change[]) {
  const latest = new Map(changes.map((change) => [change.id, change]));
  client.setQueriesData<Pages>({ queryKey: ["instances"] }, (pages) => pages && patchPages(pages, latest));
  for (const id of latest.keys()) {
    void client.invalidateQueries({ queryKey: ["instance", id] });
  }
  void client.invalidateQueries({ queryKey: ["live"] });
  if (changes.some((change) => change.kind === "dag" || change.kind === "schedule")) {
    void client.invalidateQueries({ queryKey: ["runs"] });
    void client.invalidateQueries({ queryKey: ["recurring"] });
  }
}

function patchPages(pages: Pages, latest: Map<string, Change>): Pages {
  let touched = false;
  const next = pages.pages.map((page) => {
    if (!page.instances.some((row) => latest.has(row.id))) return page;
    touched = true;
    return { ...page, instances: page.instances.map((row) => patchRow(row, latest.get(row.id))) };
  });
  return touched ? { ...pages, pages: next } : pages;
}

function patchRow(row: Instance, change: Change | undefined): Instance {
  if (!change) return row;
  const hasEnded = ["completed", "failed", "cancelled"].includes(change.change);
  return {
    ...row,
    status: change.status,
    execution: change.execution,
    updated_at: change.at,
    completed_at: hasEnded ? change.at : row.completed_at,
  };
}

