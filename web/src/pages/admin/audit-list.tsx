import { api, data } from "../../api/client";
import { ApiError } from "../../api/errors";
import { usePages } from "../../api/pages";
import { Button } from "../../ui/button";
import { Badge } from "../../ui/status";
import { Empty, Unready } from "../../ui/states";
import { Time } from "../../ui/time";

/** Which key changed what, newest first: of everything, or of one thing. */
export function Audit({ resource }: { resource?: string }) {
  const audit = usePages(
    ["audit", resource],
    (cursor) => data(api.GET("/v1/audit", { params: { query: { resource, cursor, limit: 50 } } })),
    (page) => page.entries,
  );
  if (audit.error instanceof ApiError && audit.error.status === 403) return <Empty title="The audit log is for administrators" />;
  if (!audit.data) return <Unready query={audit} />;
  if (audit.rows.length === 0) return <Empty title="Nothing has been changed by a request" />;
  return (
    <div className="p-5">
      <table className="w-full text-left">
        <thead className="text-xs text-faint">
          <tr>{["When", "What", "Path", "Key", "Answer"].map((name) => <th key={name} className="h-8 border-b border-line pr-4 font-medium">{name}</th>)}</tr>
        </thead>
        <tbody>
          {audit.rows.map((entry) => (
            <tr key={entry.id} className="h-8 border-b border-line/60">
              <td className="pr-4 text-dim"><Time at={entry.at} /></td>
              <td className="pr-4 font-medium">{entry.operation}</td>
              <td className="max-w-md truncate pr-4 font-mono text-xs text-dim" title={entry.path}>{entry.path}</td>
              <td className="pr-4 text-dim">{entry.key ?? "no key"}</td>
              <td><Badge tone={entry.status < 400 ? "good" : "bad"}>{entry.status}</Badge></td>
            </tr>
          ))}
        </tbody>
      </table>
      {audit.hasNextPage && <Button className="mt-3" onClick={() => void audit.fetchNextPage()}>Load more</Button>}
    </div>
  );
}
