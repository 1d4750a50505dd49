import { useMemo, useState } from "react";
import { classes } from "../lib/classes";
import { Copy } from "./copy";
import { inputLook } from "./field";

const OPEN_DEPTH = 2;
const CHILDREN_SHOWN = 100;
const TEXT_SHOWN = 600;

/** Any JSON: foldable, searchable, bounded in what it draws. Everything is drawn as text. */
export function Json({ value, label = "JSON" }: { value: unknown; label?: string }) {
  const [search, setSearch] = useState("");
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "null", [value]);
  const isSmall = text.length < 400;
  return (
    <div className="group relative rounded-md border border-line bg-bg">
      <div className="absolute top-1 right-1 z-10 flex items-center gap-1 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100">
        {!isSmall && (
          <input
            aria-label={`Search in ${label}`}
            placeholder="Search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            className={classes(inputLook, "h-6 w-36 text-xs")}
          />
        )}
        <Copy text={text} label={`Copy ${label}`} />
      </div>
      <div role="region" aria-label={label} tabIndex={0} className="max-h-96 overflow-auto p-2.5 font-mono text-xs leading-[18px]">
        <Node value={value} depth={0} search={search.toLowerCase()} />
      </div>
    </div>
  );
}

function Node({ name, value, depth, search }: { name?: string; value: unknown; depth: number; search: string }) {
  const isNested = typeof value === "object" && value !== null;
  return isNested ? (
    <Nested name={name} value={value} depth={depth} search={search} />
  ) : (
    <div className="break-words whitespace-pre-wrap">
      <Name name={name} search={search} />
      <Leaf value={value} search={search} />
    </div>
  );
}

function Nested({ name, value, depth, search }: { name?: string; value: object; depth: number; search: string }) {
  const [choice, setChoice] = useState<boolean>();
  const [shown, setShown] = useState(CHILDREN_SHOWN);
  const entries = Object.entries(value);
  const isArray = Array.isArray(value);
  const isFound = search !== "" && JSON.stringify(value).toLowerCase().includes(search);
  const isOpen = choice ?? (depth < OPEN_DEPTH || isFound);
  const [open, close] = isArray ? "[]" : "{}";
  if (entries.length === 0) return <div><Name name={name} search={search} /><span className="text-dim">{open}{close}</span></div>;
  return (
    <div>
      <button type="button" aria-expanded={isOpen} onClick={() => setChoice(!isOpen)} className="rounded text-left hover:bg-hover">
        <Name name={name} search={search} />
        <span className="text-dim">{isOpen ? open : `${open} ${entries.length} ${close}`}</span>
      </button>
      {isOpen && (
        <div className="border-l border-line pl-4">
          {entries.slice(0, shown).map(([key, child]) => (
            <Node key={key} name={isArray ? undefined : key} value={child} depth={depth + 1} search={search} />
          ))}
          {entries.length > shown && (
            <button type="button" className="text-accent-text hover:underline" onClick={() => setShown(shown + CHILDREN_SHOWN * 10)}>
              {entries.length - shown} more
            </button>
          )}
        </div>
      )}
      {isOpen && <span className="text-dim">{close}</span>}
    </div>
  );
}

function Name({ name, search }: { name?: string; search: string }) {
  if (name === undefined) return null;
  return <span className="text-dim"><Marked text={name} search={search} />: </span>;
}

function Leaf({ value, search }: { value: unknown; search: string }) {
  const [isWhole, setIsWhole] = useState(false);
  if (typeof value !== "string") {
    return <span className={value === null ? "text-faint" : "text-info"}><Marked text={String(value)} search={search} /></span>;
  }
  const isLong = value.length > TEXT_SHOWN && !isWhole;
  return (
    <span className="text-good">
      "<Marked text={isLong ? value.slice(0, TEXT_SHOWN) : value} search={search} />"
      {isLong && <button type="button" className="text-accent-text hover:underline" onClick={() => setIsWhole(true)}> {value.length - TEXT_SHOWN} more characters</button>}
    </span>
  );
}

function Marked({ text, search }: { text: string; search: string }) {
  const at = search === "" ? -1 : text.toLowerCase().indexOf(search);
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark className="bg-warn-bg text-warn">{text.slice(at, at + search.length)}</mark>
      {text.slice(at + search.length)}
    </>
  );
}
