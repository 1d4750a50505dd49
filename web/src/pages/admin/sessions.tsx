import { request } from "../../api/client";
import { ApiError } from "../../api/errors";
import { usePages } from "../../api/pages";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Empty, Unready } from "../../ui/states";
import { Time } from "../../ui/time";

type Session = { id: string; key: string; created_at: string; expires_at: string };
type Page = { sessions: Session[]; next_cursor?: string | null };

/** Browsers that are signed in. */
export function Sessions() {
  const change = useChange();
  const sessions = usePages<Page, Session>(["sessions"], (cursor) => request<Page>("/v1/sessions", { query: { cursor } }), (page) => page.sessions);
  const end = (session: Session) => change({
    title: "End this session", verb: "End it", isDangerous: true, description: "The browser has to sign in again.",
    run: () => request(`/v1/sessions/${encodeURIComponent(session.id)}`, { method: "DELETE" }),
  });
  if (sessions.error instanceof ApiError && sessions.error.status === 404) return <Empty icon="gear" title="This server has no sessions" />;
  if (!sessions.data) return <Unready query={sessions} />;
  if (sessions.rows.length === 0) return <Empty icon="gear" title="No browser is signed in" />;
  return (
    <div className="relative overflow-x-auto p-5">
      <table className="w-full max-w-3xl text-left">
        <thead className="text-xs text-faint"><tr>{["Key", "Signed in", "Ends", ""].map((name, index) => <th key={index} className="h-8 border-b border-line pr-4 font-medium">{name || <span className="sr-only">Actions</span>}</th>)}</tr></thead>
        <tbody>
          {sessions.rows.map((session) => (
            <tr key={session.id} className="h-9 border-b border-line/60">
              <td className="pr-4 font-mono text-xs">{session.key}</td>
              <td className="pr-4 text-dim"><Time at={session.created_at} /></td>
              <td className="pr-4 text-dim"><Time at={session.expires_at} /></td>
              <td className="text-right"><Button look="ghost" onClick={() => end(session)}>End</Button></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
