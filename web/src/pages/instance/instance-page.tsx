import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { hasEnded, isPart, useExecutions, useHistory, useInstance, useTree } from "../../api/instances";
import { useAddress } from "../../lib/address";
import { count } from "../../lib/format";
import { Page } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Tabs } from "../../ui/tabs";
import { Copy } from "../../ui/copy";
import { InstanceActions } from "./actions";
import { ChildrenGraph } from "./children";
import { DataTab } from "./data";
import { Events } from "./events";
import { Executions } from "./executions";
import { Header } from "./header";
import { Logs } from "./logs";
import { Audit } from "../admin/audit-list";
import { Timeline } from "./timeline/timeline";
import { TimeTravel } from "./time-travel";

export function InstancePage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const [{ tab = "timeline", at, execution }, setAddress] = useAddress();
  const query = useInstance(id);
  const instance = query.data;
  const shownExecution = execution ?? instance?.execution;
  const isOpen = instance !== undefined && !hasEnded(instance.status);
  const history = useHistory(id, shownExecution, isOpen && shownExecution === instance?.execution);
  const executions = useExecutions(id);
  const tree = useTree(id);
  const events = history.data;
  const seen = useMemo(() => (events && at !== undefined ? events.filter((event) => event.id <= at) : events), [events, at]);

  if (!instance) return <Page title={id}><Unready query={query} /></Page>;
  return (
    <Page
      title={id}
      heading={
        <span className="flex items-center gap-3">
          <span className="truncate" title={id}>{id}</span>
          <Copy text={id} label="Copy the id" />
          <Status status={instance.status} className="font-normal" />
        </span>
      }
      actions={<InstanceActions instance={instance} />}
    >
      <div className="flex h-full min-h-0 flex-col">
        {events && isPart(events) && (
          <p role="status" className="flex items-center gap-2 border-b border-line bg-bg px-5 py-1 text-xs text-dim">
            <span className="size-2 animate-shimmer rounded-full bg-accent" aria-hidden="true" />
            {count(events.length)} events so far. More are being read.
          </p>
        )}
        <Header instance={instance} events={events} past={at === undefined ? undefined : seen} />
        {events && (tab === "timeline" || tab === "events") && (
          <TimeTravel events={events} at={at} onChange={(next) => setAddress({ at: next })} />
        )}
        <Tabs
          label="Parts of the instance"
          value={tab}
          onChange={(next) => setAddress({ tab: next === "timeline" ? undefined : next })}
          tabs={[
            { id: "timeline", name: "Timeline", content: seen ? <Timeline events={seen} instance={instance} isPast={at !== undefined || shownExecution !== instance.execution} /> : <Unready query={history} /> },
            { id: "events", name: "Events", count: seen?.length, content: seen ? <Events events={seen} /> : <Unready query={history} /> },
            { id: "data", name: "Input and result", content: <DataTab instance={instance} events={events} /> },
            { id: "children", name: "Children", count: tree.rows.length > 1 ? tree.rows.length - 1 : undefined, content: <ChildrenGraph id={id} tree={tree} /> },
            { id: "logs", name: "Logs", content: <Logs id={id} /> },
            { id: "executions", name: "Executions", count: executions.rows.length > 1 ? executions.rows.length : undefined, content: <Executions query={executions} shown={shownExecution} onShow={(next) => setAddress({ execution: next === instance.execution ? undefined : next, at: undefined, tab: undefined })} /> },
            { id: "audit", name: "Audit", content: <Audit resource={id} /> },
          ]}
        />
      </div>
    </Page>
  );
}
