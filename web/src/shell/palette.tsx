import * as Radix from "@radix-ui/react-dialog";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useState } from "react";
import { type Schemas, api, data } from "../api/client";
import { useScope } from "../api/scope";
import { classes } from "../lib/classes";
import { words } from "../lib/format";
import { Icon, type IconName } from "../ui/icon";
import { commandsOfPage } from "./commands";
import { ALL_PLACES } from "./navigation";

type Hit = { key: string; name: string; detail?: string; kind: string; icon: IconName; to: string; run?: () => void; params?: Record<string, string>; search?: Record<string, string> };

const PER_KIND = 6;

/** Ctrl-K: pages, what the open page can do, and everything whose id or name begins with the text. */
export function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const hits = useHits(useDeferredValue(text.trim()));
  useEffect(() => document.getElementById(`hit-${active}`)?.scrollIntoView({ block: "nearest" }), [active]);
  const open = (hit: Hit | undefined) => {
    if (!hit) return;
    onClose();
    // Once the palette is closed: a dialog takes the focus, and gives it back to what had it before.
    if (hit.run) setTimeout(hit.run);
    else void navigate({ to: hit.to, params: hit.params, search: hit.search ?? {} });
  };
  return (
    <Radix.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[rgb(10_10_15/40%)]" />
        <Radix.Content aria-describedby={undefined} className="fixed top-[14vh] left-1/2 z-50 w-[calc(100vw-32px)] max-w-xl -translate-x-1/2 animate-appear overflow-hidden rounded-xl border border-line bg-raised shadow-pop">
          <Radix.Title className="sr-only">Search</Radix.Title>
          <input
            autoFocus
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-hits"
            aria-activedescendant={hits[active] ? `hit-${active}` : undefined}
            aria-label="Search pages, actions, instances, functions, schedules, runbooks, batches, DAGs and webhooks"
            placeholder="Find a page, an action, an instance, a function…"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setActive(0);
            }}
            onKeyDown={(event) => {
              if (event.key === "ArrowDown") setActive(Math.min(active + 1, hits.length - 1));
              else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
              else if (event.key === "Enter") open(hits[active]);
              else return;
              event.preventDefault();
            }}
            className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none placeholder:text-faint"
          />
          <div id="palette-hits" role="listbox" aria-label="Results" className="max-h-[50vh] overflow-auto p-1.5">
            {hits.length === 0 && <div className="px-3 py-6 text-center text-dim">Nothing has this name.</div>}
            {hits.map((hit, index) => (
              <div
                key={hit.key}
                id={`hit-${index}`}
                role="option"
                aria-selected={index === active}
                onClick={() => open(hit)}
                onPointerMove={() => setActive(index)}
                className={classes("flex h-8.5 cursor-default items-center gap-3 rounded-md px-2.5", index === active && "bg-hover")}
              >
                <Icon name={hit.icon} size={15} className="text-dim" />
                <span className="min-w-0 flex-1 truncate">{hit.name}</span>
                {hit.detail && <span className="text-xs text-dim">{words(hit.detail)}</span>}
                <span className="text-xs text-faint">{hit.kind}</span>
              </div>
            ))}
          </div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function useHits(text: string): Hit[] {
  const scope = useScope();
  const found = useQuery({
    queryKey: ["palette", text, scope],
    queryFn: () => search(text),
    enabled: text.length > 0,
    placeholderData: (previous) => previous,
  });
  const [commands] = useState(commandsOfPage);
  const actions: Hit[] = commands.filter((command) => contains(command.name, text)).map((command, index) => ({
    key: `action ${index}`, name: command.name, kind: "Action", icon: "bolt", to: ".", run: command.run,
  }));
  const pages: Hit[] = ALL_PLACES.filter((place) => contains(place.name, text)).map((place) => ({
    key: place.to, name: place.name, kind: "Page", icon: place.icon, to: place.to,
  }));
  return text === "" ? [...pages, ...actions] : [...pages, ...actions, ...(found.data ?? [])];
}

function contains(name: string | null | undefined, text: string): boolean {
  return (name ?? "").toLowerCase().includes(text.toLowerCase());
}

type Found = Schemas["SearchHit"];

/** How each kind is drawn, and where it is shown. */
const KINDS: Record<Found["kind"], { kind: string; icon: IconName; at: (hit: Found) => Pick<Hit, "to" | "params" | "search"> }> = {
  instance: { kind: "Instance", icon: "list", at: ({ id }) => ({ to: "/instances/$id", params: { id } }) },
  function: { kind: "Function", icon: "code", at: ({ id }) => ({ to: "/functions/$name", params: { name: id } }) },
  schedule: { kind: "Schedule", icon: "clock", at: ({ id }) => ({ to: "/schedules/$id", params: { id } }) },
  action: { kind: "Action", icon: "bolt", at: ({ id }) => ({ to: "/actions", search: { name: id } }) },
  runbook: { kind: "Runbook", icon: "book", at: ({ id }) => ({ to: "/runbooks/$name", params: { name: id } }) },
  batch: { kind: "Batch", icon: "book", at: ({ id }) => ({ to: "/batches/$id", params: { id } }) },
  dag: { kind: "DAG", icon: "graph", at: ({ id }) => ({ to: "/dags/$name", params: { name: id } }) },
  hook: { kind: "Webhook", icon: "hook", at: ({ id }) => ({ to: "/webhooks/$name", params: { name: id } }) },
};

async function search(text: string): Promise<Hit[]> {
  const { hits } = await data(api.GET("/v1/search", { params: { query: { q: text, limit: PER_KIND } } }));
  return hits.map((hit) => {
    const { kind, icon, at } = KINDS[hit.kind];
    const name = hit.kind === "batch" ? `${hit.name ?? "batch"} #${hit.id}` : hit.kind === "schedule" ? (hit.name ?? hit.id) : hit.id;
    return { key: `${hit.kind} ${hit.id}`, name, detail: hit.status ?? undefined, kind, icon, ...at(hit) };
  });
}
