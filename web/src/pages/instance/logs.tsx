import { api, data } from "../../api/client";
import { usePages } from "../../api/pages";
import { bytes } from "../../lib/format";
import { Button } from "../../ui/button";
import { Empty, Unready } from "../../ui/states";

export function Logs({ id }: { id: string }) {
  const logs = usePages(
    ["instance", id, "logs"],
    (cursor) => data(api.GET("/v1/instances/{id}/logs", { params: { path: { id }, query: { cursor } } })),
    (page) => page.logs,
  );
  if (!logs.data) return <Unready query={logs} />;
  if (logs.rows.length === 0) return <Empty title="No logs">What tools write to stderr is kept here for seven days.</Empty>;
  return (
    <div className="flex flex-col gap-4 p-5">
      {logs.rows.map((log) => (
        <section key={`${log.call} ${log.attempt}`} className="overflow-hidden rounded-lg border border-line">
          <h3 className="border-b border-line px-3 py-1.5 text-xs text-dim">
            Attempt {log.attempt} · {bytes(log.total_bytes)}{log.is_cut && " (cut)"}
          </h3>
          <pre tabIndex={0} className="max-h-96 overflow-auto bg-bg p-3 font-mono text-xs whitespace-pre-wrap">{log.text}</pre>
        </section>
      ))}
      {logs.hasNextPage && <Button onClick={() => void logs.fetchNextPage()}>Load more</Button>}
    </div>
  );
}
