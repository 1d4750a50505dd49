import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import { api, data } from "../../api/client";
import { useMay } from "../../api/me";
import type { Runbook } from "../../api/runbooks";
import { cli, curl, piped } from "../../lib/command";
import { plural } from "../../lib/format";
import { problemOf, problemsOf } from "../../lib/problems";
import { useSettled } from "../../lib/settled";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { LazyEditor } from "../../ui/lazy-editor";
import { Unready } from "../../ui/states";

const EXAMPLE = `name: guests
description: Invite guests, then seat them
data_source: {type: manual, primary_key: Guest}
phases:
  - name: invite
    offset: T-1d
    steps:
      - {name: greet, worker_id: dev, function: greet, params: {name: "{{Guest}}"}}
`;
const TYPING_MS = 400;

/** Edits a runbook; the server checks it as it is typed, and says what publishing would do. */
export function RunbookEditor({ runbook }: { runbook?: Runbook }) {
  const navigate = useNavigate();
  const mayPublish = useMay("operate");
  const published = useQuery({
    queryKey: ["runbooks", runbook?.name, "text", runbook?.active_version],
    enabled: runbook !== undefined,
    queryFn: () => data(api.GET("/v1/runbooks/{name}/versions/{version}", { params: { path: { name: runbook?.name ?? "", version: runbook?.active_version ?? 0 } } })),
  });
  const [text, setText] = useState<string>();
  const shown = text ?? (runbook ? (published.data?.yaml_content ?? "") : EXAMPLE);
  const name = /^name:\s*["']?([^\s"'#]+)/m.exec(shown)?.[1];
  const checked = useChecked(name, useDeferredValue(shown));
  const problems = useMemo(
    () => [...problemsOf(checked.error), ...(checked.data?.warnings ?? []).map((warning) => problemOf(warning, true))],
    [checked.error, checked.data],
  );
  const change = useChange();
  const plan = checked.data;
  const publish = () => change({
    title: `Publish ${name ?? "the runbook"}`, verb: "Publish it",
    description: plan && `Version ${plan.version} is active at once: new batches follow it.${plan.moves.batches > 0 ? ` ${plural(plan.moves.batches, "open batch moves", "open batches move")} to it.` : ""}`,
    run: async () => {
      const version = await data(api.POST("/v1/runbooks", { body: { yaml_content: shown } }));
      if (!runbook) void navigate({ to: "/runbooks/$name", params: { name: version.name }, search: {} });
    },
    done: `${name ?? "Runbook"} published`, cli: () => piped(shown, cli("runbook", "publish", "-")), curl: () => curl("POST", "/v1/runbooks", { yaml_content: shown }),
  });
  if (runbook && !published.data) return <Unready query={published} />;
  return (
    <div className="flex h-full min-h-96 flex-col gap-3">
      <div className="min-h-60 flex-1"><LazyEditor label="Runbook" language="yaml" value={shown} onChange={setText} problems={problems} /></div>
      <div role="status" className="max-h-32 overflow-auto">
        {problems.map((problem, index) => <p key={index} className={problem.isWarning ? "text-warn" : "text-bad"}>{problem.line}:{problem.column} {problem.text}</p>)}
        {checked.data && (
          <p className="text-dim">
            {checked.data.is_new ? `Publishing makes version ${checked.data.version}.` : "This is the active version."}{" "}
            {checked.data.moves.batches > 0 && `${plural(checked.data.moves.batches, "open batch", "open batches")} would move to it.`}
          </p>
        )}
      </div>
      <div className="flex items-center">
        {mayPublish && <Button look="primary" className="ml-auto" disabled={checked.error !== null || name === undefined || checked.data?.is_new === false} onClick={publish}>Publish…</Button>}
      </div>
    </div>
  );
}

function useChecked(name: string | undefined, text: string) {
  const settled = useSettled(text, TYPING_MS);
  return useQuery({
    queryKey: ["runbooks", "plan", name, settled],
    enabled: settled.trim() !== "",
    retry: false,
    queryFn: () => data(api.POST("/v1/runbooks/{name}/plan", { params: { path: { name: name ?? "unnamed" } }, body: { yaml_content: settled } })),
  });
}
