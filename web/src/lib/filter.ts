import type { Schemas } from "../api/client";

/**
 * The filter of the instances list as text: `status:failed,cancelled function:charge label.team=eu
 * started:<1h ended:<1h failure:no-paint duration:>5m order-`. A word without a colon is the beginning of an id.
 */
export type Term = { field: string; value: string; text: string };
export type InstanceQuery = {
  prefix?: string;
  status?: Schemas["Status"][];
  orchestration?: string;
  function?: string;
  label?: string[];
  parent?: string;
  created_from?: string;
  created_before?: string;
  failure?: string;
  ended_from?: string;
  ended_before?: string;
  longer_than_ms?: number;
  shorter_than_ms?: number;
};
export type Filter = {
  query: InstanceQuery;
  problems: string[];
};

export const STATUSES: Schemas["Status"][] = ["pending", "running", "paused", "completed", "failed", "cancelled"];
const UNIT_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function parseTerms(text: string): Term[] {
  const words = text.match(/(?:[^\s"]+|"[^"]*")+/g) ?? [];
  return words.map((word) => {
    const plain = word.replaceAll('"', "");
    const label = /^label\.([^=:]+)[=:](.*)$/.exec(plain);
    if (label) return { field: "label", value: `${label[1]}=${label[2]}`, text: word };
    const match = /^(status|function|orchestration|name|parent|started|ended|failure|duration|id):(.*)$/.exec(plain);
    if (match) return { field: match[1] ?? "", value: match[2] ?? "", text: word };
    return { field: "id", value: plain, text: word };
  });
}

export function withoutTerm(text: string, term: Term): string {
  return parseTerms(text).filter((each) => each.text !== term.text).map((each) => each.text).join(" ");
}

/** Puts `field:value` into the text in place of what the field had; no value removes it. */
export function withField(text: string, field: string, value: string | undefined): string {
  const rest = parseTerms(text).filter((each) => each.field !== field).map((each) => each.text);
  return [...rest, ...(value ? [`${field}:${/\s/.test(value) ? `"${value}"` : value}`] : [])].join(" ");
}

export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 0) : undefined;
}

/** The filter without what counts cannot take: nothing if it has such a field. */
export function countable(query: InstanceQuery): InstanceQuery | undefined {
  const { parent, longer_than_ms, shorter_than_ms, ...rest } = query;
  return parent === undefined && longer_than_ms === undefined && shorter_than_ms === undefined ? rest : undefined;
}

/** The filter as flags of `segno list` and `segno bulk`; `parent` has none. */
export function flagsOf(query: InstanceQuery): string[] {
  const flag = (name: string, value: string | undefined) => (value === undefined ? [] : [name, value]);
  const span = (value: number | undefined) => (value === undefined ? undefined : `${value / 1_000}s`);
  return [
    ...flag("--prefix", query.prefix),
    ...(query.status ?? []).flatMap((status) => ["--status", status]),
    ...flag("--orchestration", query.orchestration),
    ...flag("--function", query.function),
    ...(query.label ?? []).flatMap((label) => ["--label", label]),
    ...flag("--created-from", query.created_from),
    ...flag("--created-before", query.created_before),
    ...flag("--failure", query.failure),
    ...flag("--ended-from", query.ended_from),
    ...flag("--ended-before", query.ended_before),
    ...flag("--longer-than", span(query.longer_than_ms)),
    ...flag("--shorter-than", span(query.shorter_than_ms)),
  ];
}

/** `now` decides what `started:<1h` means; it is rounded to minutes so that the query stays the same for a while. */
export function parseFilter(text: string, now: number): Filter {
  const filter: Filter = { query: {}, problems: [] };
  for (const term of parseTerms(text)) {
    const problem = applyTerm(filter, term, Math.floor(now / 60_000) * 60_000);
    if (problem) filter.problems.push(problem);
  }
  return filter;
}

function applyTerm(filter: Filter, { field, value }: Term, now: number): string | undefined {
  const { query } = filter;
  switch (field) {
    case "status": {
      const wanted = value.split(",").filter(Boolean);
      const unknown = wanted.find((each) => !(STATUSES as string[]).includes(each));
      if (unknown !== undefined) return `There is no status “${unknown}”. Statuses: ${STATUSES.join(", ")}.`;
      query.status = [...(query.status ?? []), ...(wanted as Schemas["Status"][])];
      return undefined;
    }
    case "function":
      query.function = value;
      return undefined;
    case "orchestration":
    case "name":
      query.orchestration = value;
      return undefined;
    case "parent":
      query.parent = value;
      return undefined;
    case "label":
      query.label = [...(query.label ?? []), value];
      return undefined;
    case "started":
      return applySpan(value, now, "started", (from, before) => Object.assign(query, from ? { created_from: from } : { created_before: before }));
    case "ended":
      return applySpan(value, now, "ended", (from, before) => Object.assign(query, from ? { ended_from: from } : { ended_before: before }));
    case "failure":
      query.failure = value;
      return undefined;
    case "duration":
      return applyDuration(query, value);
    default:
      query.prefix = value;
      return undefined;
  }
}

function applySpan(value: string, now: number, field: string, set: (from: string | undefined, before: string | undefined) => void): string | undefined {
  const span = parseDuration(value.replace(/^[<>]/, ""));
  if (span === undefined) return `${field}:${value} is not understood. Write ${field}:<1h for the last hour, ${field}:>2d for longer ago.`;
  const moment = new Date(now - span).toISOString();
  if (value.startsWith(">")) set(undefined, moment);
  else set(moment, undefined);
  return undefined;
}

function applyDuration(query: InstanceQuery, value: string): string | undefined {
  const span = parseDuration(value.replace(/^[<>]/, ""));
  if (span === undefined) return `duration:${value} is not understood. Write duration:>5m or duration:<30s.`;
  if (value.startsWith("<")) query.shorter_than_ms = span;
  else query.longer_than_ms = span;
  return undefined;
}
