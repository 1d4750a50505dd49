import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, data } from "../../api/client";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Json } from "../../ui/json";
import { Facts, Section } from "../../ui/page";
import { Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Time } from "../../ui/time";
import { Body } from "../webhooks/payload-dialog";
import { dueOf } from "./actions-page";

export function ActionDetail({ id, onClose }: { id: string; onClose: () => void }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const query = useQuery({ queryKey: ["live", "actions", id], queryFn: () => data(api.GET("/v1/actions/{id}", { params: { path: { id } } })) });
  const action = query.data;
  const params = { path: { id } };
  const ask = (verb: "run" | "cancel" | "delete") => {
    onClose();
    change({
      title: { run: "Run this action now", cancel: "Cancel this action", delete: "Delete this action" }[verb],
      verb: { run: "Run it", cancel: "Cancel it", delete: "Delete it" }[verb],
      isDangerous: verb !== "run",
      description: { run: "If it has ended, it is done once more.", cancel: "If it waits, it ends; if it runs, it is told to stop.", delete: "What runs of it goes on." }[verb],
      run: () => (verb === "run" ? data(api.POST("/v1/actions/{id}/run", { params })) : verb === "cancel" ? data(api.POST("/v1/actions/{id}/cancel", { params })) : data(api.DELETE("/v1/actions/{id}", { params }))),
      cli: verb === "delete" ? undefined : () => cli("action", verb, id),
      curl: () => (verb === "delete" ? curl("DELETE", `/v1/actions/${id}`) : curl("POST", `/v1/actions/${id}/${verb}`)),
    });
  };
  const isOpen = action?.status.type === "pending" || action?.status.type === "running";
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={action?.label || "Action"}
      footer={mayChange && action && (
        <>
          <Button look="danger" className="mr-auto" onClick={() => ask("delete")}>Delete</Button>
          {isOpen && <Button onClick={() => ask("cancel")}>Cancel it</Button>}
          <Button look="primary" onClick={() => ask("run")}>Run now</Button>
        </>
      )}
    >
      {!action ? <Unready query={query} /> : (
        <div className="flex flex-col gap-4">
          <Facts
            facts={[
              ["Status", <Status key="status" status={action.status.type} />],
              ["Reason", action.status.type === "failed" && <span key="reason" className="text-bad">{action.status.reason}</span>],
              ["Runs", action.orchestration ?? action.tool_name],
              [action.trigger.type === "scheduled" ? "Due" : "Received", <Time key="due" at={dueOf(action)} absolute />],
              ["Again after", action.recurrence && `${action.recurrence} s`],
              ["Instance", action.instance && <Link key="instance" to="/instances/$id" params={{ id: action.instance }} search={{}} className="break-all text-accent-text hover:underline">{action.instance}</Link>],
              ["Id", <code key="id" className="font-mono text-xs">{action.id}</code>],
            ]}
          />
          <Section name="Input"><Json value={action.tool_input} label="Input" /></Section>
          {action.status.type === "completed" && <Section name="Result"><Json value={action.status.result} label="Result" /></Section>}
          {action.trigger.type === "webhook" && action.trigger.raw_payload && <Section name="Body as it came in"><Body base64={action.trigger.raw_payload} /></Section>}
        </div>
      )}
    </Dialog>
  );
}
