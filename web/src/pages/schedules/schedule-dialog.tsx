import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, data } from "../../api/client";
import type { Fields, Recurring } from "../../api/recurring";
import { useOrchestrations } from "../../api/server";
import { cli, curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { useSettled } from "../../lib/settled";
import { localZone } from "../../lib/time";
import { FormDialog } from "../../shell/form-dialog";
import { AreaField, SelectField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";
import { HEAT_PAGE, HeatMap } from "./heat-map";
import { NextTimes } from "./next-times";

type Form = {
  name: string; rhythm: "cron_expr" | "every"; expression: string; timezone: string; what: "function" | "orchestration"; target: string; input: string;
  description: string; overlap: string; missed: string; jitter: string; exclude: string; endsAt: string; gap: string; overlapHour: string;
};

const TYPING_MS = 300;
const ZONES = Intl.supportedValuesOf("timeZone");

function formOf(row: Recurring | undefined): Form {
  const payload = row?.action_template.payload;
  return {
    name: row?.name ?? "", rhythm: row?.every ? "every" : "cron_expr", expression: row?.every ?? row?.cron_expr ?? "0 9 * * MON-FRI",
    timezone: row?.timezone ?? localZone, what: row?.action_template.orchestration ? "orchestration" : "function",
    target: row?.action_template.orchestration ?? row?.action_template.provider ?? "", input: payload === undefined ? "null" : JSON.stringify(payload, null, 2),
    description: row?.description ?? "", overlap: row?.overlap_policy ?? "allow", missed: row?.missed ?? "none", jitter: row?.jitter ?? "",
    exclude: (row?.exclude ?? []).join("\n"), endsAt: row?.ends_at ?? "", gap: row?.daylight.gap ?? "shift", overlapHour: row?.daylight.overlap ?? "first",
  };
}

const linesOf = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** What a call of a schedule is made of, by the names that it was created with: those of a function, or of a provider with a type of action. */
function callOf(form: Form, existing: Recurring | undefined): Fields {
  const input = parseJson(form.input).value ?? null;
  const hasType = form.what === "function" && existing !== undefined && existing.action_template.action_type !== "" && !existing.action_template.orchestration;
  return hasType ? { provider: form.target, payload: input } : { [form.what]: form.target, input };
}

/** The fields of a request, each with what it is without. */
function fieldsOf(form: Form, existing: Recurring | undefined): Fields {
  const empty = existing ? null : undefined;
  const exclude = linesOf(form.exclude);
  return {
    name: form.name || empty,
    [form.rhythm]: form.expression,
    timezone: form.timezone,
    ...callOf(form, existing),
    description: form.description || empty,
    overlap_policy: form.overlap as Fields["overlap_policy"],
    missed: form.missed as Fields["missed"],
    jitter: form.jitter || empty,
    exclude: exclude.length > 0 ? exclude : empty,
    ends_at: form.endsAt || empty,
    daylight: { gap: form.gap as "shift" | "skip", overlap: form.overlapHour as "first" | "last" | "both" },
  };
}

/** Of a change, what differs from what was shown: a field that the form does not show in full stays as it is. */
function changesOf(form: Form, existing: Recurring): Fields {
  const before = fieldsOf(formOf(existing), existing) as Record<string, unknown>;
  const after = Object.entries(fieldsOf(form, existing));
  const changed = Object.fromEntries(after.filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]))) as Fields;
  const isOfCall = Object.keys(callOf(form, existing)).some((name) => name in changed);
  return isOfCall ? { ...changed, ...callOf(form, existing) } : changed;
}

/** The same as flags of `segno recurring create` or `update`. */
function flagsOf(form: Form, existing: Recurring | undefined): string[] {
  const before = existing ? formOf(existing) : undefined;
  const flag = (field: keyof Form, name: string, value: string, standard = "") => {
    if (before ? before[field] === form[field] : value === standard) return [];
    return value === "" ? ["--clear", name.slice(2).replaceAll("-", "_")] : [name, value];
  };
  const { provider, payload } = existing ? callOf(form, existing) : {};
  const input = JSON.stringify(parseJson(form.input).value ?? null);
  const isOfCall = !before || before.what !== form.what || before.target !== form.target || before.input !== form.input;
  const call = !isOfCall ? [] : payload === undefined ? [`--${form.what}`, form.target || "NAME", "--input", input] : ["--provider", String(provider), "--payload", input];
  const isRhythm = !before || before.rhythm !== form.rhythm || before.expression !== form.expression;
  return [
    ...(isRhythm ? [form.rhythm === "every" ? "--every" : "--cron", form.expression] : []), ...flag("timezone", "--tz", form.timezone),
    ...call,
    ...flag("name", "--name", form.name), ...flag("description", "--description", form.description),
    ...flag("overlap", "--overlap-policy", form.overlap, "allow"), ...flag("missed", "--missed", form.missed, "none"),
    ...flag("jitter", "--jitter", form.jitter), ...flag("endsAt", "--ends-at", form.endsAt), ...flag("exclude", "--exclude", linesOf(form.exclude).join(",")),
    ...(!existing && form.rhythm === "cron_expr" ? [...flag("gap", "--gap", form.gap, "shift"), ...flag("overlapHour", "--overlap", form.overlapHour, "first")] : []),
  ];
}

