import type { HistoryEvent } from "../api/instances";

/** What a history becomes when it is drawn: one lane for each thing that took time. Pure. */
export type LaneKind = "instance" | "activity" | "step" | "timer" | "signal" | "child";
export type Failure = { category?: string; code?: string | null; message?: string; details?: unknown; retryable?: boolean };
/** A stretch of a lane: working, or waiting for something. */
export type Stretch = { from: number; until: number | undefined; isWait: boolean; isFailed: boolean };
export type Lane = {
  id: string;
  kind: LaneKind;
  name: string;
  depth: number;
  from: number;
  until: number | undefined;
  status: "running" | "waiting" | "completed" | "failed" | "cancelled" | "retry_wait";
  stretches: Stretch[];
  attempts: { number: number; at: number; failure: Failure }[];
  /** The event that began it, and the one that ended it. */
  begin: HistoryEvent;
  end?: HistoryEvent;
  child?: string;
  note?: string;
};

type Data = Record<string, unknown>;

export function lanesOf(events: HistoryEvent[], depth = 0, prefix = ""): Lane[] {
  const builder = new Builder(depth, prefix);
  for (const event of events) builder.take(event);
  return builder.lanes;
}

class Builder {
  readonly lanes: Lane[] = [];
  private readonly bySource = new Map<number, Lane>();
  private readonly subscriptions = new Map<string, Lane[]>();
  private lastAt = 0;

  constructor(
    private readonly depth: number,
    private readonly prefix: string,
  ) {}

  take(event: HistoryEvent) {
    const at = Date.parse(event.at);
    const data = (event.data ?? {}) as Data;
    switch (event.kind) {
      case "ActivityScheduled":
        this.begin(event, at, "activity", functionOf(data));
        break;
      case "SubOrchestrationScheduled":
      case "OrchestrationChained": {
        const lane = this.begin(event, at, "child", text(data.name));
        lane.child = text(data.instance);
        if (event.kind === "OrchestrationChained") this.end(lane, event, at, "completed");
        break;
      }
      case "TimerCreated": {
        const lane = this.begin(event, at, "timer", "timer");
        const due = Number(data.fire_at_ms);
        lane.note = Number.isFinite(due) ? new Date(due).toISOString() : undefined;
        break;
      }
      case "MessageSubscribed": {
        const name = text(data.name);
        const lane = this.begin(event, at, "signal", `${text(data.channel)} ${name}`);
        const key = `${text(data.channel)} ${name}`;
        this.subscriptions.set(key, [...(this.subscriptions.get(key) ?? []), lane]);
        break;
      }
      case "MessageReceived": {
        const lane = this.subscriptions.get(`${text(data.channel)} ${text(data.name)}`)?.shift();
        if (lane) this.end(lane, event, at, "completed");
        break;
      }
      case "StepCompleted":
      case "StepFailed": {
        const lane = this.begin(event, this.lastAt || at, "step", text(data.name));
        this.end(lane, event, at, event.kind === "StepFailed" ? "failed" : "completed");
        break;
      }
      default:
        this.takeEnd(event, at, data);
    }
    this.lastAt = at;
  }

  private takeEnd(event: HistoryEvent, at: number, data: Data) {
    const lane = this.bySource.get(Number(data.source));
    if (!lane) return;
    switch (event.kind) {
      case "ActivityAttemptFailed": {
        const failure = (data.failure ?? {}) as Failure;
        lane.attempts.push({ number: Number(data.attempt), at, failure });
        closeStretch(lane, at, true);
        const retryAt = Number(data.retry_at_ms);
        const until = Number.isFinite(retryAt) ? retryAt : undefined;
        lane.stretches.push({ from: at, until, isWait: true, isFailed: false });
        if (until !== undefined) lane.stretches.push({ from: until, until: undefined, isWait: false, isFailed: false });
        lane.status = "retry_wait";
        break;
      }
      case "ActivityCompleted":
      case "SubOrchestrationCompleted":
      case "TimerFired":
        this.end(lane, event, at, "completed");
        break;
      case "ActivityFailed":
      case "SubOrchestrationFailed":
        if (event.kind === "ActivityFailed") lane.attempts.push({ number: Number(data.attempt), at, failure: (data.failure ?? {}) as Failure });
        this.end(lane, event, at, "failed");
        break;
      case "ActivityCancelRequested":
      case "TimerCancelled":
      case "MessageSubscriptionCancelled":
      case "SubOrchestrationCancelRequested":
        this.end(lane, event, at, "cancelled");
        break;
    }
  }

  private begin(event: HistoryEvent, at: number, kind: LaneKind, name: string): Lane {
    const isWait = kind === "timer" || kind === "signal";
    const lane: Lane = {
      id: `${this.prefix}${event.id}`,
      kind,
      name: name || kind,
      depth: this.depth,
      from: at,
      until: undefined,
      status: isWait ? "waiting" : "running",
      stretches: [{ from: at, until: undefined, isWait, isFailed: false }],
      attempts: [],
      begin: event,
    };
    this.bySource.set(event.id, lane);
    this.lanes.push(lane);
    return lane;
  }

  private end(lane: Lane, event: HistoryEvent, at: number, status: Lane["status"]) {
    lane.until = at;
    lane.end = event;
    lane.status = status;
    closeStretch(lane, at, status === "failed");
  }
}

function closeStretch(lane: Lane, at: number, isFailed: boolean) {
  const last = lane.stretches.at(-1);
  if (last && last.until === undefined) {
    last.until = Math.max(at, last.from);
    last.isFailed = isFailed && !last.isWait;
  } else if (last && at < (last.until ?? at)) {
    last.until = Math.max(at, last.from);
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The function behind an activity: calls of functions run through the activity `function`, which has the name in its input. */
function functionOf(data: Data): string {
  const name = text(data.name);
  const input = data.input as Data | null;
  return name === "function" && typeof input === "object" && input !== null ? text(input.function) || name : name;
}
