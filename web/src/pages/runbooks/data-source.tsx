import { useMutation, useQuery } from "@tanstack/react-query";
import { api, data, type Schemas } from "../../api/client";
import { useMay } from "../../api/me";
import type { Runbook } from "../../api/runbooks";
import { cli, curl } from "../../lib/command";
import { count, plural } from "../../lib/format";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Figures } from "../../ui/figures";
import { Json } from "../../ui/json";
import { Facts, Panel } from "../../ui/page";
import { messageOf } from "../../ui/states";
import { Time } from "../../ui/time";

/** The query that brings members: when it runs, what it found, and what it would find now. */
export function DataSource({ runbook }: { runbook: Runbook }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const params = { path: { name: runbook.name } };
  const automation = useQuery({ queryKey: ["runbooks", runbook.name, "automation"], queryFn: () => data(api.GET("/v1/runbooks/{name}/automation", { params })), retry: false });
  const preview = useMutation({ mutationFn: () => data(api.POST("/v1/runbooks/{name}/preview", { params, body: {} })) });
  const state = automation.data;
  const toggle = (enabled: boolean) => change({
    title: enabled ? "Switch the query on" : "Switch the query off", verb: enabled ? "Switch it on" : "Switch it off",
    description: enabled ? "It runs at once, and then at its interval. It creates batches and adds members." : "Batches go on.",
    run: () => data(api.PUT("/v1/runbooks/{name}/automation", { params, body: { enabled } })),
    cli: () => cli("runbook", enabled ? "enable" : "disable", runbook.name), curl: () => curl("PUT", `/v1/runbooks/${runbook.name}/automation`, { enabled }),
  });
  return (
    <div className="mx-auto flex max-w-4xl flex-col gap-5 p-5">
      <Panel title="Query" aside={mayChange && state && <Button onClick={() => toggle(!state.enabled)}>{state.enabled ? "Switch off" : "Switch on"}</Button>}>
        <div className="p-4">
          {automation.error ? <p className="text-dim">{messageOf(automation.error)}</p> : state && (
            <Facts facts={[
              ["State", state.enabled ? (state.running ? "runs now" : "on") : "off"],
              ["Last run", state.last_run_at && <Time key="last" at={state.last_run_at} />],
              ["Next run", state.next_run_at && <Time key="next" at={state.next_run_at} />],
              ["Found", state.last_result && `${plural(state.last_result.rows, "row")}: ${state.last_result.added} added, ${state.last_result.changed} changed, ${state.last_result.removed} removed`],
              ["Last failure", state.last_error && <span key="error" className="text-bad">{state.last_error.message}</span>],
            ]} />
          )}
          {state?.pending_removal && <Removal runbook={runbook.name} removal={state.pending_removal} />}
        </div>
      </Panel>
      <Panel title="Preview" aside={mayChange && <Button disabled={preview.isPending} onClick={() => preview.mutate()}>{preview.isPending ? "Running…" : "Run the query and show what it finds"}</Button>}>
        <div className="p-4">
          {preview.error ? <p role="alert" className="text-dim">{messageOf(preview.error)}</p> : preview.data ? <Found preview={preview.data} /> : <p className="text-dim">A preview changes no batch.</p>}
        </div>
      </Panel>
    </div>
  );
}

const SAMPLE = 20;

/** Members that the query no longer has, more than it may remove by itself. */
function Removal({ runbook, removal }: { runbook: string; removal: Schemas["PendingRemoval"] }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const { set, count: members, of, batches } = removal;
  const params = { path: { name: runbook } };
  const decide = (verb: "approve" | "reject") => change({
    title: verb === "approve" ? `Remove ${plural(members, "member")}` : `Keep ${plural(members, "member")}`, verb: verb === "approve" ? "Remove them" : "Keep them", isDangerous: verb === "approve",
    description: verb === "approve" ? "The query runs at once. Those that it still does not have are removed from their batches." : "They stay until the query has had them again.",
    run: () => (verb === "approve" ? data(api.POST("/v1/runbooks/{name}/removal/approve", { params, body: { set } })) : data(api.POST("/v1/runbooks/{name}/removal/reject", { params, body: { set } }))),
    done: verb === "approve" ? "Removal approved" : "Removal rejected",
    cli: () => cli("runbook", `${verb}-removal`, runbook, "--set", String(set)), curl: () => curl("POST", `/v1/runbooks/${runbook}/removal/${verb}`, { set }),
  });
  return (
    <div className="mt-4 rounded-md bg-warn-bg px-4 py-3">
      <p className="text-warn">
        {removal.approved ? `The removal of ${plural(members, "member")} is approved; the next run makes it.` : `The query no longer has ${count(members)} of ${plural(of, "member")} in ${plural(batches, "batch", "batches")}. They are removed once a person approves it.`}
      </p>
      <p className="mt-1 text-xs text-dim">{removal.sample.slice(0, SAMPLE).map((each) => each.member_key).join(", ")}{members > Math.min(SAMPLE, removal.sample.length) && " and others"}</p>
      {mayChange && !removal.approved && (
        <div className="mt-2 flex gap-2">
          <Button look="danger" onClick={() => decide("approve")}>Remove them…</Button>
          <Button onClick={() => decide("reject")}>Keep them…</Button>
        </div>
      )}
    </div>
  );
}

/** What the query returned, and what a run would change. */
function Found({ preview }: { preview: Schemas["RunbookPreview"] }) {
  return (
    <div className="flex flex-col gap-4">
      <Figures figures={[["rows", count(preview.rows)], ["batches", count(preview.batches)], ["members added", count(preview.added)], ["changed", count(preview.changed)], ["removed", count(preview.removed), preview.removed > 0 ? "text-warn" : ""], ["rows skipped", count(preview.skipped), preview.skipped > 0 ? "text-warn" : ""]]} />
      {preview.problems?.map((problem) => <p key={problem} className="text-warn">{problem}</p>)}
      <Json value={preview.samples} label="First rows" />
    </div>
  );
}
