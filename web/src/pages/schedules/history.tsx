import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import type { useRecurringHistory } from "../../api/recurring";
import { words } from "../../lib/format";
import { Button } from "../../ui/button";
import { Wide } from "../../ui/page";
import { Badge, toneOf } from "../../ui/status";
import { Empty, Unready } from "../../ui/states";
import { Time } from "../../ui/time";

type Entry = Schemas["RecurringEntry"];
type Props = { query: ReturnType<typeof useRecurringHistory>; onExplain: (time: string) => void };

/** What became of each occurrence, and why. */
export function History({ query, onExplain }: Props) {
  if (!query.data) return <Unready query={query} />;
  if (query.rows.length === 0) return <Empty icon="clock" title="No occurrence yet" />;
  return (
    <Wide label="Occurrences" className="px-4 pb-3">
      <table className="w-full text-left">
        <thead className="text-xs text-faint">
          <tr>{["Occurrence", "Decision", "Outcome", "Why", ""].map((name) => <th key={name} className="h-8 border-b border-line pr-4 font-medium">{name}</th>)}</tr>
        </thead>
        <tbody>{query.rows.map((entry) => <Row key={`${entry.time} ${entry.decided_at} ${entry.instance ?? ""}`} entry={entry} onExplain={onExplain} />)}</tbody>
      </table>
      {query.hasNextPage && <Button className="mt-3" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Load more</Button>}
    </Wide>
  );
}

function Row({ entry, onExplain }: { entry: Entry; onExplain: (time: string) => void }) {
  const why = [entry.reason && words(entry.reason), entry.detail, entry.note].filter(Boolean).join(": ");
  return (
    <tr className="h-8 border-b border-line/60">
      <td className="pr-4"><Time at={entry.time} absolute />{entry.until && <> to <Time at={entry.until} absolute /></>}{entry.count && entry.count > 1 && <span className="text-dim"> ({entry.count} times)</span>}</td>
      <td className="pr-4">{words(entry.decision)}{entry.manual && <span className="text-faint"> by hand</span>}</td>
      <td className="pr-4">{entry.outcome && <Badge tone={toneOf(entry.outcome)}>{words(entry.outcome)}</Badge>}</td>
      <td className="max-w-xs truncate pr-4 text-dim" title={why}>{why}</td>
      <td className="text-right whitespace-nowrap">
        {entry.instance && <Link to="/instances/$id" params={{ id: entry.instance }} search={{}} className="mr-2 text-accent-text hover:underline">instance</Link>}
        <Button look="ghost" onClick={() => onExplain(entry.time)}>Explain</Button>
      </td>
    </tr>
  );
}
