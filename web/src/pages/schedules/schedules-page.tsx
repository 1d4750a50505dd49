import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useMay } from "../../api/me";
import { type Summary, inWords, targetOf, useRecurringList } from "../../api/recurring";
import { classes } from "../../lib/classes";
import { count } from "../../lib/format";
import { fullTime, millis } from "../../lib/time";
import { Button } from "../../ui/button";
import { ListPage } from "../../ui/list-page";
import { Menu } from "../../ui/menu";
import { Badge, Status, toneOf } from "../../ui/status";
import type { Column } from "../../ui/table";
import { Time } from "../../ui/time";
import { useScheduleChanges } from "./changes";
import { ScheduleDialog } from "./schedule-dialog";

const COLUMNS: Column<Summary>[] = [
  { id: "status", name: "Status", width: "88px", cell: (row) => <Status status={row.status} />, sort: (row) => row.status },
  { id: "name", name: "Schedule", width: "minmax(130px,1fr)", cell: (row) => <Link to="/schedules/$id" params={{ id: row.id }} search={{}} className="font-medium hover:underline">{row.name ?? row.id}</Link>, sort: (row) => row.name ?? row.id },
  { id: "schedule", name: "When", width: "minmax(190px,2fr)", cell: (row) => <span title={[row.schedule, row.cron_expr].filter(Boolean).join("\n")}>{inWords(row.schedule)}</span> },
  { id: "runs", name: "Runs", width: "minmax(84px,.8fr)", cell: targetOf, sort: (row) => targetOf(row) },
  { id: "next", name: "Next", width: "104px", cell: (row) => <Time at={row.next_execution_at} />, sort: (row) => millis(row.next_execution_at) },
  { id: "last", name: "Last", width: "104px", cell: (row) => <span className="text-dim"><Time at={row.last_executed_at} /></span>, sort: (row) => millis(row.last_executed_at) },
  { id: "recent", name: "Last outcomes", width: "116px", cell: (row) => <Dots recent={row.recent ?? []} /> },
  { id: "count", name: "Count", width: "60px", right: true, cell: (row) => count(row.execution_count), sort: (row) => row.execution_count },
  { id: "labels", name: "Labels", width: "minmax(80px,.8fr)", cell: (row) => <span className="flex gap-1">{Object.entries(row.labels).map(([key, value]) => <Badge key={key}>{key}={value}</Badge>)}</span> },
];

function RowMenu({ schedule }: { schedule: Summary }) {
  const name = schedule.name ?? schedule.id;
  const { pause, resume, runNow, remove } = useScheduleChanges(schedule.id, () => undefined);
  return (
    <Menu
      label={`Schedule ${name}`}
      isOfRow
      trigger={<Button look="ghost" icon="more" aria-label={`More about ${name}`} />}
      items={[
        { name: "Run now…", onSelect: runNow },
        schedule.enabled ? { name: "Pause…", onSelect: pause } : { name: "Resume…", onSelect: resume },
        "line",
        { name: "Delete…", danger: true, onSelect: remove },
      ]}
    />
  );
}

const ACTIONS: Column<Summary> = { id: "actions", name: "", width: "44px", cell: (row) => <RowMenu schedule={row} /> };

const COLOURS = { good: "bg-good", bad: "bg-bad", warn: "bg-warn", info: "bg-info", mute: "bg-mute" };

/** The last occurrences as dots, the newest at the right; a failure is a square on its corner. */
function Dots({ recent }: { recent: Schemas["RecentOccurrence"][] }) {
  if (recent.length === 0) return <span className="text-faint">–</span>;
  const outcomes = recent.map((each) => ({ word: each.outcome ?? (each.decision === "fired" ? "running" : each.decision), time: each.time })).reverse();
  return (
    <span role="img" aria-label={`Last outcomes: ${outcomes.map((each) => each.word).join(", ")}`} className="inline-flex items-center gap-1">
      {outcomes.map(({ word, time }) => <span key={time} title={`${word}, ${fullTime(Date.parse(time))}`} className={classes("size-2 rounded-full", COLOURS[toneOf(word)], word === "failed" && "rotate-45 rounded-none")} />)}
    </span>
  );
}

export function SchedulesPage() {
  const list = useRecurringList();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const [isCreating, setIsCreating] = useState(false);
  return (
    <>
      <ListPage
        title="Schedules"
        actions={mayChange && <Button look="primary" icon="plus" onClick={() => setIsCreating(true)}>New schedule</Button>}
        same={{ command: ["recurring", "list"], path: "/v1/recurring" }}
        query={list}
        rows={list.rows}
        columns={mayChange ? [...COLUMNS, ACTIONS] : COLUMNS}
        rowId={(row) => row.id}
        textOf={(row) => [row.name, row.id, row.schedule, row.provider, row.description, row.status]}
        onOpen={(row) => void navigate({ to: "/schedules/$id", params: { id: row.id }, search: {} })}
        empty={{ icon: "clock", title: "Nothing is scheduled", text: "A schedule calls a function, or starts an orchestration, again and again." }}
      />
      {isCreating && <ScheduleDialog onClose={() => setIsCreating(false)} />}
    </>
  );
}
