import { differences } from "../lib/difference";

/** Where one value differs from another, field by field. */
export function Diff({ before, after, label }: { before: unknown; after: unknown; label: string }) {
  const found = differences(before, after);
  if (found.length === 0) return null;
  return (
    <dl aria-label={label} className="mt-1.5 flex flex-col gap-1 border-t border-line pt-1.5 font-mono text-xs">
      {found.map(({ path, before: old, after: next }) => (
        <div key={path}>
          <dt className="text-faint">{path}</dt>
          {old !== undefined && <dd className="rounded-sm bg-bad-bg px-1 break-words whitespace-pre-wrap text-bad"><span className="sr-only">before: </span>− {shown(old)}</dd>}
          {next !== undefined && <dd className="rounded-sm bg-good-bg px-1 break-words whitespace-pre-wrap text-good"><span className="sr-only">after: </span>+ {shown(next)}</dd>}
        </div>
      ))}
    </dl>
  );
}

const MOST_CHARACTERS = 500;

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}
