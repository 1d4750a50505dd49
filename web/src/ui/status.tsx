import { classes } from "../lib/classes";
import { words } from "../lib/format";

export type Tone = "good" | "bad" | "warn" | "info" | "mute";

const TONES: Record<string, Tone> = {
  completed: "good", succeeded: "good", delivered: "good", applied: "good",
  failed: "bad", poll_timeout: "bad", refused: "bad", poisoned: "bad", failure: "bad", missed: "bad", error: "bad",
  paused: "warn", retry_wait: "warn", blocked: "warn", skipped: "mute", waiting: "warn", throttled: "warn", overlapping: "warn",
  running: "info", active: "info", dispatched: "info", polling: "info", ready: "info", triggered: "info", init_dispatched: "info", sending: "info",
  cancelled: "mute", pending: "mute", planned: "mute", detected: "mute", removed: "mute", superseded: "mute", rolled_back: "warn",
  continued_as_new: "mute", up: "good", stopped: "mute", lost: "bad", fired: "good", buffered: "warn", disabled: "mute",
};

export function toneOf(status: string): Tone {
  return TONES[status] ?? "mute";
}

const TEXT: Record<Tone, string> = { good: "text-good", bad: "text-bad", warn: "text-warn", info: "text-info", mute: "text-mute" };
const FILL: Record<Tone, string> = {
  good: "bg-good-bg text-good",
  bad: "bg-bad-bg text-bad",
  warn: "bg-warn-bg text-warn",
  info: "bg-info-bg text-info",
  mute: "bg-mute-bg text-mute",
};

/** A status as a shape and a word, so that it does not depend on colour. */
export function Status({ status, className }: { status: string; className?: string }) {
  const tone = toneOf(status);
  return (
    <span className={classes("inline-flex items-center gap-1.5 align-bottom whitespace-nowrap", className)}>
      <StatusMark status={status} />
      <span className={tone === "bad" || tone === "warn" ? TEXT[tone] : "text-text"}>{words(status)}</span>
    </span>
  );
}

export function StatusMark({ status }: { status: string }) {
  const tone = toneOf(status);
  return (
    <svg width="12" height="12" viewBox="0 0 12 12" className={classes("shrink-0", TEXT[tone])} aria-hidden="true">
      {mark(tone)}
    </svg>
  );
}

function mark(tone: Tone) {
  const line = { fill: "none", stroke: "currentColor", strokeWidth: 1.6, strokeLinecap: "round" as const, strokeLinejoin: "round" as const };
  switch (tone) {
    case "good":
      return <path d="M2.500 6.500 5 9l4.500-5.500" {...line} />;
    case "bad":
      return <path d="M3 3l6 6M9 3 3 9" {...line} />;
    case "warn":
      return <path d="M4 3v6M8 3v6" {...line} />;
    case "info":
      return <><circle cx="6" cy="6" r="4.300" fill="none" stroke="currentColor" strokeWidth="1.300" /><circle cx="6" cy="6" r="2" fill="currentColor" /></>;
    default:
      return <circle cx="6" cy="6" r="3.800" {...line} strokeDasharray="2 2" />;
  }
}

export function Badge({ tone = "mute", children, title }: { tone?: Tone; children: React.ReactNode; title?: string }) {
  return (
    <span title={title} className={classes("inline-flex h-5 items-center gap-1 rounded px-1.5 text-xs font-medium whitespace-nowrap", FILL[tone])}>
      {children}
    </span>
  );
}
