import { Link, useNavigate } from "@tanstack/react-router";
import { api, data, type Schemas } from "../../api/client";
import { nameOf } from "../../api/instances";
import { useMay } from "../../api/me";
import { useTimers } from "../../api/server";
import { useAddress } from "../../lib/address";
import { classes } from "../../lib/classes";
import { cli, curl } from "../../lib/command";
import { count } from "../../lib/format";
import { useNow } from "../../lib/time";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Figures } from "../../ui/figures";
import { Id } from "../../ui/id";
import { ListPage, onePage } from "../../ui/list-page";
import type { Column } from "../../ui/table";
import { Time } from "../../ui/time";

type Timer = Schemas["PendingTimer"];

const KINDS: [Timer["kind"], string][] = [["timer", "Timer"], ["activity", "Next attempt"], ["start", "Delayed start"]];
const MINUTE_MS = 60_000;

function kindOf(timer: Timer): string {
  return KINDS.find(([kind]) => kind === timer.kind)?.[1] ?? timer.kind;
}

/** The activity that is tried again; a call has one, which is its function. */
function activityOf({ name, function: called }: Timer): string | undefined {
  return called ? undefined : (name ?? undefined);
}

/** What wakes up by itself, in one place: timers, next attempts and delayed starts, soonest first. */
export function TimersPage() {
  const query = useTimers();
  const columns = useColumns();
  const navigate = useNavigate();
  const [{ view }, setAddress] = useAddress();
  const timers = query.data?.timers ?? [];
  const rows = view === undefined ? timers : timers.filter((timer) => timer.kind === view);
  return (
    <ListPage
      title="Timers"
      same={{ command: ["timers"], path: "/v1/timers" }}
      query={onePage(query)}
      rows={rows}
      columns={columns}
      rowId={(row) => `${row.instance} ${row.kind} ${row.event ?? ""}`}
      textOf={(row) => [row.instance, nameOf(row), row.name, kindOf(row)]}
      onOpen={(row) => void navigate({ to: "/instances/$id", params: { id: row.instance }, search: {} })}
      empty={{ icon: "timer", title: "Nothing wakes up by itself", text: "Timers, next attempts after a failure, and delayed starts are listed here while they wait." }}
      above={query.data && <Summary timers={timers} examined={query.data.examined} isPart={query.data.truncated ?? false} />}
      filters={
        <span role="group" aria-label="Kinds" className="flex flex-wrap gap-1.5">
          {KINDS.map(([kind, name]) => (
            <button
              key={kind}
              type="button"
              aria-pressed={view === kind}
              onClick={() => setAddress({ view: view === kind ? undefined : kind })}
              className={classes("h-6 rounded-full border px-2 text-xs", view === kind ? "border-accent bg-selected text-text" : "border-line text-dim hover:bg-hover")}
            >
              {name} <span className="tabular-nums">{count(timers.filter((timer) => timer.kind === kind).length)}</span>
            </button>
          ))}
        </span>
      }
    />
  );
}

function Summary({ timers, examined, isPart }: { timers: Timer[]; examined: number; isPart: boolean }) {
  const now = useNow();
  const within = (from: number, until: number) => count(timers.filter((timer) => Date.parse(timer.at) - now >= from && Date.parse(timer.at) - now < until).length);
  const due = timers.filter((timer) => Date.parse(timer.at) < now).length;
  return (
    <div className="border-b border-line px-5 py-4">
      <Figures
        figures={[
          ["due now", count(due), due > 0 ? "text-warn" : ""],
          ["within a minute", within(0, MINUTE_MS)],
          ["within an hour", within(MINUTE_MS, 60 * MINUTE_MS)],
          ["within a day", within(60 * MINUTE_MS, 24 * 60 * MINUTE_MS)],
          ["later", within(24 * 60 * MINUTE_MS, Number.POSITIVE_INFINITY)],
        ]}
      />
      {isPart && <p role="note" className="mt-3 text-xs text-warn">There may be more: the newest {count(examined)} open instances were looked at, and at most 500 timers are listed.</p>}
    </div>
  );
}

function useColumns(): Column<Timer>[] {
  const change = useChange();
  const mayChange = useMay("operate");
  const retry = ({ instance }: Timer) =>
    change({
      title: "Retry now", verb: "Retry it now", takesReason: true, description: `Activities of ${instance} that wait for their next attempt run at once. Their attempts count as before.`,
      run: (reason) => data(api.POST("/v1/instances/{id}/retry", { params: { path: { id: instance } }, body: { reason } })), done: "The next attempt was called",
      cli: (reason) => cli("retry", instance, ...(reason ? ["--reason", reason] : [])), curl: (reason) => curl("POST", `/v1/instances/${encodeURIComponent(instance)}/retry`, { reason }),
    });
  return [
    { id: "at", name: "Due", width: "120px", cell: (row) => <Time at={row.at} />, sort: (row) => Date.parse(row.at) },
    { id: "kind", name: "Kind", width: "110px", cell: kindOf, sort: kindOf },
    { id: "instance", name: "Instance", width: "minmax(200px,1.6fr)", cell: (row) => <Link to="/instances/$id" params={{ id: row.instance }} search={{}} className="font-medium hover:underline"><Id id={row.instance} /></Link>, sort: (row) => row.instance },
    { id: "runs", name: "Runs", width: "minmax(120px,1fr)", cell: nameOf, sort: nameOf },
    { id: "name", name: "Activity", width: "minmax(120px,1fr)", cell: (row) => <span className="text-dim">{activityOf(row)}</span>, sort: activityOf },
    { id: "since", name: "Waits since", width: "120px", cell: (row) => <span className="text-dim"><Time at={row.since} /></span>, sort: (row) => Date.parse(row.since) },
    { id: "actions", name: "", width: "110px", right: true, cell: (row) => mayChange && row.kind === "activity" && <Button look="ghost" onClick={() => retry(row)}>Retry now</Button> },
  ];
}
