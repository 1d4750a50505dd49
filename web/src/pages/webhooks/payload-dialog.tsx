import { Link } from "@tanstack/react-router";
import { api, data } from "../../api/client";
import { usePayload } from "../../api/hooks";
import { useMay } from "../../api/me";
import { useScope } from "../../api/scope";
import { cli, curl } from "../../lib/command";
import { bytes } from "../../lib/format";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Json } from "../../ui/json";
import { Facts, Section } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Time } from "../../ui/time";

/** All of a delivery: headers, body, and what became of its actions. */
export function PayloadDialog({ route, id, onClose }: { route: string; id: string; onClose: () => void }) {
  const { namespace } = useScope();
  const change = useChange();
  const mayChange = useMay("operate");
  const query = usePayload(route, id);
  const detail = query.data;
  const path = `/v1/hooks/${namespace}/${route}/payloads/${id}/replay`;
  const replay = () => {
    onClose();
    change({
      title: "Replay this delivery", verb: "Replay it", description: "Calls the function again, as a new action, with the route as it is declared now.",
      run: () => data(api.POST("/v1/hooks/{namespace}/{route}/payloads/{id}/replay", { params: { path: { namespace, route, id } } })),
      done: "Replayed", cli: () => cli("hook", "replay", route, id), curl: () => curl("POST", path),
    });
  };
  return (
    <Dialog open wide onClose={onClose} title="Delivery" footer={mayChange && <Button look="primary" icon="refresh" onClick={replay}>Replay</Button>}>
      {!detail ? <Unready query={query} /> : (
        <div className="flex flex-col gap-4">
          <Facts
            facts={[
              ["Received", <Time key="at" at={detail.payload.received_at} absolute />],
              ["Route", detail.payload.route],
              ["Body", bytes(detail.payload.body_bytes)],
              ["Outcome", detail.payload.outcome.kind],
              ["Reason", detail.payload.outcome.reason],
            ]}
          />
          <Section name="Body"><Body base64={detail.body_base64} /></Section>
          <details open={Object.keys(detail.headers).length < 8}>
            <summary className="cursor-pointer text-dim">Headers</summary>
            <div className="mt-2"><Json value={detail.headers} label="Headers" /></div>
          </details>
          {detail.actions.length > 0 && (
            <ul className="divide-y divide-line rounded-md border border-line">
              {detail.actions.map((action) => (
                <li key={action.id} className="flex items-center gap-4 px-3 py-2">
                  <Status status={action.status} />
                  <span className="min-w-0 flex-1 truncate text-dim">{action.reason}</span>
                  {action.instance && <Link to="/instances/$id" params={{ id: action.instance }} search={{}} className="text-accent-text hover:underline">instance</Link>}
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </Dialog>
  );
}

/** The bytes of a request: as JSON where they are, else as text. */
export function Body({ base64 }: { base64: string }) {
  const text = new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
  try {
    return <Json value={JSON.parse(text)} label="Body" />;
  } catch {
    return <pre tabIndex={0} className="max-h-80 overflow-auto rounded-md border border-line bg-bg p-3 font-mono text-xs break-all whitespace-pre-wrap">{text}</pre>;
  }
}
