import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { api, because, data, type Schemas } from "../../api/client";
import { historyOf } from "../../api/instances";
import { useMay } from "../../api/me";
import { useScope } from "../../api/scope";
import { useOrchestrations } from "../../api/server";
import { useAddress } from "../../lib/address";
import { cli, curl, withReason } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { AreaField, SelectField, TextField } from "../../ui/field";
import { Page, Panel } from "../../ui/page";
import { ReasonField, useReason } from "../../ui/reason";
import { messageOf } from "../../ui/states";
import { Time } from "../../ui/time";
import { type JsonSchema, SchemaForm, exampleOf, hasForm } from "../../ui/schema-form";
import { Status } from "../../ui/status";

type What = "function" | "orchestration";

/** Starts any orchestration, or calls any function. */
export function StartPage() {
  const [{ view, name = "", q: copyOf }, setAddress] = useAddress();
  const what: What = view === "orchestration" ? "orchestration" : "function";
  const navigate = useNavigate();
  const mayStart = useMay("operate");
  const targets = useTargets(what);
  const [text, setText] = useState("");
  const [id, setId] = useState("");
  const [labels, setLabels] = useState("");
  const [startAt, setStartAt] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const reason = useReason();
  const schema = targets.find((target) => target.name === name)?.schema;
  useInputOf(copyOf, (input) => setText(JSON.stringify(input, null, 2)));
  const parsed = parseJson(text);
  const request = requestOf({ what, name, id, labels, startAt, input: parsed.value });

  const submit = async () => {
    if (!mayStart || isBusy) return;
    setError(undefined);
    setIsBusy(true);
    try {
      const started = await because(reason.given, () => what === "function"
        ? data(api.POST("/v1/invocations", { body: request.body as Schemas["Invoke"] }))
        : data(api.POST("/v1/instances", { body: request.body as Schemas["StartInstance"] })));
      void navigate({ to: "/instances/$id", params: { id: started.id }, search: {} });
    } catch (failure) {
      setError(failure);
      setIsBusy(false);
    }
  };

  return (
    <Page title="Start">
      <div className="mx-auto grid max-w-5xl grid-cols-1 gap-5 p-5 max-md:p-3 lg:grid-cols-[minmax(0,1fr)_300px]">
        <Panel>
          <form className="flex flex-col gap-4 p-5" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
            <div className="grid gap-3 sm:grid-cols-2">
              <SelectField name="What" value={what} onChange={(next) => setAddress({ view: next, name: undefined, q: undefined })} options={[["function", "Call a function"], ["orchestration", "Start an orchestration"]]} />
              <TextField name="Name" value={name} onChange={(next) => setAddress({ name: next || undefined })} list={targets.map((target) => target.name)} autoFocus />
            </div>
            {hasForm(schema) && parsed.problem === undefined ? (
              <SchemaForm schema={schema} value={(parsed.value as Record<string, unknown> | null) ?? {}} onChange={(value) => setText(JSON.stringify(value, null, 2))} />
            ) : null}
            <AreaField
              name="Input, JSON"
              value={text}
              onChange={setText}
              rows={8}
              error={parsed.problem}
              placeholder="null"
              hint={exampleOf(schema) !== undefined && <button type="button" className="text-accent-text hover:underline" onClick={() => setText(JSON.stringify(exampleOf(schema), null, 2))}>Use the example</button>}
            />
            <details>
              <summary className="cursor-pointer text-dim">More: id, labels, time, reason</summary>
              <div className="mt-3 grid gap-3 sm:grid-cols-2">
                <TextField name={what === "function" ? "Key" : "Id"} value={id} onChange={setId} hint={what === "function" ? "The same key is the same call." : "Left out: a new one."} />
                <TextField name="Labels" value={labels} onChange={setLabels} placeholder="team=eu stage=test" />
                {what === "orchestration" && <TextField name="Start at" type="datetime-local" value={startAt} onChange={setStartAt} hint="Local time. Left out: now." />}
                <ReasonField reason={reason} />
              </div>
            </details>
            {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
            <div className="flex flex-wrap items-center gap-1">
              <Copy text={request.cli}>Copy as CLI</Copy>
              <Copy text={withReason(curl("POST", request.path, request.body), reason.given)}>Copy as curl</Copy>
              {mayStart ? <Button type="submit" look="primary" className="ml-auto" disabled={name === "" || parsed.problem !== undefined || isBusy}>{what === "function" ? "Call it" : "Start it"}</Button> : <span className="ml-auto text-dim">Your key reads, and starts nothing.</span>}
            </div>
          </form>
        </Panel>
        {name !== "" && <Recent what={what} name={name} onUse={(input) => setText(JSON.stringify(input, null, 2))} />}
      </div>
    </Page>
  );
}

function useTargets(what: What): { name: string; schema?: JsonSchema }[] {
  const functions = useQuery({ queryKey: ["functions", "names"], queryFn: () => data(api.GET("/v1/functions")) });
  const orchestrations = useOrchestrations();
  if (what === "orchestration") {
    const known = orchestrations.data?.orchestrations ?? [];
    return known.filter((each) => each.name !== "invoke").map((each) => ({ name: each.name, schema: (each.input_schema ?? undefined) as JsonSchema | undefined }));
  }
  return (functions.data?.functions ?? []).map((each) => ({ name: each.name, schema: (each.declaration as { input_schema?: JsonSchema }).input_schema }));
}

/** The input of an instance that is to be started again, once it is known. */
function useInputOf(id: string | undefined, onInput: (input: unknown) => void) {
  const scope = useScope();
  const history = useQuery({ ...historyOf(id ?? "", undefined, scope), enabled: id !== undefined });
  useEffect(() => {
    const start = history.data?.find((event) => event.kind === "OrchestrationStarted")?.data as { name?: string; input?: unknown } | undefined;
    if (start) onInput(start.name === "invoke" ? (start.input as { input?: unknown }).input ?? null : start.input);
  }, [history.data]);
}

function Recent({ what, name, onUse }: { what: What; name: string; onUse: (input: unknown) => void }) {
  const query = what === "function" ? { function: name } : { orchestration: name };
  const recent = useQuery({
    queryKey: ["start", "recent", query],
    queryFn: () => data(api.GET("/v1/instances", { params: { query: { ...query, limit: 8 } } })),
  });
  const use = async (id: string) => {
    const history = await data(api.GET("/v1/instances/{id}/history", { params: { path: { id }, query: { limit: 1 } } }));
    const start = history.events[0]?.data as { name?: string; input?: { input?: unknown } } | undefined;
    onUse((start?.name === "invoke" ? start.input?.input : start?.input) ?? null);
  };
  return (
    <Panel title="Last runs">
      <ul className="divide-y divide-line">
        {recent.data?.instances.map((row) => (
          <li key={row.id} className="flex items-center gap-2 px-3 py-1.5">
            <Status status={row.status} className="w-24" />
            <Link to="/instances/$id" params={{ id: row.id }} search={{}} className="min-w-0 flex-1 truncate text-dim hover:underline"><Time at={row.created_at} /></Link>
            <Button look="ghost" onClick={() => void use(row.id)}>Use its input</Button>
          </li>
        ))}
        {recent.data?.instances.length === 0 && <li className="p-3 text-dim">It has not run yet.</li>}
      </ul>
    </Panel>
  );
}

type Form = { what: What; name: string; id: string; labels: string; startAt: string; input: unknown };

function requestOf({ what, name, id, labels, startAt, input }: Form) {
  const pairs = labels.split(/\s+/).filter((pair) => pair.includes("="));
  const map = Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
  const common = { input: input ?? null, ...(pairs.length > 0 ? { labels: map } : {}) };
  const at = startAt ? new Date(startAt).toISOString() : undefined;
  const flags = pairs.flatMap((pair) => ["--label", pair]);
  const json = JSON.stringify(input ?? null);
  return what === "function"
    ? { path: "/v1/invocations", body: { function: name, ...common, ...(id ? { key: id } : {}) }, cli: cli("invoke", name, "--input", json, ...flags, ...(id ? ["--call-key", id] : [])) }
    : {
        path: "/v1/instances",
        body: { orchestration: name, ...common, ...(id ? { id } : {}), ...(at ? { start_at: at } : {}) },
        cli: cli("start", name, "--input", json, ...flags, ...(id ? ["--id", id] : []), ...(at ? ["--at", at] : [])),
      };
}
