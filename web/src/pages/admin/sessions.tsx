import { type Schemas, api, data } from "../../api/client";
import { usePages } from "../../api/pages";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { ListMenu } from "../../ui/list-menu";
import { Wide } from "../../ui/page";
import { Empty, Unready } from "../../ui/states";
import { Time } from "../../ui/time";

type Session = Schemas["Session"];

/** Browsers that are signed in. */
export function Sessions() {
  const change = useChange();
  const sessions = usePages(["sessions"], (cursor) => data(api.GET("/v1/sessions", { params: { query: { cursor } } })), (page) => page.sessions);
  const end = (session: Session) => change({
    title: "End this session", verb: "End it", isDangerous: true, description: "The browser has to sign in again.",
    run: () => data(api.DELETE("/v1/sessions/{id}", { params: { path: { id: session.id } } })),
    cli: () => cli("sessions", "revoke", session.id), curl: () => curl("DELETE", `/v1/sessions/${session.id}`),
  });
  if (!sessions.data) return <Unready query={sessions} />;
  if (sessions.rows.length === 0) return <Empty icon="gear" title="No browser is signed in" />;
  return (
    <Wide label="Sessions" className="p-5">
      <div className="mb-3 flex justify-end"><ListMenu name="sessions" rows={() => sessions.rows} command={["sessions", "list"]} path="/v1/sessions" /></div>
      <table className="w-full text-left">
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
    </Wide>
  );
}
