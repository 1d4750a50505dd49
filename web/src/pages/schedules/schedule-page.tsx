import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "../../api/client";
import { useMay } from "../../api/me";
import { type Recurring, inWords, targetOf, useNextTimes, useRecurring, useRecurringHistory } from "../../api/recurring";
import { count } from "../../lib/format";
import { Button } from "../../ui/button";
import { Json } from "../../ui/json";
import { Menu } from "../../ui/menu";
import { Facts, Page, Panel } from "../../ui/page";
import { Badge, Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Time } from "../../ui/time";
import { Audit } from "../admin/audit-list";
import { Backfill } from "./backfill";
import { Explain } from "./explain";
import { HEAT_PAGE, HeatMap } from "./heat-map";
import { History } from "./history";
import { NextTimes } from "./next-times";
import { useScheduleChanges } from "./changes";
import { ScheduleDialog } from "./schedule-dialog";

export function SchedulePage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const query = useRecurring(id);
  const next = useNextTimes(id, 10);
  const history = useRecurringHistory(id);
  const isAdmin = useMay("admin");
  const [moment, setMoment] = useState<string>();
  const schedule = query.data;
  if (!schedule) return <Page title="Schedule"><Unready query={query} /></Page>;
  return (
    <Page
      title={schedule.name ?? schedule.id}
      heading={<span className="flex items-center gap-3"><span className="truncate">{schedule.name ?? schedule.id}</span><Status status={schedule.status} className="font-normal" /></span>}
      actions={<Actions schedule={schedule} />}
    >
      <div className="mx-auto grid max-w-6xl grid-cols-1 gap-5 p-5 lg:grid-cols-[minmax(0,1fr)_340px]">
        <div className="flex min-w-0 flex-col gap-5">
          <About schedule={schedule} />
          <Panel title="History"><History query={history} onExplain={setMoment} /></Panel>
          {isAdmin && <Panel title="Audit"><Audit resource={id} /></Panel>}
        </div>
        <div className="flex flex-col gap-5">
          <Panel title="Next 10 times"><div className="p-4">{next.data ? <NextTimes preview={next.data} onExplain={setMoment} /> : <Unready query={next} />}</div></Panel>
          <Panel title="Next 30 days"><div className="p-4"><HeatMap of={id} timezone={schedule.timezone} times={(from) => data(api.GET("/v1/recurring/{id}/preview", { params: { path: { id }, query: { count: HEAT_PAGE, from } } }))} /></div></Panel>
          <Explain id={id} time={moment} />
        </div>
      </div>
    </Page>
  );
}

function About({ schedule }: { schedule: Recurring }) {
  return (
    <Panel>
      <div className="flex flex-col gap-3 p-4">
        <p className="text-lg font-semibold" title={schedule.schedule}>{inWords(schedule.schedule)}</p>
        {schedule.description && <p className="whitespace-pre-wrap text-dim">{schedule.description}</p>}
        {schedule.paused_at && (
          <p className="rounded-md bg-warn-bg px-3 py-2 text-warn">
            Paused <Time at={schedule.paused_at} />{schedule.pause_note && `: ${schedule.pause_note}`}{schedule.resumes_at && <>. Resumes <Time at={schedule.resumes_at} /></>}
          </p>
        )}
        {schedule.last_error && <p className="text-bad">Last failure: {schedule.last_error}</p>}
        {schedule.warnings?.map((warning) => <p key={warning} className="text-warn">{warning}</p>)}
        <Facts
          facts={[
            ["Runs", <span key="runs" className="font-medium">{targetOf(schedule.action_template)}</span>],
            ["Next run", <Time key="next" at={schedule.next_execution_at} />],
            ["Last run", <Time key="last" at={schedule.last_executed_at} />],
            ["Runs so far", `${count(schedule.execution_count)}${schedule.failure_count > 0 ? `, ${count(schedule.failure_count)} failed` : ""}`],
            ["Expression", schedule.cron_expr && <code className="font-mono text-xs">{schedule.cron_expr}</code>],
            ["Time zone", schedule.timezone],
            ["If the last run still runs", schedule.overlap_policy.replaceAll("_", " ")],
            ["Missed times", schedule.missed],
            ["Excluded", schedule.exclude?.join(", ")],
            ["Ends", schedule.ends_at && <Time key="ends" at={schedule.ends_at} />],
            ["Labels", Object.keys(schedule.labels).length > 0 && <span key="labels" className="flex gap-1">{Object.entries(schedule.labels).map(([key, value]) => <Badge key={key}>{key}={value}</Badge>)}</span>],
          ]}
        />
        <Json value={schedule.action_template.payload} label="Input" />
      </div>
    </Panel>
  );
}

function Actions({ schedule }: { schedule: Recurring }) {
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const [open, setOpen] = useState<"edit" | "backfill">();
  const { pause, resume, runNow, remove } = useScheduleChanges(schedule.id, () => void navigate({ to: "/schedules", search: {} }));
  if (!mayChange) return null;
  return (
    <>
      <Button icon="play" onClick={runNow}>Run now</Button>
      {schedule.enabled ? <Button icon="pause" onClick={pause}>Pause</Button> : <Button look="primary" icon="play" onClick={resume}>Resume</Button>}
      <Button onClick={() => setOpen("edit")}>Edit</Button>
      <Menu label="More" trigger={<Button icon="more" aria-label="More" />} items={[{ name: "Backfill…", onSelect: () => setOpen("backfill") }, "line", { name: "Delete…", danger: true, onSelect: remove }]} />
      {open === "edit" && <ScheduleDialog schedule={schedule} onClose={() => setOpen(undefined)} />}
      {open === "backfill" && <Backfill id={schedule.id} onClose={() => setOpen(undefined)} />}
    </>
  );
}