/** Creates or changes a schedule; the next times and days follow what is typed. */
export function ScheduleDialog({ schedule, onClose }: { schedule?: Recurring; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [form, setForm] = useState(() => formOf(schedule));
  const set = (field: keyof Form) => (value: string) => setForm((before) => ({ ...before, [field]: value }));
  const functions = useQuery({ queryKey: ["functions", "names"], queryFn: () => data(api.GET("/v1/functions")) });
  const orchestrations = useOrchestrations();
  const fields = useMemo(() => (schedule ? changesOf(form, schedule) : fieldsOf(form, undefined)), [form, schedule]);
  // The command changes no daylight saving.
  const hasCommand = schedule === undefined || fields.daylight === undefined;
  const names = form.what === "function" ? functions.data?.functions.map((each) => each.name) : orchestrations.data?.orchestrations.map((each) => each.name);
  const problem = parseJson(form.input).problem;
  const path = schedule ? `/v1/recurring/${schedule.id}` : "/v1/recurring";

  const run = async () => {
    if (schedule) return data(api.PUT("/v1/recurring/{id}", { params: { path: { id: schedule.id } }, body: fields }));
    const created = await data(api.POST("/v1/recurring", { body: fields }));
    void navigate({ to: "/schedules/$id", params: { id: created.recurring_id }, search: {} });
    return created;
  };

  return (
    <FormDialog
      wide
      title={schedule ? "Change the schedule" : "New schedule"}
      verb={schedule ? "Save" : "Create"}
      isReady={problem === undefined && form.target !== "" && Object.keys(fields).length > 0}
      run={run}
      done={schedule ? "Schedule changed" : "Schedule created"}
      cli={hasCommand ? () => cli("recurring", ...(schedule ? ["update", schedule.id] : ["create"]), ...flagsOf(form, schedule)) : undefined}
      curl={() => curl(schedule ? "PUT" : "POST", path, fields)}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ["recurring"] })}
    >
      <div className="grid grid-cols-1 gap-5 md:grid-cols-[minmax(0,1fr)_270px]">
        <div className="flex flex-col gap-3">
          <div className="grid grid-cols-2 gap-3">
            <TextField name="Name" value={form.name} onChange={set("name")} autoFocus />
            <TextField name="Time zone" value={form.timezone} onChange={set("timezone")} list={ZONES} />
            <SelectField name="Rhythm" value={form.rhythm} onChange={set("rhythm")} options={[["cron_expr", "Cron expression"], ["every", "Interval"]]} />
            <TextField name={form.rhythm === "every" ? "Every" : "Expression"} value={form.expression} onChange={set("expression")} placeholder={form.rhythm === "every" ? "15m" : "0 9 * * MON-FRI"} />
            <SelectField name="What" value={form.what} onChange={set("what")} options={[["function", "Call a function"], ["orchestration", "Start an orchestration"]]} />
            <TextField name={form.what === "function" ? "Function" : "Orchestration"} value={form.target} onChange={set("target")} list={names} />
          </div>
          <AreaField name="Input, JSON" value={form.input} onChange={set("input")} rows={3} error={problem} />
          <TextField name="Description" value={form.description} onChange={set("description")} />
          <details>
            <summary className="cursor-pointer text-dim">More: overlap, missed times, exclusions, daylight saving</summary>
            <div className="mt-3 grid grid-cols-2 gap-3">
              <SelectField name="If the last run still runs" value={form.overlap} onChange={set("overlap")} options={[["allow", "Run beside it"], ["skip", "Skip"], ["buffer_one", "Run after it, once"], ["cancel_other", "Cancel it"]]} />
              <SelectField name="Times missed while the server was away" value={form.missed} onChange={set("missed")} options={[["none", "Skip them"], ["latest", "Run the latest"], ["all", "Run them all"]]} />
              <SelectField name="Times that the clock skips" value={form.gap} onChange={set("gap")} options={[["shift", "Run when it is put forward"], ["skip", "Skip"]]} />
              <SelectField name="Times that the clock repeats" value={form.overlapHour} onChange={set("overlapHour")} options={[["first", "The first"], ["last", "The last"], ["both", "Both"]]} />
              <TextField name="Spread by up to" value={form.jitter} onChange={set("jitter")} placeholder="30s" />
              <TextField name="Ends at" value={form.endsAt} onChange={set("endsAt")} placeholder="2027-01-01T00:00:00Z" />
              <AreaField name="Excluded days, one a line" value={form.exclude} onChange={set("exclude")} rows={3} placeholder="2026-12-25" />
            </div>
          </details>
        </div>
        <Preview form={form} />
      </div>
    </FormDialog>
  );
}

/** When the schedule would fire as it is typed. */
function Preview({ form }: { form: Form }) {
  const { rhythm, expression, timezone, exclude, endsAt, gap, overlapHour } = useSettled(form, TYPING_MS);
  const lines = linesOf(exclude);
  const body: Fields = {
    [rhythm]: expression, timezone,
    ...(lines.length > 0 ? { exclude: lines } : {}),
    ...(endsAt ? { ends_at: endsAt } : {}),
    daylight: { gap: gap as "shift" | "skip", overlap: overlapHour as "first" | "last" | "both" },
  };
  const times = (count: number, from?: string) => data(api.POST("/v1/recurring/preview", { params: { query: { count, from } }, body }));
  const preview = useQuery({
    queryKey: ["recurring", "preview", body],
    queryFn: () => times(10),
    placeholderData: (previous) => previous,
    retry: false,
  });
  return (
    <section aria-label="Preview" className="min-w-0">
      <h3 className="mb-2 text-xs font-medium text-faint">Next 10 times</h3>
      {preview.error ? <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(preview.error)}</p> : preview.data && (
        <>
          <NextTimes preview={preview.data} />
          <h3 className="mt-4 mb-2 text-xs font-medium text-faint">Next 30 days</h3>
          <HeatMap of={body} timezone={timezone} times={(from) => times(HEAT_PAGE, from)} />
        </>
      )}
    </section>
  );
}
