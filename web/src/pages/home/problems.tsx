import { Link } from "@tanstack/react-router";
import type { Problem, Problems } from "../../api/home";
import { count, words } from "../../lib/format";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";
import { Time } from "../../ui/time";

const ITEMS_SHOWN = 4;

export function ProblemList({ problems: { problems, checked, unknown } }: { problems: Problems }) {
  return (
    <section aria-label="What is wrong now">
      {problems.length === 0 ? (
        <div className="flex items-center gap-3 rounded-lg border border-line bg-good-bg px-4 py-3 text-good">
          <Icon name="check" />
          <span className="font-medium">Nothing is wrong.</span>
          <span className="text-xs">Checked: {checked.map(words).join(", ")}.</span>
        </div>
      ) : (
        <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
          {problems.map((problem) => <li key={problem.kind}><Card problem={problem} /></li>)}
        </ul>
      )}
      {unknown.map(({ kind, reason }) => <p key={kind} className="mt-2 text-xs text-warn">Unknown: {words(kind)}: {reason}</p>)}
    </section>
  );
}

function Card({ problem }: { problem: Problem }) {
  const { trend } = problem;
  const isError = problem.severity === "error";
  return (
    <Link to={pageOf(problem)} search={searchOf(problem)} className="flex h-full flex-col gap-1.5 rounded-lg border border-line bg-panel p-4 hover:border-line-strong hover:bg-hover">
      <span className="flex items-center gap-2">
        <Icon name="warning" size={15} className={isError ? "text-bad" : "text-warn"} />
        <span className={`text-lg font-semibold tabular-nums ${isError ? "text-bad" : "text-warn"}`}>{count(problem.count)}{problem.more && "+"}</span>
        <span className="min-w-0 flex-1">{problem.text}</span>
        <Icon name="right" size={13} className="text-faint" />
      </span>
      {problem.oldest && <span className="text-xs text-dim">oldest <Time at={problem.oldest} /></span>}
      {(problem.items?.length ?? 0) > 0 && (
        <span className="flex flex-wrap gap-1">
          {problem.items?.slice(0, ITEMS_SHOWN).map((item) => <Badge key={item.name} tone={isError ? "bad" : "warn"}>{item.name}{(problem.items ?? []).some((each) => each.count > 1) && ` ${item.count}`}</Badge>)}
          {(problem.items?.length ?? 0) > ITEMS_SHOWN && <span className="text-xs text-dim">and {(problem.items?.length ?? 0) - ITEMS_SHOWN} more</span>}
        </span>
      )}
      {trend && trend.some((value) => value > 0) && <Trend values={trend} isError={isError} />}
    </Link>
  );
}

const TREND_PX = 20;

/** How many came about in each five minutes of the last hour: whether it grows or is over. */
function Trend({ values, isError }: { values: number[]; isError: boolean }) {
  const most = Math.max(...values, 1);
  return (
    <svg role="img" aria-label={`In the last hour, by five minutes: ${values.join(", ")}`} viewBox={`0 0 ${values.length} ${TREND_PX}`} preserveAspectRatio="none" className="mt-auto w-full pt-1" style={{ height: TREND_PX + 4 }}>
      <title>In the last hour, by five minutes</title>
      <line x1="0" x2={values.length} y1={TREND_PX} y2={TREND_PX} stroke="var(--line)" vectorEffect="non-scaling-stroke" />
      {values.map((value, index) => value > 0 && <rect key={index} x={index + 0.06} width="0.88" y={TREND_PX - Math.max((value / most) * TREND_PX, 2)} height={Math.max((value / most) * TREND_PX, 2)} fill={isError ? "var(--bad)" : "var(--warn)"} />)}
    </svg>
  );
}

const PAGES = ["instances", "schedules", "workers", "dead-letters", "runbooks", "dags", "webhooks", "functions", "actions", "admin"];
const OTHER_NAMES: Record<string, string> = { recurring: "schedules", hooks: "webhooks", runs: "dags", batches: "runbooks", dead_letters: "dead-letters", pools: "workers", system: "admin" };

function pageOf(problem: Problem): string {
  const name = OTHER_NAMES[problem.link.page] ?? problem.link.page;
  return PAGES.includes(name) ? `/${name}` : "/";
}

/** The part of the administration that shows a problem of the server. */
const PARTS: Partial<Record<Problem["kind"], string>> = { nodes: "nodes", clock: "nodes", store: "store" };

/** Where a page has several lists, the one that shows a problem. */
const VIEWS: Partial<Record<Problem["kind"], string>> = { hooks_refused: "deliveries", removals_waiting: "runbooks", sensors_failing: "dags" };

function searchOf(problem: Problem): { q?: string; tab?: string; view?: string } {
  const page = pageOf(problem);
  if (page === "/admin") return { tab: PARTS[problem.kind] };
  // The list of instances has a filter with fields, the others look for a text.
  const words = Object.entries(problem.link.filter).map(([field, value]) => (page === "/instances" ? `${field}:${value}` : value));
  return { q: words.join(" ") || undefined, view: VIEWS[problem.kind] };
}
