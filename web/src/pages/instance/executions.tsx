import type { useExecutions } from "../../api/instances";
import { hasEnded } from "../../api/instances";
import { count } from "../../lib/format";
import { Button } from "../../ui/button";
import { Wide } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Span, Time } from "../../ui/time";

type Props = { query: ReturnType<typeof useExecutions>; shown: number | undefined; onShow: (execution: number) => void };

export function Executions({ query, shown, onShow }: Props) {
  if (!query.data) return <Unready query={query} />;
  return (
    <Wide label="Executions" className="p-5">
      <table className="w-full max-w-3xl text-left">
        <thead className="text-xs text-faint">
          <tr>{["Execution", "Status", "Started", "Duration", "Events", ""].map((name) => <th key={name} className="h-8 border-b border-line font-medium">{name}</th>)}</tr>
        </thead>
        <tbody>
          {query.rows.map((row) => (
            <tr key={row.execution} className="h-9 border-b border-line/60">
              <td className="tabular-nums">{row.execution}</td>
              <td><Status status={row.status} /></td>
              <td className="text-dim"><Time at={row.started_at} /></td>
              <td><Span from={row.started_at} until={row.completed_at} ended={hasEnded(row.status)} /></td>
              <td className="tabular-nums">{count(row.events)}</td>
              <td className="text-right">
                {row.execution === shown ? <span className="text-faint">shown</span> : <Button look="ghost" onClick={() => onShow(row.execution)}>Show its timeline</Button>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {query.hasNextPage && <Button className="mt-3" onClick={() => void query.fetchNextPage()}>Load more</Button>}
    </Wide>
  );
}
