import { useEffect, useState } from "react";
import { STATUSES, parseTerms, withField, withoutTerm } from "../../lib/filter";
import { count } from "../../lib/format";
import { inputLook } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { StatusMark } from "../../ui/status";
import { Menu } from "../../ui/menu";
import { Button } from "../../ui/button";

type Props = {
  text: string;
  onChange: (text: string) => void;
  problems: string[];
  functions: string[];
  orchestrations: string[];
  /** How many there are in each state, where that is known; `note` is its limit. */
  counts?: { of: Map<string, number>; note?: string };
  children?: React.ReactNode;
};

const TYPING_MS = 300;
const SPANS = ["5m", "1h", "1d", "7d"];

/** The filter as text, as chips, and as menus; all three are the same words in the address. */
export function FilterBar({ text, onChange, problems, functions, orchestrations, counts, children }: Props) {
  const [draft, setDraft] = useState(text);
  useEffect(() => setDraft(text), [text]);
  useEffect(() => {
    if (draft === text) return;
    const timer = setTimeout(() => onChange(draft), TYPING_MS);
    return () => clearTimeout(timer);
  }, [draft, text, onChange]);

  const terms = parseTerms(text);
  const chosen = terms.filter((term) => term.field === "status").flatMap((term) => term.value.split(","));
  const toggle = (status: string) => {
    const next = chosen.includes(status) ? chosen.filter((each) => each !== status) : [...chosen, status];
    onChange(withField(text, "status", next.join(",") || undefined));
  };
  const choice = (field: string, values: string[]) => [
    { name: "Any", checked: !terms.some((term) => term.field === field), onSelect: () => onChange(withField(text, field, undefined)) },
    ...values.map((value) => ({
      name: value,
      checked: terms.some((term) => term.field === field && term.value === value),
      onSelect: () => onChange(withField(text, field, value)),
    })),
  ];

  return (
    <div className="flex flex-col gap-2 border-b border-line px-5 py-2">
      <div className="flex flex-wrap items-center gap-2">
        <div className="relative min-w-60 flex-1">
          <Icon name="filter" size={14} className="absolute top-2 left-2.5 text-faint" />
          <input
            data-filter
            aria-label="Filter"
            value={draft}
            spellCheck={false}
            placeholder="status:failed function:charge label.team=eu started:<1h ended:<1h failure:timeout duration:>5m, or the beginning of an id"
            onChange={(event) => setDraft(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && onChange(draft)}
            className={`${inputLook} h-7.5 pl-8`}
          />
        </div>
        <Menu label="Function" trigger={<Button>Function</Button>} items={choice("function", functions)} />
        <Menu label="Orchestration" trigger={<Button>Orchestration</Button>} items={choice("orchestration", orchestrations)} />
        <Menu
          label="Started"
          trigger={<Button>Started</Button>}
          items={[
            { name: "Any time", onSelect: () => onChange(withField(text, "started", undefined)) },
            ...SPANS.map((span) => ({ name: `In the last ${span}`, onSelect: () => onChange(withField(text, "started", `<${span}`)) })),
          ]}
        />
        {children}
      </div>
      <div className="flex flex-wrap items-center gap-1.5">
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            aria-pressed={chosen.includes(status)}
            onClick={() => toggle(status)}
            className={`inline-flex h-6 items-center gap-1.5 rounded-full border px-2 text-xs ${chosen.includes(status) ? "border-accent bg-selected text-text" : "border-line text-dim hover:bg-hover"}`}
          >
            <StatusMark status={status} />
            {status}
            {counts && <span className="text-faint tabular-nums" title={counts.note}>{count(counts.of.get(status) ?? 0)}</span>}
          </button>
        ))}
        {counts?.note && <span className="text-xs text-faint">{counts.note}</span>}
        {terms.filter((term) => term.field !== "status").map((term) => (
          <span key={term.text} className="inline-flex h-6 items-center gap-1 rounded-full bg-mute-bg pr-1 pl-2 text-xs">
            {term.field === "id" ? `id begins with ${term.value}` : term.text}
            <button type="button" aria-label={`Remove ${term.text}`} onClick={() => onChange(withoutTerm(text, term))} className="rounded-full p-0.5 hover:bg-hover">
              <Icon name="close" size={11} />
            </button>
          </span>
        ))}
        {problems.map((problem) => <span key={problem} role="alert" className="text-xs text-bad">{problem}</span>)}
      </div>
    </div>
  );
}
