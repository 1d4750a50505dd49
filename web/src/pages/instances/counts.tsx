import { useCounts } from "../../api/instances";
import { type InstanceQuery, countable, withField } from "../../lib/filter";
import { count } from "../../lib/format";
import { Prose } from "../../ui/prose";
import { Loading, messageOf } from "../../ui/states";

type Props = { text: string; query: InstanceQuery; onChange: (text: string) => void };

const SHOWN = 6;
const OTHERS = "(others)";

/** What matches the filter, by function, orchestration and failure; a click narrows the filter. */
export function Counts(props: Props) {
  return (
    <section aria-label="Counts" className="grid max-h-[40vh] shrink-0 gap-x-8 gap-y-3 overflow-auto border-b border-line bg-bg px-5 py-3 md:grid-cols-3">
      {countable(props.query) === undefined ? (
        <p className="text-dim md:col-span-3"><Prose text="Counts cannot be limited by `parent` or `duration`. Remove that from the filter to see them." /></p>
      ) : (
        <>
          <By by="function" field="function" title="By function" {...props} />
          <By by="orchestration" field="orchestration" title="By orchestration" {...props} />
          <By by="failure" field="failure" title="By failure" {...props} />
        </>
      )}
    </section>
  );
}

function By({ by, field, title, text, query, onChange }: Props & { by: "function" | "orchestration" | "failure"; field: string; title: string }) {
  const counted = useCounts(by, query);
  const rows = counted.data?.counts ?? [];
  const most = Math.max(...rows.map((row) => row.count), 1);
  const rest = rows.slice(SHOWN).reduce((sum, row) => sum + row.count, 0);
  return (
    <div>
      <h2 className="mb-1 text-xs font-medium text-faint">{title}{counted.data?.truncated && `, of the newest ${count(counted.data.examined)}`}</h2>
      {counted.error ? <p role="alert" className="text-bad">{messageOf(counted.error)}</p> : !counted.data ? <Loading rows={3} /> : rows.length === 0 && <p className="text-dim">None.</p>}
      <ul>
        {rows.slice(0, SHOWN).map((row) => (
          <li key={row.name}>
            <button
              type="button"
              disabled={row.name === OTHERS}
              onClick={() => onChange(withField(text, field, row.name))}
              className="relative flex h-6 w-full items-center justify-between gap-3 overflow-hidden rounded px-2 text-left hover:bg-hover disabled:cursor-default"
            >
              <span aria-hidden="true" className="absolute inset-y-0.5 left-0 rounded bg-mute-bg" style={{ width: `${(row.count / most) * 100}%` }} />
              <span className="relative truncate">{row.name}</span>
              <span className="relative tabular-nums">{count(row.count)}</span>
            </button>
          </li>
        ))}
        {rest > 0 && <li className="px-2 text-xs text-faint">and {count(rest)} of {count(rows.length - SHOWN)} others</li>}
      </ul>
    </div>
  );
}
