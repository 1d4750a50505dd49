import { Link } from "@tanstack/react-router";
import { type Explanation, type HistoryEvent, type Instance, hasEnded, nameOf, useExplanation } from "../../api/instances";
import { useMe } from "../../api/me";
import { duration } from "../../lib/format";
import { millis, useNow } from "../../lib/time";
import { Prose } from "../../ui/prose";
import { Badge } from "../../ui/status";
import { Icon } from "../../ui/icon";
import { Span, Time } from "../../ui/time";
import { Past } from "./past";

/** What it is, what it waits for and until when, and what it belongs to. */
export function Header({ instance, events, past }: { instance: Instance; events?: HistoryEvent[]; past?: HistoryEvent[] }) {
  const trace = useTraceLink(instance.id, events);
  const started = instance.start_at ?? instance.created_at;
  return (
    <div className="shrink-0 border-b border-line px-5 py-3">
      <div className="flex flex-wrap items-center gap-x-6 gap-y-1.5 text-dim">
        <Fact name="Runs"><span className="text-text">{nameOf(instance)}</span>{instance.version && !instance.function && ` ${instance.version}`}</Fact>
        <Fact name="Started"><Time at={started} /></Fact>
        <Fact name={hasEnded(instance.status) ? "Took" : "Running for"}><Span from={started} until={instance.completed_at} ended={hasEnded(instance.status)} /></Fact>
        {instance.execution > 1 && <Fact name="Execution">{instance.execution}</Fact>}
        {instance.call && instance.call.max_attempts > 1 && <Fact name="Attempt">{instance.call.attempt} of {instance.call.max_attempts}</Fact>}
        {instance.call?.worker && <Fact name="Worker">{instance.call.worker}</Fact>}
        <MadeBy instance={instance} />
        {instance.parent && (
          <Fact name="Parent">
            <Link to="/instances/$id" params={{ id: instance.parent }} search={{}} className="text-accent-text hover:underline">{instance.parent}</Link>
          </Fact>
        )}
        {trace && <a href={trace} target="_blank" rel="noreferrer" className="text-accent-text hover:underline">Trace</a>}
        {Object.entries(instance.labels ?? {}).map(([key, value]) => (
          <Link key={key} to="/instances" search={{ q: `label.${key}=${value}` }}><Badge>{key}={value}</Badge></Link>
        ))}
      </div>
      {past ? <Past events={past} /> : <Situation instance={instance} />}
    </div>
  );
}

/** Where another tool shows the trace of an instance, by the setting `server.trace_url`. Not every instance has one. */
function useTraceLink(id: string, events: HistoryEvent[] | undefined): string | undefined {
  const template = useMe().data?.trace_url;
  const start = events?.[0]?.data as { traceparent?: string } | undefined;
  const trace = start?.traceparent?.split("-")[1];
  if (!template || (template.includes("{trace}") && !trace)) return undefined;
  return template.replaceAll("{trace}", trace ?? "").replaceAll("{instance}", encodeURIComponent(id));
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return <span className="whitespace-nowrap"><span className="text-faint">{name}</span> {children}</span>;
}

function MadeBy({ instance }: { instance: Instance }) {
  const by = instance.call?.made_by;
  if (!by || by.kind === "call") return instance.kind ? null : <Fact name="Started by">a caller</Fact>;
  const look = "text-accent-text hover:underline";
  const link = () => {
    switch (by.kind) {
      case "schedule":
        return by.id && <Link to="/schedules/$id" params={{ id: by.id }} search={{}} className={look}>schedule</Link>;
      case "hook":
        return by.id ? <Link to="/actions" search={{ name: by.id }} className={look}>webhook</Link> : <Link to="/webhooks" search={{}} className={look}>webhook</Link>;
      case "action":
        return <Link to="/actions" search={by.id ? { name: by.id } : {}} className={look}>action</Link>;
      case "runbook":
        return <Link to="/runbooks" search={{}} className={look}>runbook</Link>;
      case "dag":
        return by.id ? <Link to="/runs/$id" params={{ id: by.id }} search={{}} className={look}>DAG run</Link> : "DAG run";
      default:
        return by.kind;
    }
  };
  return <Fact name="Started by">{link() || by.kind}{by.time && <> for <Time at={by.time} /></>}</Fact>;
}

/** The one sentence that a person came for. */
function Situation({ instance }: { instance: Instance }) {
  const isOpen = !hasEnded(instance.status);
  const explanation = useExplanation(instance.id, isOpen).data;
  if (instance.failure) {
    const { code, category, message } = instance.failure;
    return (
      <p className="mt-2 flex items-start gap-2 text-bad" role="note">
        <Icon name="warning" size={15} className="mt-0.5 shrink-0" />
        <span className="line-clamp-3 break-words whitespace-pre-wrap"><strong>{code ?? category}</strong> {message}</span>
      </p>
    );
  }
  if (!isOpen) return null;
  const wakes = explanation?.next_wake_up ?? instance.call?.waits_until ?? instance.call?.retry_at ?? undefined;
  const words = explanation?.in_words ?? inWords(instance);
  if (!words) return null;
  return (
    <div className="mt-2">
      <p className="flex items-start gap-2" role="note">
        <Icon name={instance.status === "paused" ? "pause" : "clock"} size={15} className={`mt-0.5 shrink-0 ${instance.status === "paused" ? "text-warn" : "text-info"}`} />
        <span><Prose text={words} />{wakes && <Countdown until={wakes} />}</span>
      </p>
      {explanation && <Waits explanation={explanation} />}
    </div>
  );
}

const WAITS_SHOWN = 8;

/** What it waits for, one line each, where the sentence does not say it all: several things, a child, a worker. */
function Waits({ explanation: { waits, complete } }: { explanation: Explanation }) {
  if (waits.length < 2 && !waits.some((wait) => wait.child || wait.worker)) return null;
  const hidden = waits.length - WAITS_SHOWN;
  return (
    <ul className="mt-1 ml-6 text-xs text-dim" aria-label="What it waits for">
      {waits.slice(0, WAITS_SHOWN).map((wait) => (
        <li key={`${wait.kind}-${wait.event ?? ""}`} className="flex flex-wrap gap-x-3">
          <span className="text-text"><Prose text={wait.detail} /></span>
          <span>since <Time at={wait.since} /></span>
          {wait.until && <span>{wait.state === "held" ? "lease until" : "until"} <Time at={wait.until} /></span>}
          {(wait.attempt ?? 0) > 1 && <span>attempt {wait.attempt}</span>}
          {wait.child && <Link to="/instances/$id" params={{ id: wait.child }} search={{}} className="text-accent-text hover:underline">open the child</Link>}
        </li>
      ))}
      {hidden > 0 && <li>and {hidden} more</li>}
      {!complete && <li className="text-warn">The history was not read to its end, so something may have ended since.</li>}
    </ul>
  );
}

function inWords(instance: Instance): string | undefined {
  if (instance.status === "paused") return instance.pause_reason ? `Paused: ${instance.pause_reason}` : "Paused.";
  if (instance.call) return `Waits for ${instance.call.waits_for}.`;
  return typeof instance.custom_status === "string" ? instance.custom_status : undefined;
}

function Countdown({ until }: { until: string }) {
  const now = useNow();
  const at = millis(until);
  if (at === undefined) return null;
  const left = at - now;
  return (
    <span className="ml-2 text-dim" title={until}>
      {left > 0 ? <>next wake-up in <span className="tabular-nums">{duration(Math.ceil(left / 1_000) * 1_000)}</span></> : "due now"}
    </span>
  );
}
