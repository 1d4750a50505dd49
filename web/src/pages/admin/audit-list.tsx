import { api, data } from "../../api/client";
import { ApiError } from "../../api/errors";
import { useEffect, useState } from "react";
import { usePages } from "../../api/pages";
import { useAddress } from "../../lib/address";
import { classes } from "../../lib/classes";
import { Button } from "../../ui/button";
import { inputLook } from "../../ui/field";
import { Wide } from "../../ui/page";
import { Badge } from "../../ui/status";
import { Empty, Unready } from "../../ui/states";
import { Time } from "../../ui/time";

const TYPING_MS = 300;

/** The whole log, of what a person looks for: a resource by its path, id or name; an operation by its method or word. */
export function AuditLog() {
  const [{ q = "", name = "" }, setAddress] = useAddress();
  const [resource, setResource] = useState(q);
  const [action, setAction] = useState(name);
  useEffect(() => {
    const timer = setTimeout(() => setAddress({ q: resource.trim() || undefined, name: action.trim() || undefined }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [resource, action, setAddress]);
  return (
    <div>
      <div className="flex flex-wrap gap-2 border-b border-line px-5 py-2">
        <input data-filter aria-label="Resource" value={resource} onChange={(event) => setResource(event.target.value)} placeholder="Resource: an id, a name or a path" className={classes(inputLook, "h-7.5 max-w-xs")} />
        <input aria-label="Operation" value={action} onChange={(event) => setAction(event.target.value)} placeholder="Operation: DELETE, cancel…" className={classes(inputLook, "h-7.5 max-w-48")} />
      </div>
      <Audit resource={q || undefined} action={name || undefined} />
    </div>
  );
}

/** Which key changed what, newest first: of everything, or of one thing. */
export function Audit({ resource, action }: { resource?: string; action?: string }) {
  const audit = usePages(
    ["audit", resource, action],
    (cursor) => data(api.GET("/v1/audit", { params: { query: { resource, action, cursor, limit: 50 } } })),
    (page) => page.entries,
  );
  if (audit.error instanceof ApiError && audit.error.status === 403) return <Empty title="The audit log is for administrators" />;
  if (!audit.data) return <Unready query={audit} />;
  if (audit.rows.length === 0 && !audit.hasNextPage) return <Empty title={resource || action ? "No request has changed this" : "Nothing has been changed by a request"} />;
  return (
    <Wide label="Audit log" className="p-5">
      <table className="w-full text-left">
        <thead className="text-xs text-faint">
          <tr>{["When", "What", "Path", "Why", "Key", "Answer"].map((name) => <th key={name} className="h-8 border-b border-line pr-4 font-medium">{name}</th>)}</tr>
        </thead>
        <tbody>
          {audit.rows.map((entry) => (
            <tr key={entry.id} className="h-8 border-b border-line/60">
              <td className="pr-4 text-dim"><Time at={entry.at} /></td>
              <td className="pr-4 font-medium">{entry.operation}</td>
              <td className="max-w-md truncate pr-4 font-mono text-xs text-dim" title={entry.path}>{entry.path}</td>
              <td className="max-w-56 truncate pr-4" title={entry.reason ?? undefined}>{entry.reason}</td>
              <td className="pr-4 whitespace-nowrap text-dim">{entry.key ?? "no key"}</td>
              <td><Badge tone={entry.status < 400 ? "good" : "bad"}>{entry.status}</Badge></td>
            </tr>
          ))}
        </tbody>
      </table>
      {audit.hasNextPage && <Button className="mt-3" onClick={() => void audit.fetchNextPage()}>Load more</Button>}
    </Wide>
  );
}
